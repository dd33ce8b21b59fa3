//! Bounds on what one call of a guest may spend. Each is enforced in `sandbox`, and each has a guest in the test suite
//! that hits it.

use crate::Span;

/// What one call may spend. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from instantiation to result, waits in host functions included.
    pub time: Span,
    /// How long a call that should stop may go on: so long after it was cancelled it is ended, and so long before its
    /// time is over it hears of that, or at half of its time where that is later. Zero: a cancelled call is ended at
    /// once, and no call hears of anything.
    pub stop_grace: Span,
    /// All linear memories of the call together.
    pub memory: usize,
    /// Elements of all tables together.
    pub table_elements: usize,
    /// Core instances of the component.
    pub instances: usize,
    /// What one host call may copy out of the guest.
    pub hostcall_bytes: usize,
    /// Resource handles that the guest may hold at once.
    pub handles: usize,
    /// The arguments of a call.
    pub arguments: usize,
    /// The result of a call.
    pub result: usize,
    /// Progress updates of one call.
    pub progress_updates: u32,
    /// All progress updates of one call together.
    pub progress_bytes: usize,
    /// Log lines, standard output and standard error of one call together; the rest is counted and dropped.
    pub log_bytes: usize,
    /// Calls of one plugin that run at once; more wait for their turn.
    pub concurrency: usize,
    /// Calls of one plugin that wait for their turn; more are refused as busy.
    pub queue: usize,
    /// What the host holds in its own memory on behalf of the call: handles and what is behind them, buffers, bodies.
    pub host_bytes: usize,
    /// Calls of host functions.
    pub host_calls: u64,
    /// How long one host function may take, except for those whose purpose is to wait.
    pub host_call_time: Span,
    /// What the call writes to files; each new name counts as 4 KiB.
    pub files_written: usize,
    /// Requests over HTTP.
    pub http_requests: u32,
    /// Requests over HTTP at once.
    pub http_concurrent: u32,
    /// How long one request over HTTP may take, from its name's resolution to the last byte of its answer.
    pub http_time: Span,
    /// What all requests of the call send, headers included.
    pub http_sent: usize,
    /// What all answers to the call bring, headers included, after decompression.
    pub http_received: usize,
}

impl Default for Limits {
    /// Enough for a Python or JavaScript guest, which needs 13 MB before it does anything.
    fn default() -> Self {
        Self {
            time: Span::from_secs(30),
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
            http_requests: 64,
            http_concurrent: 8,
            http_time: Span::from_secs(20),
            http_sent: 8 << 20,
            http_received: 16 << 20,
        }
    }
}
