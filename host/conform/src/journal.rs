//! The journal of one durable call under test, in memory.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use capabilities::journal::JournalWriter;
use domain::journal::{Entry, ValueChange};

#[derive(Debug, Default)]
pub(crate) struct MemoryJournal(Mutex<Vec<Entry>>);

impl MemoryJournal {
    /// The entries of all runs so far.
    pub(crate) fn entries(&self) -> Arc<[Entry]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_slice().into()
    }
}

#[async_trait]
impl JournalWriter for MemoryJournal {
    /// The kit's buckets make the changes of values themselves.
    async fn write(&self, entries: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
        Ok(true)
    }
}
