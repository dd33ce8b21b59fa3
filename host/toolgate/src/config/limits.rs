//! The table `[limits]`: every limit of [`domain::Limits`], with its unit in its name.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use domain::{Limits, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on one call of a guest. Missing keys keep their value. A durable call keeps the limits that its guest
/// can observe, such as `memory_bytes`, from the time when it was accepted. A change is for later calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Time from instantiation to result in milliseconds, including waits in host functions. Each run of a durable call has all
    /// of it for its new code; what it repeats (`replay_ms`) and the waits between runs do not count. Default: 30000.
    pub time_ms: Option<NonZeroU64>,
    /// Processor time in milliseconds for the code that one run of a durable call repeats. The repetition may take ten times as
    /// long in all. Default: 30000.
    pub replay_ms: Option<NonZeroU64>,
    /// How long the host keeps the instance of a durable call that waits, in milliseconds. If the wait ends in this time, the next
    /// run repeats nothing. Kept instances have at most half of `pool` and of `guest_memory_bytes`, and are dropped when other
    /// calls need the room. 0 keeps none. Default: 0.
    pub linger_ms: Option<u64>,
    /// How long a call can continue after it was cancelled, and how long before its time limit it is asked to stop, in
    /// milliseconds. 0 stops a cancelled call at once. Default: 1000.
    pub stop_grace_ms: Option<u64>,
    /// The size of all linear memories together, in bytes. Default: 134217728, 128 MiB.
    pub memory_bytes: Option<NonZeroUsize>,
    /// The number of elements of all tables together. Default: 20000.
    pub table_elements: Option<usize>,
    /// The number of core instances of the component, at most `compile.core_instances`. Default: 16.
    pub instances: Option<NonZeroUsize>,
    /// The size of the data that one host call can copy from the guest, in bytes. Default: 8388608, 8 MiB.
    pub hostcall_bytes: Option<NonZeroUsize>,
    /// The number of resource handles that the guest can hold at once. Default: 1024.
    pub handles: Option<usize>,
    /// The size of the arguments, in bytes. Default: 1048576, 1 MiB.
    pub arguments_bytes: Option<NonZeroUsize>,
    /// The size of the result, in bytes. Default: 4194304, 4 MiB.
    pub result_bytes: Option<NonZeroUsize>,
    /// The number of progress updates of one call. Default: 1000.
    pub progress_updates: Option<u32>,
    /// The size of all progress updates of one call together, in bytes. Default: 262144, 256 KiB.
    pub progress_bytes: Option<usize>,
    /// The size of log lines, standard output and standard error of one call together, in bytes. Of a longer log, the host
    /// keeps the beginning, and the last lines in a quarter of this size. Default: 65536, 64 KiB.
    pub log_bytes: Option<usize>,
    /// The number of calls of one plugin that run at once. Others wait. Default: 64.
    pub concurrency: Option<NonZeroU32>,
    /// The number of waiting calls of one plugin. Others are refused as busy. Default: 256.
    pub queue: Option<usize>,
    /// The host memory of one call, in bytes. Default: 16777216, 16 MiB.
    pub host_bytes: Option<NonZeroUsize>,
    /// The number of calls of host functions. Default: 1000000.
    pub host_calls: Option<NonZeroU64>,
    /// The time limit of one host function, in milliseconds. Default: 10000.
    pub host_call_ms: Option<NonZeroU64>,
    /// The bytes that one call writes to files. Each new name counts as 4096. Default: 67108864, 64 MiB.
    pub files_written_bytes: Option<usize>,
    /// The bytes of key-value data that one call writes. Each write counts as its names, its value and 128 bytes.
    /// Default: 67108864, 64 MiB.
    pub keyvalue_written_bytes: Option<NonZeroUsize>,
    /// The bytes of key-value data that all calls of one plugin write per second. After a pause they can write
    /// `keyvalue_written_bytes` at once. Default: 4194304, 4 MiB.
    pub keyvalue_bytes_per_second: Option<NonZeroUsize>,
    /// The number of HTTP requests of one call. Default: 64.
    pub http_requests: Option<u32>,
    /// The number of simultaneous HTTP requests of one call. Default: 8.
    pub http_concurrent: Option<NonZeroU32>,
    /// The time limit of one HTTP request, in milliseconds. Default: 20000.
    pub http_ms: Option<NonZeroU64>,
    /// The size of all HTTP requests of one call, with headers, in bytes. Default: 8388608, 8 MiB.
    pub http_sent_bytes: Option<NonZeroUsize>,
    /// The size of all HTTP responses to one call, with headers and after decompression, in bytes. Default: 16777216, 16 MiB.
    pub http_received_bytes: Option<NonZeroUsize>,
}

impl LimitsTable {
    /// Whether no key is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limits of this table; other limits come from `others`.
    #[must_use]
    pub fn over(&self, others: Limits) -> Limits {
        let size = |own: Option<NonZeroUsize>, other| own.map_or(other, NonZeroUsize::get);
        let span = |own: Option<NonZeroU64>, other| own.map_or(other, |millis| Span::from_millis(millis.get()));
        Limits {
            time: span(self.time_ms, others.time),
            replay: span(self.replay_ms, others.replay),
            linger: self.linger_ms.map_or(others.linger, Span::from_millis),
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
            concurrency: self.concurrency.map_or(others.concurrency, |number| number.get() as usize),
            queue: self.queue.unwrap_or(others.queue),
            host_bytes: size(self.host_bytes, others.host_bytes),
            host_calls: self.host_calls.map_or(others.host_calls, NonZeroU64::get),
            host_call_time: span(self.host_call_ms, others.host_call_time),
            files_written: self.files_written_bytes.unwrap_or(others.files_written),
            keyvalue_written: size(self.keyvalue_written_bytes, others.keyvalue_written),
            keyvalue_rate: size(self.keyvalue_bytes_per_second, others.keyvalue_rate),
            http_requests: self.http_requests.unwrap_or(others.http_requests),
            http_concurrent: self.http_concurrent.map_or(others.http_concurrent, NonZeroU32::get),
            http_time: span(self.http_ms, others.http_time),
            http_sent: size(self.http_sent_bytes, others.http_sent),
            http_received: size(self.http_received_bytes, others.http_received),
        }
    }
}
