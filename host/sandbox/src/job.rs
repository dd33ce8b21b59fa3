//! A call of a tool, and its end.

use std::sync::Arc;
use std::time::Duration;

use capabilities::Grants;
use capabilities::journal::Recording;
pub use domain::step::{Durable, RunEnd};
use domain::{Json, PluginName};

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
    /// Where a durable call records the results of host functions. Without it, no later run repeats this one.
    pub recording: Option<Recording>,
}

impl Job {
    /// The bytes of what the run repeats: its journal, and the ends of its steps.
    pub(crate) fn repeated_bytes(&self) -> usize {
        self.durable.as_ref().map_or(0, Durable::size)
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestEnd {
    pub ended: RunEnd,
    /// `None` if the run did not begin.
    pub spent: Option<RunUsage>,
    /// Whether the call may have changed data that the host keeps. These changes must be durable before the outcome is.
    pub wrote: bool,
}

/// The usage of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunUsage {
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
