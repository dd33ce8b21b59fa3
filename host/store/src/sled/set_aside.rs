//! Damaged records. Each is set aside: a read that needs it fails, and every other read goes on without it.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::StoreFault;
use domain::TurnId;

use super::keys;

/// The maximum number of records that are counted, so that a damaged disk fills no memory.
const MAX_RECORDS: usize = 10_000;

/// The damaged records that were found since the store was opened.
#[derive(Clone, Default)]
pub(super) struct SetAside(Arc<Mutex<Found>>);

#[derive(Default)]
struct Found {
    /// The names of the records.
    records: BTreeSet<String>,
    turns: HashSet<TurnId>,
}

impl SetAside {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the record under a key aside. Passes on faults that are not damage.
    pub(super) fn take(&self, key: &[u8], fault: StoreFault) -> Result<(), StoreFault> {
        match key.get(1..).and_then(keys::read_pointer).filter(|_| key.first() == Some(&keys::LOG)) {
            Some((turn, _)) => self.take_log(turn, fault),
            None if fault.is_damage() => {
                self.note(keys::in_words(key), &fault.reason);
                Ok(())
            }
            None => Err(fault),
        }
    }

    /// Sets the log of a turn aside, which counts once. Passes on faults that are not damage.
    pub(super) fn take_log(&self, turn: TurnId, fault: StoreFault) -> Result<(), StoreFault> {
        if !fault.is_damage() {
            return Err(fault);
        }
        self.note(format!("the log of {turn}"), &fault.reason);
        Ok(())
    }

    /// Counts a damaged record, and logs it once.
    pub(super) fn note(&self, record: String, reason: &str) {
        let mut found = self.found();
        if found.records.len() < MAX_RECORDS && !found.records.contains(&record) {
            tracing::error!(record, reason, "a stored record is damaged; it is set aside, and everything else goes on");
            found.records.insert(record);
        }
    }

    /// Makes every read of a turn fail. Its log may look whole, although its last commits are missing.
    pub(super) fn close(&self, turn: TurnId) {
        self.found().turns.insert(turn);
    }

    pub(super) fn is_closed(&self, turn: TurnId) -> bool {
        let found = self.found();
        !found.turns.is_empty() && found.turns.contains(&turn)
    }

    pub(super) fn count(&self) -> usize {
        self.found().records.len()
    }
}
