//! The sizes of turns that began since the store was opened. The commit that ends such a turn need not read them.
//!
//! The first commits of a log never change, so an entry stays true. A commit that failed, or whose caller left, is not
//! counted. If it was written all the same, the log is longer than the entry says, and the size is read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dispatch::ports::{Commit, NewFacts, RowChange};
use domain::TurnId;

/// The maximum number of entries. If there are more, all are removed.
const MAX_TURNS: usize = 1 << 16;

/// Of open turns without stored logs of calls: the number of their commits, and the size of the records.
#[derive(Default)]
pub(super) struct Sizes(Mutex<HashMap<TurnId, (u32, u64)>>);

impl Sizes {
    /// The size of the records of a commit's turn before the commit. `None`: it must be read, or the turn has stored logs.
    pub(super) fn before(&self, commit: &Commit) -> Option<u64> {
        let mut turns = self.turns();
        let size = appended(commit).and_then(|(turn, expected)| match turns.get(&turn) {
            _ if expected == 0 => Some(0),
            Some((commits, size)) => (*commits == expected).then_some(*size),
            None => None,
        });
        for turn in commit.rows.iter().filter_map(excluded) {
            turns.remove(&turn);
        }
        size
    }

    /// Counts a commit that is on disk, with a record of this size.
    pub(super) fn count(&self, commit: &Commit, size: u64) {
        let Some((turn, expected)) = appended(commit) else { return };
        let mut turns = self.turns();
        if expected > 0 {
            // Absent if a log was stored meanwhile.
            if let Some(entry) = turns.get_mut(&turn).filter(|(commits, _)| *commits == expected) {
                *entry = (expected + 1, entry.1.saturating_add(size));
            }
        } else if !commit.rows.iter().any(|row| excluded(row) == Some(turn)) {
            if turns.len() == MAX_TURNS {
                turns.clear();
            }
            turns.insert(turn, (1, size));
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, (u32, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a commit, and the number of the commits before it.
fn appended(commit: &Commit) -> Option<(TurnId, u32)> {
    match &commit.facts {
        Some(NewFacts::Turn { turn, expected, .. }) => Some((*turn, *expected)),
        _ => None,
    }
}

/// The turn that has no entry after this change: it ends, or has a stored log.
fn excluded(row: &RowChange) -> Option<TurnId> {
    match row {
        RowChange::Ended(ended, _) => Some(ended.turn),
        RowChange::RunLog(log) => Some(log.turn),
        _ => None,
    }
}
