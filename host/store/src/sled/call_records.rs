//! The logs and the journals of calls: reading the logs, the sizes of both, and their removal before the turn.

use dispatch::ports::{CallRecords, EndedTurn, RunLog, StoreFault};
use domain::{CallIndex, TurnId};

use super::keys::{self, read_count};
use super::plan::{Change, Earlier, Plan, signed};
use super::reader::{Reader, damaged};
use crate::fault::fault;
use crate::record::Record;

impl Reader {
    /// The sizes of the logs and the journals of a turn's calls.
    pub(super) fn sizes_of_calls(&self, turn: TurnId) -> Result<Earlier, StoreFault> {
        let mut earlier = Earlier::default();
        for entry in keys::OF_CALLS.iter().flat_map(|kind| self.tree.scan_prefix(keys::of_calls(*kind, turn))) {
            let (key, value) = entry.map_err(fault("read the log of a call"))?;
            earlier.add(&key, &value, |record| match self.blobs.size(record) {
                usize::MAX => 0,
                size => size as u64,
            });
        }
        Ok(earlier)
    }

    /// The size of these records of a turn's calls. `None` without any.
    pub(super) fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        let mut size = None;
        for (key, value) in self.of_calls(turn, records)? {
            size = Some(size.unwrap_or(0) + self.size_in(&key, &value));
        }
        Ok(size)
    }

    /// Adds to the plan the removal of these records of an ended turn's calls. The turn has this size with them.
    pub(super) fn forget(
        &self,
        records: CallRecords,
        row: &EndedTurn,
        bytes: u64,
        plan: &mut Plan,
    ) -> Result<(), StoreFault> {
        let mut size = 0_u64;
        for (key, value) in self.of_calls(row.turn, records)? {
            size = size.saturating_add(self.size_in(&key, &value));
            match keys::stamped(&value) {
                Some((_, held)) => plan.checked.push((key, Change::Remove(held.to_vec()))),
                None => plan.removed.push(key),
            }
        }
        // Lines that were written after the end of the turn were never counted.
        let size = size.min(bytes);
        let (before, after) = (plan.ended(row, bytes)?, plan.ended(row, bytes - size)?);
        let key = keys::ended(row.key());
        plan.checked.push((key.clone(), Change::Remove(before)));
        plan.checked.push((key, Change::Put(after)));
        plan.checked.push((keys::kept(&row.caller), Change::Count(-signed(size), Vec::new())));
        Ok(())
    }

    fn of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Vec<keys::Entry>, StoreFault> {
        let kinds: &[u8] = match records {
            CallRecords::Logs => &[keys::RUN_LOG],
            CallRecords::Journals => &[keys::JOURNAL_ENTRY, keys::JOURNAL],
        };
        let entries = kinds.iter().flat_map(|kind| self.tree.scan_prefix(keys::of_calls(*kind, turn)));
        entries
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<_, _>>()
            .map_err(fault("read the records of a call"))
    }

    /// The size of the record in an entry.
    fn size_in(&self, key: &[u8], value: &[u8]) -> u64 {
        match keys::record(key, value).map(|record| self.blobs.size(record)) {
            None | Some(usize::MAX) => 0,
            Some(size) => size as u64,
        }
    }

    /// Leaves out logs that are damaged.
    pub(super) async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        let what = || format!("a log of call {} of {turn}", call.0);
        let mut logs = Vec::new();
        for key in self.tree.scan_prefix(keys::run_logs(turn, call)).keys() {
            let key = key.map_err(fault("read the log of a call"))?;
            // It may have been removed since its key was read.
            let Some(value) = self.stamped(&key).await? else { continue };
            let log = match read_count(&value) {
                Some((_, record)) => self.decode(record, RunLog::read, &what).await,
                None => Err(damaged(what())),
            };
            match log {
                Ok(log) => logs.push(log),
                Err(_) if !self.tree.contains_key(&key).map_err(fault("read the log of a call"))? => {}
                Err(fault) => self.set_aside.take(&key, fault)?,
            }
        }
        Ok(logs)
    }
}
