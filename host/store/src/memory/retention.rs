//! The removal of ended turns.

use std::ops::Bound;

use async_trait::async_trait;
use dispatch::ports::{
    CallRecords, EndedTurn, EndedTurns, Position, RowChange, StoreFault, Subject, Tombstone, TurnToRemove,
    TurnsToRemove,
};
use domain::{Timestamp, TurnId};

use super::{MemoryStore, State, key};

impl State {
    /// The size of the records in the log of a turn.
    pub(super) fn size(&self, turn: TurnId) -> u64 {
        let positions = self.positions.get(&turn).into_iter().flatten();
        positions.filter_map(|at| self.links(Position(at.0 - 1), 1).next()).map(|(.., record)| record.size as u64).sum()
    }

    /// Adds an ended turn. Returns the size of its logs, which count from now on.
    pub(super) fn end(&mut self, row: EndedTurn) -> u64 {
        let logs = self.size_of_logs(row.turn);
        let bytes = self.size(row.turn) + logs + self.size_of_journals(row.turn);
        self.ended.insert(row.key(), (row, bytes));
        logs
    }

    /// Whether something that is to be forgotten is still as it was read.
    pub(super) fn is_as_read(&self, change: &RowChange) -> bool {
        match change {
            RowChange::ForgetStanding(row) => self.standings.get(&row.standing.id) == Some(row),
            RowChange::ForgetDenial(row) => self.denied.get(&key(row)) == Some(&row.at),
            RowChange::Forget(_, row, bytes) => {
                self.ended.get(&row.key()).is_some_and(|(ended, size)| (ended, size) == (row, bytes))
            }
            _ => true,
        }
    }

    /// Removes the logs or the journals of an ended turn's calls.
    pub(super) fn forget(&mut self, records: CallRecords, row: &EndedTurn) {
        let size = self.size_of_calls(row.turn, records).unwrap_or_default();
        match records {
            CallRecords::Logs => self.run_logs.retain(|(turn, ..), _| *turn != row.turn),
            CallRecords::Journals => self.journals.retain(|(turn, _), _| *turn != row.turn),
        }
        let Some((_, bytes)) = self.ended.get_mut(&row.key()) else { return };
        // Lines that were written after the end of the turn were never counted.
        let size = size.min(*bytes);
        *bytes -= size;
        if let Some(kept) = self.kept.get_mut(&row.caller) {
            *kept = kept.saturating_sub(size);
        }
    }

    /// The size of these records. `None` without any.
    fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Option<u64> {
        match records {
            CallRecords::Logs => self.run_logs.keys().any(|(of, ..)| *of == turn).then(|| self.size_of_logs(turn)),
            CallRecords::Journals => {
                self.journals.keys().any(|(of, _)| *of == turn).then(|| self.size_of_journals(turn))
            }
        }
    }

    pub(super) fn can_remove(&self, turn: &TurnToRemove) -> bool {
        let is_owed = |subject| self.deliveries_of(subject).any(|(_, row)| row.next().is_some());
        let mut subjects = turn.suspensions.iter().copied().map(Subject::Suspension).chain([turn.ended.turn.into()]);
        self.ended.get(&turn.ended.key()).is_some_and(|(ended, bytes)| (ended, bytes) == (&turn.ended, &turn.bytes))
            && self.logs.get(&turn.ended.turn).map_or(0, Vec::len) == turn.commits as usize
            && !subjects.any(is_owed)
    }

    /// Removes turns that were checked.
    pub(super) fn remove(&mut self, removal: &TurnsToRemove, position: Position) {
        for TurnToRemove { ended, bytes, suspensions, .. } in &removal.turns {
            self.ended.remove(&ended.key());
            if let Some(kept) = self.kept.get_mut(&ended.caller) {
                *kept = kept.saturating_sub(*bytes);
            }
            self.logs.remove(&ended.turn);
            self.run_logs.retain(|(turn, ..), _| *turn != ended.turn);
            self.journals.retain(|(turn, _), _| *turn != ended.turn);
            for position in self.positions.get(&ended.turn).into_iter().flatten() {
                self.feeds.remove(&(ended.conversation.clone(), *position));
                self.ends.remove(position);
            }
            self.deliveries.retain(|(of, ..), _| *of != Subject::Turn(ended.turn));
            for id in suspensions {
                self.suspensions.remove(id);
                self.deliveries.retain(|(of, ..), _| *of != Subject::Suspension(*id));
            }
            let (conversation, at, rule) = (ended.conversation.clone(), removal.at, removal.rule.clone());
            self.removed.insert(ended.turn, (Tombstone { conversation, at, rule }, position));
        }
    }
}

#[async_trait]
impl EndedTurns for MemoryStore {
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        let state = self.state();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        Ok(state.ended.range((behind, Bound::Unbounded)).take(limit).map(|(_, row)| row.clone()).collect())
    }

    async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        Ok(self.state().size_of_calls(turn, records))
    }

    async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        Ok(self.state().retention_time)
    }

    /// There are no files.
    async fn reclaim(&self) -> Result<u64, StoreFault> {
        Ok(0)
    }
}
