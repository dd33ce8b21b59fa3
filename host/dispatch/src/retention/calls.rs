//! Removes the logs and the journals of calls before their turns.

use std::collections::BTreeSet;

use domain::{Span, Timestamp, Turn, TurnId};

use super::{Amount, Mode, PAGE, TurnRemover};
use crate::ports::{AppendError, CallRecords, Commit, EndedTurn, FaultKind, Loaded, RowChange, StoreFault};

/// The key of an ended turn. The turns up to it have no records of a kind any more.
pub(super) type Reached = Option<(Timestamp, TurnId)>;

/// A walk that removes records of calls.
pub(super) struct Forgetting<'a> {
    pub(super) records: CallRecords,
    /// How long they are kept after the end of their turn.
    pub(super) kept: Option<Span>,
    pub(super) now: Timestamp,
    pub(super) mode: Mode,
    /// The turns that a dry run counted as removed. It has not removed them.
    pub(super) counted: &'a BTreeSet<TurnId>,
}

impl TurnRemover {
    /// Removes records of the calls of turns that ended long ago. Returns what it removed.
    pub(super) async fn forget(&self, walk: &Forgetting<'_>, reached: &mut Reached) -> Result<Amount, StoreFault> {
        let mut removed = Amount::default();
        let Some(kept) = walk.kept else { return Ok(removed) };
        let mut after = *reached;
        let mut is_complete = true;
        loop {
            let page = self.turns.ended(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            for (turn, bytes) in page {
                if turn.at + kept > walk.now {
                    return Ok(removed);
                }
                after = Some(turn.key());
                if !self.rules.holds(&turn) && !walk.counted.contains(&turn.turn) {
                    is_complete &= self.forget_of(turn, bytes, walk, &mut removed).await?;
                }
                // The next run looks again at the first turn that had changed, and at all later ones.
                if is_complete && walk.mode == Mode::Remove {
                    *reached = after;
                }
            }
            if is_last {
                return Ok(removed);
            }
        }
    }

    /// Returns whether the turn has none of the records any more.
    async fn forget_of(
        &self,
        turn: EndedTurn,
        bytes: u64,
        walk: &Forgetting<'_>,
        removed: &mut Amount,
    ) -> Result<bool, StoreFault> {
        let records = walk.records;
        let Some(size) = self.turns.size_of_calls(turn.turn, records).await? else { return Ok(true) };
        if records == CallRecords::Journals && self.is_below_open(turn.turn).await? {
            return Ok(false);
        }
        if walk.mode == Mode::Remove {
            let commit = Commit::rows(vec![RowChange::Forget(records, turn, bytes)]);
            match self.committer.record(commit).await {
                Ok(()) => {}
                Err(AppendError::Changed) => return Ok(false),
                Err(error) => return Err(error.into_fault("remove the logs or the journals of calls")),
            }
        }
        removed.add(size);
        Ok(true)
    }

    /// Whether a turn is nested in one that has not ended. One that cannot be read counts as such.
    async fn is_below_open(&self, turn: TurnId) -> Result<bool, StoreFault> {
        match self.log.load(turn).await {
            Ok(Loaded::Found(loaded)) => match Turn::replay(&loaded.events) {
                Some(turn) => self.is_in_open(&turn).await,
                None => Ok(true),
            },
            Ok(Loaded::Removed(_) | Loaded::Absent) => Ok(false),
            Err(fault) if fault.kind == FaultKind::Damaged => Ok(true),
            Err(fault) => Err(fault),
        }
    }
}
