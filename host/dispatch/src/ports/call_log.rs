//! The logs of calls: the last lines that guests wrote. They help the authors and the callers of tools. Nothing is decided
//! by them.

use async_trait::async_trait;
use domain::{CallIndex, Timestamp, TurnId, call::Level};

use super::fault::StoreFault;

/// Reads the logs of calls. They are written with [`RowChange::RunLog`](super::RowChange::RunLog).
///
/// Laws:
/// - They are in no feed and not in the audit.
/// - The logs of a removed turn are removed, and none are written for it afterwards.
/// - A log of a run never replaces one with more lines.
#[async_trait]
pub trait CallLogs: Send + Sync {
    /// The logs of the runs of a call, the first run first. Runs that wrote nothing have none.
    async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault>;
}

/// The last lines of the log of one run of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLog {
    pub turn: TurnId,
    pub call: CallIndex,
    /// Its number, from 1. A call runs again after a kill of the host, and after each step of a durable call.
    pub run: u32,
    /// The number of lines that the run wrote. The last line has this number.
    pub written: u64,
    /// The last of them, oldest first.
    pub lines: Vec<LogLine>,
}

/// A line that a guest wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub at: Timestamp,
    pub level: Level,
    /// The guest's words, without the secrets of the host. It may hold any characters.
    pub text: String,
}

impl RunLog {
    /// The number of lines that are not kept any more.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.written.saturating_sub(self.lines.len() as u64)
    }

    /// The lines with their numbers. The first line of a run has the number 1.
    pub fn numbered(&self) -> impl Iterator<Item = (u64, &LogLine)> {
        (self.left_out() + 1..).zip(&self.lines)
    }
}
