//! The health of the store, for those who watch the host.

use super::fault::StoreFault;

/// The faults of the disk and the database.
#[derive(Debug, Clone, Default)]
pub struct StoreHealth {
    /// Why the store takes no commits at present, or why reads take too long. `None`: both go on.
    pub failure: Option<StoreFault>,
    /// How often the disk refused a change since the store was opened, so that the store took no more commits.
    pub failures: u64,
    /// How many damaged records were found since the store was opened. Each is set aside: reads that need it fail, and
    /// listings, feeds and the audit go on without it. A damaged page of the database counts too: every read that needs it
    /// fails.
    pub damaged_records: usize,
    /// The number of reads that failed because the disk did not answer in time.
    pub timed_out_reads: u64,
    /// How often the store has waited for the disk since it was opened. Commits at the same time share one wait.
    pub syncs: u64,
}

/// Reports the faults of a store.
pub trait Health: Send + Sync {
    /// The faults so far. A store without a disk has none.
    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}
