//! A call of a tool, and its end.

use std::sync::Arc;
use std::time::Duration;

use capabilities::Grants;
use domain::outcome::{Failure, FailureCode};
use domain::step::StepRequest;
use domain::{Json, Outcome, PluginName};

use crate::Durable;

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Job {
    /// The plugin. Its key-value data is kept under this name.
    pub plugin: PluginName,
    /// The grants of the call.
    pub grants: Arc<Grants>,
    /// The caller's id of the call.
    pub call_id: Arc<str>,
    /// The tool, one that the plugin declared with the executor `server`.
    pub tool: Arc<str>,
    /// Valid against the tool's schema.
    pub arguments: Json,
    /// The same at each attempt.
    pub idempotency_key: Arc<str>,
    /// 1, and one more after each crash of the host. The guest of a durable call always reads 1.
    pub attempt: u32,
    /// A JSON object that names the caller and the conversation.
    pub scope: Json,
    /// Whether the tool declares that it reports progress. If not, its reports are dropped.
    pub streaming: bool,
    /// The steps that the run repeats, if the tool is durable. Other tools cannot wait.
    pub durable: Option<Durable>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub ended: Ended,
    /// `None` if no guest ran.
    pub spent: Option<Spent>,
    /// Whether the call may have changed data that the host keeps. These changes must be durable before the outcome is.
    pub wrote: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// `Ok` or `Failed`. `InDoubt` after a run that did something else than the one before it; the call's log says what.
    Outcome(Outcome),
    /// The call waits for this step. A later run continues it.
    Waits(StepRequest),
    /// The run failed while it repeated an earlier one. This says nothing about the call, which had come further.
    Repeating(Failure),
}

impl Ended {
    /// The outcome of a call that nothing continues: one that waits fails, and one that came further before is in doubt.
    #[must_use]
    pub fn last(self) -> Outcome {
        match self {
            Self::Outcome(outcome) => outcome,
            Self::Waits(_) => {
                let message = "the call waits in the middle of its code, and nothing here can continue it";
                Outcome::Failed(Failure::new(FailureCode::HostFault, message))
            }
            Self::Repeating(_) => Outcome::InDoubt,
        }
    }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// The usage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// From the permit for an instance to the end.
    pub time: Duration,
    /// Bytes of all linear memories at their largest.
    pub peak_memory: usize,
    /// Bytes of host memory at its largest.
    pub peak_host_bytes: usize,
    /// The number of calls of host functions.
    pub host_calls: u64,
    /// Bytes into the guest: arguments, and results of host functions that come from outside.
    pub bytes_in: u64,
    /// Bytes out of the guest: result, progress, log, and everything that it stores, writes or sends.
    pub bytes_out: u64,
}
