//! The usage of one run of a guest.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The length of the journal of a durable call, and a digest over its entries.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct JournalSummary {
    /// The number of entries.
    pub entries: u32,
    /// Their size, as `journal_bytes` limits it.
    pub bytes: u64,
    /// A SHA-256 over the entries. It stays where the receipt is kept, also after the journal is removed. The first entry has a
    /// random salt, so the digest does not reveal a short result.
    pub digest: String,
}

/// The usage of one run of a guest.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// Microseconds from the moment that it got a permit to its end, including waits in host functions.
    pub time_us: u64,
    /// The peak size of its linear memories, in bytes.
    pub peak_memory_bytes: u64,
    /// The peak of the host memory that was used for it, in bytes.
    pub peak_host_bytes: u64,
    /// The number of calls of host functions.
    pub host_calls: u64,
    /// Bytes into the guest: arguments, stored values, bodies of responses, contents of files.
    pub bytes_in: u64,
    /// Bytes out of the guest: result, progress, log, and everything that it stored, wrote or sent.
    pub bytes_out: u64,
    /// For a durable call: its journal when its last run ended. A run that was stopped or killed may have recorded more.
    pub journal: Option<JournalSummary>,
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
            journal: receipt.journal.map(|journal| JournalSummary {
                entries: journal.entries,
                bytes: journal.bytes,
                digest: journal.digest.to_string(),
            }),
        }
    }
}
