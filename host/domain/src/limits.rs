//! Limits on one call of a guest, and on the declaration of one plugin. The host enforces each of them. For each, the test suite
//! has a guest that exceeds it.

use crate::Span;

/// The limits on one call. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time from instantiation to result, including waits in host functions.
    pub time: Span,
    /// The processor time for the part that one run of a durable call repeats. It does not count against `time`.
    pub replay: Span,
    /// The time that the host keeps the instance of a durable call that waits, so that the next run need not repeat anything.
    pub linger: Span,
    /// The time that a call gets to stop by itself. The host ends a cancelled call after this time. The host also asks
    /// a call to stop this long before its time limit, but not before half of that limit. Zero: the host ends a
    /// cancelled call at once, and asks no call to stop before its time limit.
    pub stop_grace: Span,
    /// The size of all linear memories together.
    pub memory: usize,
    /// The number of elements of all tables together.
    pub table_elements: usize,
    /// The number of core instances of the component.
    pub instances: usize,
    /// The size of the data that one host call can copy from the guest.
    pub hostcall_bytes: usize,
    /// The number of resource handles that the guest can hold at once.
    pub handles: usize,
    pub arguments: usize,
    pub result: usize,
    pub progress_updates: u32,
    /// The size of all progress updates together.
    pub progress_bytes: usize,
    /// The size of log lines, standard output and standard error together. The host keeps the beginning, and the last lines
    /// in a quarter of this size. It drops and counts the rest.
    pub log_bytes: usize,
    /// The number of calls of one plugin that run at once. Others wait.
    pub concurrency: usize,
    /// The number of waiting calls of one plugin. Others are refused as busy.
    pub queue: usize,
    /// The host memory that the call uses: resource handles, the data behind them, buffers and bodies.
    pub host_bytes: usize,
    /// The number of calls of host functions.
    pub host_calls: u64,
    /// The time limit of one host function. Host functions that exist to wait are exempt.
    pub host_call_time: Span,
    /// The size of the data that the call writes to files. Each new name counts as 4 KiB.
    pub files_written: usize,
    /// The size of the key-value data that the call writes. Each write counts as its names, its value and 128 bytes.
    pub keyvalue_written: usize,
    /// The key-value data that all calls of one plugin write per second. After a pause they may write
    /// `keyvalue_written` at once.
    pub keyvalue_rate: usize,
    pub http_requests: u32,
    /// The number of simultaneous HTTP requests.
    pub http_concurrent: u32,
    /// The time limit of one HTTP request, from name resolution to the last byte of the response.
    pub http_time: Span,
    /// The size of all HTTP requests together, with headers.
    pub http_sent: usize,
    /// The size of all HTTP responses together, with headers and after decompression.
    pub http_received: usize,
}

/// The limits on one call that its guest can observe: it gets an error, or less than it asked for. All runs of a durable call have
/// the same ones, so that a later run repeats an earlier one also if the operator has changed the limits meanwhile. The fields are
/// those of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservableLimits {
    pub memory: usize,
    pub table_elements: usize,
    pub instances: usize,
    pub hostcall_bytes: usize,
    pub handles: usize,
    pub arguments: usize,
    pub host_bytes: usize,
    pub host_calls: u64,
    pub keyvalue_written: usize,
    pub http_requests: u32,
    pub http_concurrent: u32,
    pub http_sent: usize,
    pub http_received: usize,
}

impl Limits {
    #[must_use]
    pub const fn observable(&self) -> ObservableLimits {
        ObservableLimits {
            memory: self.memory,
            table_elements: self.table_elements,
            instances: self.instances,
            hostcall_bytes: self.hostcall_bytes,
            handles: self.handles,
            arguments: self.arguments,
            host_bytes: self.host_bytes,
            host_calls: self.host_calls,
            keyvalue_written: self.keyvalue_written,
            http_requests: self.http_requests,
            http_concurrent: self.http_concurrent,
            http_sent: self.http_sent,
            http_received: self.http_received,
        }
    }

    /// These limits with others for all that a guest can observe.
    #[must_use]
    pub const fn with_observable(self, observable: &ObservableLimits) -> Self {
        let ObservableLimits {
            memory,
            table_elements,
            instances,
            hostcall_bytes,
            handles,
            arguments,
            host_bytes,
            host_calls,
            keyvalue_written,
            http_requests,
            http_concurrent,
            http_sent,
            http_received,
        } = *observable;
        Self {
            memory,
            table_elements,
            instances,
            hostcall_bytes,
            handles,
            arguments,
            host_bytes,
            host_calls,
            keyvalue_written,
            http_requests,
            http_concurrent,
            http_sent,
            http_received,
            ..self
        }
    }
}

impl Default for Limits {
    /// These limits suffice for a Python or JavaScript guest, which needs 13 MB before its code runs.
    fn default() -> Self {
        Self {
            time: Span::from_secs(30),
            replay: Span::from_secs(30),
            linger: Span::ZERO,
            stop_grace: Span::from_secs(1),
            memory: 128 << 20,
            table_elements: 20_000,
            instances: 16,
            hostcall_bytes: 8 << 20,
            handles: 1024,
            arguments: 1 << 20,
            result: 4 << 20,
            progress_updates: 1_000,
            progress_bytes: 256 << 10,
            log_bytes: 64 << 10,
            concurrency: 64,
            queue: 256,
            host_bytes: 16 << 20,
            host_calls: 1_000_000,
            host_call_time: Span::from_secs(10),
            files_written: 64 << 20,
            keyvalue_written: 64 << 20,
            keyvalue_rate: 4 << 20,
            http_requests: 64,
            http_concurrent: 8,
            http_time: Span::from_secs(20),
            http_sent: 8 << 20,
            http_received: 16 << 20,
        }
    }
}

/// The limits on the declaration of one plugin, and on the run in which the plugin declares its tools. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogLimits {
    pub tools: usize,
    /// The size of the answer of `tools()`, and of the declaration in a component's section.
    pub declaration: usize,
    /// The size of the description of one tool.
    pub description: usize,
    /// The size of one schema.
    pub schema: usize,
    /// The size of the options of one tool.
    pub options: usize,
    /// The time from instantiation to the answer of `tools()`.
    pub time: Span,
    /// The size of all linear memories together.
    pub memory: usize,
    /// The number of elements of all tables together.
    pub table_elements: usize,
    /// The number of core instances of the component.
    pub instances: usize,
    /// The number of resource handles that the guest can hold at once.
    pub handles: usize,
    /// The host memory that the run uses.
    pub host_bytes: usize,
    /// The number of calls of host functions.
    pub host_calls: u64,
}

impl CatalogLimits {
    /// The largest limits that an operator can set.
    pub const MAX: Self = Self {
        tools: 4_096,
        declaration: 16 << 20,
        description: 256 << 10,
        schema: 256 << 10,
        options: 1 << 20,
        time: Span::from_secs(60),
        memory: 4 << 30,
        table_elements: 10_000_000,
        instances: 1_000,
        handles: 65_536,
        host_bytes: 256 << 20,
        host_calls: 100_000_000,
    };

    /// The limits of the run. It gets no arguments, writes nothing and sends nothing.
    #[must_use]
    pub const fn of_run(&self) -> Limits {
        Limits {
            time: self.time,
            replay: Span::ZERO,
            linger: Span::ZERO,
            stop_grace: Span::ZERO,
            memory: self.memory,
            table_elements: self.table_elements,
            instances: self.instances,
            hostcall_bytes: self.declaration,
            handles: self.handles,
            arguments: 0,
            result: self.declaration,
            progress_updates: 0,
            progress_bytes: 0,
            log_bytes: 4 << 10,
            concurrency: 1,
            queue: 0,
            host_bytes: self.host_bytes,
            host_calls: self.host_calls,
            host_call_time: Span::from_secs(1),
            files_written: 0,
            keyvalue_written: 0,
            keyvalue_rate: 0,
            http_requests: 0,
            http_concurrent: 0,
            http_time: Span::from_secs(1),
            http_sent: 0,
            http_received: 0,
        }
    }
}

impl Default for CatalogLimits {
    /// The answer is a constant, but a Go or Python guest starts its whole runtime for it.
    fn default() -> Self {
        Self {
            tools: 256,
            declaration: 1 << 20,
            description: 8 << 10,
            schema: 64 << 10,
            options: 192 << 10,
            time: Span::from_secs(2),
            memory: 64 << 20,
            table_elements: 20_000,
            instances: 16,
            handles: 256,
            host_bytes: 1 << 20,
            host_calls: 100_000,
        }
    }
}
