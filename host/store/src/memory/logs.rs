//! The logs of calls.

use async_trait::async_trait;
use dispatch::ports::{CallLogs, RowChange, RunLog, StoreFault};
use domain::{CallIndex, TurnId};

use super::{MemoryStore, State};
use crate::record::Record as _;

/// These changes, logs first. The size of a turn that ends counts them.
pub(super) fn logs_first(changes: Vec<RowChange>) -> impl Iterator<Item = RowChange> {
    let (logs, others): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| matches!(change, RowChange::RunLog(_)));
    logs.into_iter().chain(others)
}

impl State {
    pub(super) fn keep(&mut self, log: RunLog) {
        let key = (log.turn, log.call, log.run);
        let is_longer = self.run_logs.get(&key).is_none_or(|kept| kept.written < log.written);
        if is_longer && !self.removed.contains_key(&log.turn) {
            self.run_logs.insert(key, log);
        }
    }

    /// The size of the logs of a turn's calls in their stored form.
    pub(super) fn size_of_logs(&self, turn: TurnId) -> u64 {
        let logs = self.run_logs.range((turn, CallIndex(0), 0)..=(turn, CallIndex(u16::MAX), u32::MAX));
        let size = |log: &RunLog| {
            let mut stored = Vec::new();
            log.write(&mut stored).map_or(0, |()| stored.len() as u64)
        };
        logs.map(|(_, log)| size(log)).sum()
    }
}

#[async_trait]
impl CallLogs for MemoryStore {
    async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        let runs = (turn, call, 0)..=(turn, call, u32::MAX);
        Ok(self.state().run_logs.range(runs).map(|(_, log)| log.clone()).collect())
    }
}
