//! The logs of calls.

use async_trait::async_trait;
use dispatch::ports::{CallLogs, RunLog, StoreFault};
use domain::{CallIndex, TurnId};

use super::{MemoryStore, State};

impl State {
    pub(super) fn keep(&mut self, log: RunLog) {
        let key = (log.turn, log.call, log.run);
        let is_longer = self.run_logs.get(&key).is_none_or(|kept| kept.written < log.written);
        if is_longer && !self.removed.contains_key(&log.turn) {
            self.run_logs.insert(key, log);
        }
    }
}

#[async_trait]
impl CallLogs for MemoryStore {
    async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        let runs = (turn, call, 0)..=(turn, call, u32::MAX);
        Ok(self.state().run_logs.range(runs).map(|(_, log)| log.clone()).collect())
    }
}
