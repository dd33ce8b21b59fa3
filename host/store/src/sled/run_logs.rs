//! Reading the logs and the journals of calls.

use dispatch::ports::{RunLog, StoreFault};
use domain::{CallIndex, TurnId};

use super::keys::{self, read_count};
use super::plan::Earlier;
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
