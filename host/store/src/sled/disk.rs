//! The disk as the committing thread sees it, as a trait, so that tests can watch the order of steps and let one fail.

use std::fs::File;

use dispatch::ports::StoreFault;

use super::tree::Tree;
use crate::fault::fault;

/// The steps that make a batch durable: it is durable when `write`, `flush` and `sync` have returned, in this order.
pub(super) trait Disk: Send + 'static {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault>;

    /// Applies a batch in memory, all or nothing.
    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault>;

    /// Passes everything that was applied to the operating system.
    fn flush(&mut self) -> Result<(), StoreFault>;

    /// Returns once the operating system has it on the disk.
    fn sync(&mut self) -> Result<(), StoreFault>;
}

/// sled's tree, and the file that holds it.
pub(super) struct SledDisk {
    /// The tree of commits.
    pub(super) tree: Tree,
    /// Our own handle of sled's file.
    pub(super) file: File,
}

impl Disk for SledDisk {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault> {
        self.tree.get(key).map_err(fault("read an index"))
    }

    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault> {
        self.tree.apply_batch(batch).map_err(fault("write a batch"))
    }

    /// Not `flush_async`: with several callers at once it deadlocks (sled issue 1308).
    fn flush(&mut self) -> Result<(), StoreFault> {
        self.tree.flush().map_err(fault("flush"))
    }

    /// sled's own flush ends in `sync_file_range`, which does not survive a loss of power.
    fn sync(&mut self) -> Result<(), StoreFault> {
        self.file.sync_data().map_err(fault("sync"))
    }
}
