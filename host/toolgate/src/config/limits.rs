//! The table `[limits]`: every bound of [`domain::Limits`], each with its unit in its name.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use domain::{Limits, Span};
use schemars::JsonSchema;
use serde::Deserialize;

/// What one call of a guest may spend. What is not said stays as it is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Time from instantiation to result in milliseconds, waits in host functions included. Default: 30000.
    pub time_ms: Option<NonZeroU64>,
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
}

impl LimitsTable {
    /// These limits, where nothing else is said.
    #[must_use]
    pub fn over(&self, others: Limits) -> Limits {
        let size = |own: Option<NonZeroUsize>, other| own.map_or(other, NonZeroUsize::get);
        Limits {
            time: self.time_ms.map_or(others.time, |time| Span::from_millis(time.get())),
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
        }
    }
}
