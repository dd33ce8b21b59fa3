//! A new store that nobody uses yet, while it is filled. Its format is 3, because the migration then makes all indexes of later
//! formats.

use sled::Batch;

use dispatch::ports::StoreFault;

use super::database_file::DatabaseFile;
use super::tree::Tree;
use super::{committer, keys};
use crate::fault::fault;

/// The entries that are written at once.
pub(super) const AT_ONCE: usize = 1_000;

/// The bytes that are written at once.
const BYTES_AT_ONCE: usize = 8 << 20;

/// The tree of the commits.
pub(super) struct Building {
    pub(super) tree: Tree,
    batch: Batch,
    entries: usize,
    bytes: usize,
    attempted: &'static str,
}

impl Building {
    pub(super) fn new(tree: Tree, attempted: &'static str) -> Self {
        Self { tree, batch: Batch::default(), entries: 0, bytes: 0, attempted }
    }

    pub(super) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreFault> {
        self.bytes += key.len() + value.len();
        committer::insert(&mut self.batch, key, value);
        self.count()
    }

    pub(super) fn remove(&mut self, key: Vec<u8>) -> Result<(), StoreFault> {
        self.batch.remove(key);
        self.count()
    }

    fn count(&mut self) -> Result<(), StoreFault> {
        self.entries += 1;
        if self.entries < AT_ONCE && self.bytes < BYTES_AT_ONCE { Ok(()) } else { self.write() }
    }

    /// Makes everything so far visible to reads.
    pub(super) fn write(&mut self) -> Result<(), StoreFault> {
        (self.entries, self.bytes) = (0, 0);
        self.tree.apply_batch(std::mem::take(&mut self.batch)).map_err(fault(self.attempted))
    }

    /// Writes the format, and returns once everything in the database is on disk. `format` is at most 3.
    pub(super) fn finish(&mut self, format: u8, file: &DatabaseFile) -> Result<(), StoreFault> {
        self.write()?;
        self.tree.insert(keys::FORMAT, &[format]).map_err(fault(self.attempted))?;
        self.tree.flush().map_err(fault(self.attempted))?;
        file.sync().map_err(fault(self.attempted))
    }
}
