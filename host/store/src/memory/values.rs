//! The plugins' key-value data in memory.

use dispatch::ports::{Commit, RowChange, StoreFault};

use super::MemoryStore;
use crate::KeyValue;

impl MemoryStore {
    /// The plugins' key-value data.
    #[must_use]
    pub fn key_value(&self) -> KeyValue {
        self.key_value.clone()
    }

    /// Makes the changes of a commit that was checked.
    pub(super) fn change_values(&self, commit: &Commit) -> Result<(), StoreFault> {
        let mut changes = commit.rows.iter().filter_map(|row| match row {
            RowChange::Value(change) => Some(change),
            _ => None,
        });
        changes.try_for_each(|change| self.key_value.apply(change))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}
