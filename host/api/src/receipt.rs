//! What a call spent, as it is read.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What one run of a guest spent.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// From the moment that it had a place to its end, in microseconds; waits in host functions included.
    pub time_us: u64,
    /// Its linear memories at their largest, in bytes.
    pub peak_memory_bytes: u64,
    /// What the host held in its own memory on its behalf, at its largest, in bytes.
    pub peak_host_bytes: u64,
    /// Calls of host functions.
    pub host_calls: u64,
    /// What went into the guest: arguments, and values, bodies and contents of files that it was given.
    pub bytes_in: u64,
    /// What came out of it: result, progress and log, and what it stored, wrote and sent.
    pub bytes_out: u64,
}

impl From<&domain::Receipt> for Receipt {
    fn from(receipt: &domain::Receipt) -> Self {
        Self {
            time_us: receipt.micros,
            peak_memory_bytes: receipt.peak_memory,
            peak_host_bytes: receipt.peak_host_bytes,
            host_calls: receipt.host_calls,
            bytes_in: receipt.bytes_in,
            bytes_out: receipt.bytes_out,
        }
    }
}
