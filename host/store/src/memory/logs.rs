//! The logs and the journals of calls.

use async_trait::async_trait;
use dispatch::ports::{AppendError, CallLogs, JournalPage, JournalRow, Journals, RowChange, RunLog, StoreFault};
use domain::{
    CallIndex, TurnId,
    journal::{Entry, JournalBounds},
};

use super::{MemoryStore, State};
use crate::record::Record;

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

    pub(super) fn journal_head(&self, turn: TurnId, call: CallIndex) -> JournalHead {
        let journal = self.journals.get(&(turn, call));
        journal.map(|(run, entries)| JournalHead { run: *run, length: entries.len() }).unwrap_or_default()
    }

    /// The size of the logs of a turn's calls in their stored form.
    pub(super) fn size_of_logs(&self, turn: TurnId) -> u64 {
        let logs = self.run_logs.range((turn, CallIndex(0), 0)..=(turn, CallIndex(u16::MAX), u32::MAX));
        logs.map(|(_, log)| size(log)).sum()
    }

    pub(super) fn size_of_journals(&self, turn: TurnId) -> u64 {
        let journals = self.journals.range((turn, CallIndex(0))..=(turn, CallIndex(u16::MAX)));
        journals.flat_map(|(_, (_, entries))| entries).map(size).sum()
    }
}

/// The run that may append to a journal, and how many entries there are.
#[derive(Default)]
pub(super) struct JournalHead {
    pub(super) run: Option<u32>,
    length: usize,
}

impl JournalHead {
    pub(super) fn append(&mut self, row: &JournalRow) -> Result<(), AppendError> {
        if self.run != Some(row.run) || self.length != row.entry.number as usize {
            return Err(AppendError::Superseded);
        }
        self.length += 1;
        Ok(())
    }
}

/// The size of a record.
pub(super) fn size(record: &impl Record) -> u64 {
    let mut stored = Vec::new();
    record.write(&mut stored).map_or(0, |()| stored.len() as u64)
}

#[async_trait]
impl Journals for MemoryStore {
    async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault> {
        let state = self.state();
        let Some((_, all)) = state.journals.get(&(turn, call)) else { return Ok(JournalPage::default()) };
        let mut bytes: usize = 0;
        let fits = |entry: &&Entry| {
            let is_first = bytes == 0;
            bytes = bytes.saturating_add(entry.size());
            is_first || bytes <= max.bytes
        };
        let entries = all.iter().skip(from as usize).take(max.entries).take_while(fits).cloned().collect();
        Ok(JournalPage { entries, length: u32::try_from(all.len()).unwrap_or(u32::MAX) })
    }
}

#[async_trait]
impl CallLogs for MemoryStore {
    async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        let runs = (turn, call, 0)..=(turn, call, u32::MAX);
        Ok(self.state().run_logs.range(runs).map(|(_, log)| log.clone()).collect())
    }
}
