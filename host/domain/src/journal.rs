//! The journal of a durable call: the results of its host functions, in their order. A later run gets them instead of
//! calling the functions again.

use std::sync::Arc;

use crate::{Digest, Span, Timestamp};

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// From 0.
    pub number: u32,
    /// The number of steps that had ended before it.
    pub step: u32,
    /// Digest of the function and its arguments. A later run must call the same.
    pub digest: Digest,
    pub at: Timestamp,
    pub record: Record,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The result of a host function, in a form of its capability.
    Result(Arc<str>),
    /// An effect is about to begin. This text names it for people. Its result is the next entry. Without one, nobody
    /// knows whether it happened.
    Begun(Arc<str>),
    /// The server refused the request for now. A later run sends it again.
    Refused(RefusedForNow),
}

/// A refusal for now: the server asks to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedForNow {
    /// The request is not sent again before this time.
    pub until: Timestamp,
    /// The time that the server asked for.
    pub wait: Span,
    /// Whether an earlier sending may have been carried out, so that only a request that may be repeated is sent again.
    pub in_doubt: bool,
}

/// The size of an entry besides its text.
const ENTRY: usize = 128;

impl Entry {
    /// Its size, for the bounds of a journal.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.record {
            Record::Result(text) | Record::Begun(text) => ENTRY + text.len(),
            Record::Refused(_) => ENTRY,
        }
    }
}

/// The maximum size of the journal of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalBounds {
    pub entries: usize,
    pub bytes: usize,
}

impl Default for JournalBounds {
    fn default() -> Self {
        Self { entries: 10_000, bytes: 4 << 20 }
    }
}

/// A change of a plugin's key-value data that is written together with entries of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueChange {
    /// The key of the store.
    pub key: Vec<u8>,
    /// `None` removes the key.
    pub value: Option<Vec<u8>>,
}
