//! The resources that one run of a guest used, in the units of its limits. A receipt does not count instructions. One
//! language can need a hundred times more of them than another for the same tool. An operator pays for time and memory.

use crate::journal::JournalSummary;

/// The resources that the runs of a call used. The record of the call contains them. A call without a run has no receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Receipt {
    /// The time from instantiation to the end in microseconds, including waits in host functions, of all runs.
    pub micros: u64,
    /// The peak size of all linear memories, in bytes.
    pub peak_memory: u64,
    /// The peak of the host memory that the call used, in bytes.
    pub peak_host_bytes: u64,
    /// The number of calls of host functions.
    pub host_calls: u64,
    /// The bytes that the guest received: arguments, stored values, HTTP responses and contents of files.
    pub bytes_in: u64,
    /// The bytes that the guest produced: result, progress, log, stored values, contents of files and HTTP requests.
    pub bytes_out: u64,
    /// The journal of a durable call when its last run ended. A run that was stopped or killed may have recorded more.
    pub journal: Option<JournalSummary>,
}

impl Receipt {
    /// The usage of several runs of one call, which never overlap. `None` if there was none.
    #[must_use]
    pub(crate) fn of_runs(runs: impl Iterator<Item = Self>) -> Option<Self> {
        runs.reduce(|all, run| Self {
            micros: all.micros.saturating_add(run.micros),
            peak_memory: all.peak_memory.max(run.peak_memory),
            peak_host_bytes: all.peak_host_bytes.max(run.peak_host_bytes),
            host_calls: all.host_calls.saturating_add(run.host_calls),
            bytes_in: all.bytes_in.saturating_add(run.bytes_in),
            bytes_out: all.bytes_out.saturating_add(run.bytes_out),
            journal: run.journal.or(all.journal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_has_the_journal_of_the_last_run_that_has_one() {
        let run = |entries: Option<u32>| {
            let journal = entries.map(|entries| JournalSummary { entries, ..JournalSummary::default() });
            Receipt { host_calls: 1, journal, ..Receipt::default() }
        };
        let all = Receipt::of_runs([run(Some(2)), run(Some(5)), run(None)].into_iter()).unwrap();
        assert_eq!((all.host_calls, all.journal.map(|journal| journal.entries)), (3, Some(5)));
    }
}
