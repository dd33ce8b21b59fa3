//! The table `[limits]`: every bound of [`domain::Limits`], each with its unit in its name.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use domain::{Limits, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one call of a guest may spend. What is not said stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Time from instantiation to result in milliseconds, waits in host functions included. Default: 30000.
    pub time_ms: Option<NonZeroU64>,
    /// How long a call that should stop may go on, in milliseconds: after it was cancelled, and before its time is over. 0 ends
    /// a cancelled call at once. Default: 1000.
    pub stop_grace_ms: Option<u64>,
    /// All linear memories of the call together. Default: 134217728, 128 MiB.
    pub memory_bytes: Option<NonZeroUsize>,
    /// Elements of all tables together. Default: 20000.
    pub table_elements: Option<usize>,
    /// Core instances of the component. Default: 16.
    pub instances: Option<NonZeroUsize>,
    /// What one host call may copy out of the guest. Default: 8388608, 8 MiB.
    pub hostcall_bytes: Option<NonZeroUsize>,
    /// Resource handles that the guest may hold at once. Default: 1024.
    pub handles: Option<usize>,
    /// The arguments of a call. Default: 1048576, 1 MiB.
    pub arguments_bytes: Option<NonZeroUsize>,
    /// The result of a call. Default: 4194304, 4 MiB.
    pub result_bytes: Option<NonZeroUsize>,
    /// Progress updates of one call. Default: 1000.
    pub progress_updates: Option<u32>,
    /// All progress updates of one call together. Default: 262144, 256 KiB.
    pub progress_bytes: Option<usize>,
    /// Log lines, standard output and standard error of one call together. Default: 65536, 64 KiB.
    pub log_bytes: Option<usize>,
    /// Calls of one plugin that run at once; more wait for their turn. Default: 64.
    pub concurrency: Option<NonZeroU32>,
    /// Calls of one plugin that wait for their turn; more are refused as busy. Default: 256.
    pub queue: Option<usize>,
    /// What the host holds in its own memory on behalf of one call. Default: 16777216, 16 MiB.
    pub host_bytes: Option<NonZeroUsize>,
    /// Calls of host functions. Default: 1000000.
    pub host_calls: Option<NonZeroU64>,
    /// How long one host function may take, in milliseconds. Default: 10000.
    pub host_call_ms: Option<NonZeroU64>,
    /// What one call writes to files; each new name counts as 4096. Default: 67108864, 64 MiB.
    pub files_written_bytes: Option<usize>,
    /// Requests over HTTP of one call. Default: 64.
    pub http_requests: Option<u32>,
    /// Requests over HTTP of one call at once. Default: 8.
    pub http_concurrent: Option<NonZeroU32>,
    /// How long one request over HTTP may take, in milliseconds. Default: 20000.
    pub http_ms: Option<NonZeroU64>,
    /// What all requests of one call send, headers included. Default: 8388608, 8 MiB.
    pub http_sent_bytes: Option<NonZeroUsize>,
    /// What all answers to one call bring, headers included, after decompression. Default: 16777216, 16 MiB.
    pub http_received_bytes: Option<NonZeroUsize>,
}

impl LimitsTable {
    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These limits, where nothing else is said.
    #[must_use]
    pub fn over(&self, others: Limits) -> Limits {
        let size = |own: Option<NonZeroUsize>, other| own.map_or(other, NonZeroUsize::get);
        let span = |own: Option<NonZeroU64>, other| own.map_or(other, |millis| Span::from_millis(millis.get()));
        Limits {
            time: span(self.time_ms, others.time),
            stop_grace: self.stop_grace_ms.map_or(others.stop_grace, Span::from_millis),
            memory: size(self.memory_bytes, others.memory),
            table_elements: self.table_elements.unwrap_or(others.table_elements),
            instances: size(self.instances, others.instances),
            hostcall_bytes: size(self.hostcall_bytes, others.hostcall_bytes),
            handles: self.handles.unwrap_or(others.handles),
            arguments: size(self.arguments_bytes, others.arguments),
            result: size(self.result_bytes, others.result),
            progress_updates: self.progress_updates.unwrap_or(others.progress_updates),
            progress_bytes: self.progress_bytes.unwrap_or(others.progress_bytes),
            log_bytes: self.log_bytes.unwrap_or(others.log_bytes),
            concurrency: self.concurrency.map_or(others.concurrency, |most| most.get() as usize),
            queue: self.queue.unwrap_or(others.queue),
            host_bytes: size(self.host_bytes, others.host_bytes),
            host_calls: self.host_calls.map_or(others.host_calls, NonZeroU64::get),
            host_call_time: span(self.host_call_ms, others.host_call_time),
            files_written: self.files_written_bytes.unwrap_or(others.files_written),
            http_requests: self.http_requests.unwrap_or(others.http_requests),
            http_concurrent: self.http_concurrent.map_or(others.http_concurrent, NonZeroU32::get),
            http_time: span(self.http_ms, others.http_time),
            http_sent: size(self.http_sent_bytes, others.http_sent),
            http_received: size(self.http_received_bytes, others.http_received),
        }
    }
}
