//! The disk operations of the committing thread. They are a trait, so that tests can observe their order and let one
//! of them fail.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::{FaultKind, Head, StoreFault};
use domain::journal::ValueChange;

use super::cleaning::{CLEANING, Cleaning};
use super::database_file::DatabaseFile;
use super::folder::{is_given_back, open_sled, remove_unfinished_snapshots};
use super::keys;
use super::reader::Reader;
use super::space::Space;
use super::tree::{Tree, attempt};
use super::values::{KeyValueTree, VALUES, max_unsynced};
use super::watchdog::{Watch, Watchdog};
use crate::StoreSettings;
use crate::fault::fault;

/// The database is cleaned after each of this many parts of a segment.
const CLEANINGS: usize = 16;

/// The maximum number of steps of a cleaning for each of these parts that was written. Commits wait meanwhile.
const STEPS: usize = 16;

/// The writes of a batch.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) commits: sled::Batch,
    /// Changes of the plugins' data that belong to the commits, in their order.
    pub(super) values: Vec<ValueChange>,
}

/// The steps that make a batch durable. A batch is durable after `write`, `flush` and `sync` succeeded, in this order.
pub(super) trait Disk: Send + 'static {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault>;

    /// The keys with this prefix.
    fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreFault>;

    /// Applies a batch of about `bytes` bytes in memory, completely or not at all.
    fn write(&mut self, batch: Batch, bytes: usize) -> Result<(), StoreFault>;

    /// Passes all applied batches to the operating system.
    fn flush(&mut self) -> Result<(), StoreFault>;

    /// Returns when the operating system has written all flushed batches to the disk.
    fn sync(&mut self) -> Result<(), StoreFault>;

    /// Moves pages of the database, so that it can use space again that was freed, and makes them durable. `written` is
    /// the size of all writes since the last cleaning. Returns whether the database is clean. Does nothing and returns
    /// `None` if the database was clean and little was written since.
    fn clean(&mut self, written: usize) -> Result<Option<bool>, StoreFault>;

    /// Opens the database again, after a step other than `sync` failed for lack of space. Returns the head of the
    /// database, which must continue `durable`. Returns `None` if the caller must try again later. An error is final.
    fn reopen(&mut self, durable: Head) -> Result<Option<Head>, StoreFault>;
}

/// sled's trees, and the file that contains them.
pub(super) struct SledDisk {
    /// The reader of the tree of commits.
    pub(super) reader: Reader,
    /// The tree of the plugins' data.
    pub(super) values: KeyValueTree,
    pub(super) cleaning: Cleaning,
    /// The store's own handle of sled's file.
    pub(super) file: DatabaseFile,
    pub(super) path: PathBuf,
    pub(super) settings: StoreSettings,
    pub(super) space: Space,
    pub(super) watch: Arc<Watch>,
    /// Ends with the committing thread, so that it does not keep the database open.
    pub(super) _watchdog: Watchdog,
}

impl Disk for SledDisk {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault> {
        self.reader.tree.get(key).map_err(fault("read an index"))
    }

    fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreFault> {
        let keys = self.reader.tree.scan_prefix(prefix).keys();
        keys.map(|key| Ok(key.map_err(fault("read an index"))?.to_vec())).collect()
    }

    fn write(&mut self, Batch { commits, values }: Batch, bytes: usize) -> Result<(), StoreFault> {
        // Earlier writes of values are on disk before a batch that replaces them: they would be made again if the database
        // had to be opened again.
        if bytes > max_unsynced(&self.settings) || !values.is_empty() {
            self.values.make_durable()?;
        }
        let applied = match values.is_empty() {
            true => self.reader.tree.apply_batch(commits),
            false => self.reader.tree.apply_with(&commits, self.values.tree(), &values),
        };
        applied.map_err(fault("write a batch"))
    }

    /// Does not use `flush_async`, which deadlocks with several concurrent callers (sled issue 1308).
    fn flush(&mut self) -> Result<(), StoreFault> {
        let _step = self.watch.begin_flush();
        self.values.begin_flush();
        self.reader.tree.flush().map(drop).map_err(fault("flush"))
    }

    /// sled's own flush ends in `sync_file_range`, so its data may not survive a loss of power.
    fn sync(&mut self) -> Result<(), StoreFault> {
        let _step = self.watch.begin_flush();
        self.file.sync().map_err(fault("sync"))?;
        self.values.synced();
        Ok(())
    }

    fn clean(&mut self, written: usize) -> Result<Option<bool>, StoreFault> {
        let parts = written / (self.settings.segment_bytes / CLEANINGS);
        if parts > 0 {
            self.cleaning.begin();
        } else if self.cleaning.is_done() {
            return Ok(None);
        }
        let _step = self.watch.begin_flush();
        // Moved pages are writes without a sync too.
        self.values.make_durable()?;
        let max = max_unsynced(&self.settings);
        self.values.quiet(|| {
            let (mut unsynced, mut any_moved) = (0, false);
            let sync =
                || self.file.sync().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) });
            for _ in 0..STEPS * parts.clamp(1, CLEANINGS) {
                let (written, moved) = self.cleaning.step()?;
                (unsynced, any_moved) = (unsynced + written, any_moved | moved);
                if self.cleaning.is_done() {
                    break;
                }
                if unsynced > max {
                    sync()?;
                    (unsynced, any_moved) = (0, false);
                }
            }
            // Only a moved page lets sled use a segment again.
            if any_moved {
                sync()?;
            }
            Ok(Some(self.cleaning.is_done()))
        })
    }

    fn reopen(&mut self, durable: Head) -> Result<Option<Head>, StoreFault> {
        if !self.space.is_back(&self.path) {
            return Ok(None);
        }
        // This handle was open during the failed writes, so its sync reports whether the kernel lost any of them.
        self.file.sync().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) })?;
        self.close(FaultKind::NoSpace);
        self.reader.recoveries.fetch_add(1, Ordering::Release);
        match self.open() {
            Err(StoreFault { kind: FaultKind::NoSpace, .. }) => Ok(None),
            Err(fault) => {
                // Only a restart helps, so reads must not say that space does.
                self.close(FaultKind::Disk);
                Err(fault)
            }
            Ok(()) => self.reader.continues(durable).map(Some),
        }
    }
}

impl SledDisk {
    /// Every use of the trees fails with a fault of this kind until they are open again.
    fn close(&self, kind: FaultKind) {
        self.reader.tree.close(kind);
        self.values.close(kind);
        self.cleaning.close(kind);
    }

    fn open(&mut self) -> Result<(), StoreFault> {
        let attempted = "open the database again";
        let database = self.path.join("sled");
        if !is_given_back(&database.join("db")) {
            let reason = "somebody still reads it".to_owned();
            return Err(StoreFault { kind: FaultKind::NoSpace, attempted, reason });
        }
        remove_unfinished_snapshots(&database).map_err(fault(attempted))?;
        let db = open_sled(&database, &self.settings).map_err(fault(attempted))?;
        let values = attempt(|| db.open_tree(VALUES)).map_err(fault(attempted))?;
        let cleaning = attempt(|| db.open_tree(CLEANING)).map_err(fault(attempted))?;
        self.file = self.file.again(&self.path).map_err(fault(attempted))?;
        // sled may have written more data while it closed. This data must be on the disk before readers see it.
        self.file.sync().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) })?;
        self.reader.tree.reopen((*db).clone());
        self.cleaning.reopen(cleaning);
        self.values.reopen(values)
    }
}

/// Makes sled look for an error that it did not report to a flush. The value is another one each time, because sled
/// does not write what is there already.
pub(super) fn wake_flush(tree: &Tree) {
    static WAKES: AtomicU64 = AtomicU64::new(0);
    tracing::warn!("the disk has not finished a write for more than a second");
    let number = WAKES.fetch_add(1, Ordering::Relaxed);
    // The flush gets the same error.
    let _ = tree.insert(keys::WOKEN, &number.to_be_bytes());
}
