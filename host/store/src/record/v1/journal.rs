//! Version 1 of the entries of journals.

use std::sync::Arc;

use domain::{
    Digest, Span, Timestamp,
    journal::{Entry, Record, RefusedForNow},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    struct Entry "Entry" {
        number: u32,
        step: u32,
        digest: Digest,
        at: Timestamp,
        record: Record,
    }

    enum Record "Record" { Result(Arc<str>), Begun(Arc<str>), Refused(RefusedForNow) }

    struct RefusedForNow "RefusedForNow" {
        until: Timestamp,
        wait: Span,
        in_doubt: bool = "std::ops::Not::not",
    }
}
