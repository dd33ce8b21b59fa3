//! The logs of calls.

use dispatch::ports;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Level, Status, rfc3339};

/// The log of a call: the last lines that its guest wrote.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct CallLog {
    /// The turn of the call.
    pub turn: String,
    /// The caller's id.
    pub call: String,
    /// How far the call is. Until it has ended, more lines may follow.
    pub status: Status,
    /// Its runs that wrote something, the first one first.
    pub runs: Vec<RunLog>,
}

/// The log of one run of a call.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RunLog {
    /// Its number, from 1. A call runs again after the host was killed while it ran, and a durable call after each of its
    /// waits.
    pub run: u32,
    /// The number of earlier lines that are not kept.
    pub left_out: u64,
    /// The last lines, oldest first.
    pub lines: Vec<LogLine>,
}

/// A line of a log. Secrets of the host are redacted.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Its number among the lines of the run, from 1.
    pub line: u64,
    /// When it was written.
    pub at: String,
    /// Its level.
    pub level: Level,
    /// The guest's words. They may hold any characters.
    pub message: String,
}

impl CallLog {
    /// The log of a call with these runs.
    #[must_use]
    pub fn new(turn: &domain::Turn, call: &domain::Call, runs: &[ports::RunLog]) -> Self {
        let runs = runs.iter().map(RunLog::from).collect();
        Self { turn: turn.id.to_string(), call: call.id.to_string(), status: (&call.status()).into(), runs }
    }
}

impl From<&ports::RunLog> for RunLog {
    fn from(log: &ports::RunLog) -> Self {
        let line = |(line, it): (u64, &ports::LogLine)| LogLine {
            line,
            at: rfc3339(it.at),
            level: (&it.level).into(),
            message: it.text.clone(),
        };
        Self { run: log.run, left_out: log.left_out(), lines: log.numbered().map(line).collect() }
    }
}
