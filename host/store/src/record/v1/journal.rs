//! Version 1 of the entries of journals.

use std::sync::Arc;

use domain::{
    Digest, Span, Timestamp,
    journal::{Entry, JournalSummary, Record, RefusedForNow, Transferred},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct Entry "Entry" {
        number: u32,
        step: u32,
        run: Option<u32> = "Option::is_none",
        function: Option<Arc<str>> = "Option::is_none",
        digest: Digest,
        at: Timestamp,
        salt: Option<Digest> = "Option::is_none",
        transferred: Option<Transferred> = "Option::is_none",
        record: Record,
    }

    struct Transferred "Transferred" {
        sent: u64,
        received: u64,
    }

    struct JournalSummary "JournalSummary" {
        entries: u32,
        bytes: u64,
        digest: Digest,
    }

    enum Record "Record" { Result(Arc<str>), Begun(Arc<str>), Refused(RefusedForNow) }

    struct RefusedForNow "RefusedForNow" {
        until: Timestamp,
        wait: Span,
        in_doubt: bool = "std::ops::Not::not",
    }
}
