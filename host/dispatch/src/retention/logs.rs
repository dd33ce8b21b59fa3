//! Removes the logs of calls before their turns.

use domain::{Timestamp, TurnId};

use super::{Mode, PAGE, Pruned, TurnRemover};
use crate::ports::{AppendError, Commit, EndedTurn, RowChange, StoreFault};

impl TurnRemover {
    /// Removes the logs of the calls of turns that ended long ago. The turns up to `without_logs` have none any more.
    pub(super) async fn forget_logs(
        &self,
        now: Timestamp,
        mode: Mode,
        without_logs: &mut Option<(Timestamp, TurnId)>,
        pruned: &mut Pruned,
    ) -> Result<(), StoreFault> {
        let Some(kept) = self.rules.logs else { return Ok(()) };
        let mut after = *without_logs;
        let mut is_complete = true;
        loop {
            let page = self.turns.ended(after, PAGE).await?;
            let is_last = page.len() < PAGE;
            for (turn, bytes) in page {
                if turn.at + kept > now {
                    return Ok(());
                }
                after = Some(turn.key());
                // A dry run has not removed the turns that it counts.
                if !self.rules.holds(&turn) && !pruned.counted.contains(&turn.turn) {
                    is_complete &= self.forget_logs_of(turn, bytes, mode, pruned).await?;
                }
                // The next run looks again at the first turn that had changed, and at all later ones.
                if is_complete && mode == Mode::Remove {
                    *without_logs = after;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns whether the turn has no logs any more.
    async fn forget_logs_of(
        &self,
        turn: EndedTurn,
        bytes: u64,
        mode: Mode,
        pruned: &mut Pruned,
    ) -> Result<bool, StoreFault> {
        let Some(size) = self.turns.logs_size(turn.turn).await? else { return Ok(true) };
        if mode == Mode::Remove {
            let commit = Commit::rows(vec![RowChange::ForgetLogs(turn, bytes)]);
            match self.committer.record(commit).await {
                Ok(()) => {}
                Err(AppendError::Changed) => return Ok(false),
                Err(error) => return Err(error.into_fault("remove the logs of calls")),
            }
        }
        pruned.logs.add(size);
        Ok(true)
    }
}
