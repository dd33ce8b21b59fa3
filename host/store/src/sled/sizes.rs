//! The sizes of turns that began since the store was opened. The commit that ends such a turn need not read them.
//!
//! The first commits of a log never change, so an entry stays true. A commit that failed, or whose caller left, is not
//! counted. The log may then be longer than the entry says, and its size is read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dispatch::ports::{Commit, NewFacts, RowChange, StoreFault};
use domain::TurnId;

use super::plan::Earlier;
use super::reader::Reader;

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
        RowChange::JournalEntry(row) => Some(row.turn),
        _ => None,
    }
}

/// The rows of a commit that need something which must be read first. `size` is of its turn.
pub(super) fn read_before(rows: &[RowChange], size: Option<u64>) -> Option<Vec<RowChange>> {
    let is_one = |row: &&RowChange| match row {
        RowChange::Ended(..) => size.is_none(),
        RowChange::Delivery(_) => true,
        _ => false,
    };
    let rows: Vec<RowChange> = rows.iter().filter(is_one).cloned().collect();
    (!rows.is_empty()).then_some(rows)
}

impl Reader {
    /// The sizes of the turn that ends with these rows, and the pending entries that change with them.
    pub(super) async fn before(&self, rows: &[RowChange]) -> Result<(Earlier, Vec<Vec<u8>>), StoreFault> {
        let ended = rows.iter().find_map(|row| match row {
            RowChange::Ended(ended, _) => Some(ended.turn),
            _ => None,
        });
        let mut earlier = Earlier::default();
        if let Some(turn) = ended {
            earlier = self.sizes_of_calls(turn)?;
            earlier.bytes = self.size(turn).await?;
        }
        Ok((earlier, self.pending_before(rows).await?))
    }
}
