//! The disk as the committing thread sees it, as a trait, so that tests can watch the order of steps and let one fail.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use dispatch::ports::{FaultKind, Head, StoreFault};

use super::blobs::SEGMENT;
use super::folder::{is_given_back, open_sled, remove_unfinished_snapshots};
use super::reader::Reader;
use super::tree::attempt;
use super::{KeyValueTree, VALUES};
use crate::StoreSettings;
use crate::fault::fault;

/// A file that is written to find out whether there is space.
pub(super) const PROBE: &str = "space";

/// The steps that make a batch durable: it is durable when `write`, `flush` and `sync` have returned, in this order.
pub(super) trait Disk: Send + 'static {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault>;

    /// Applies a batch in memory, all or nothing.
    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault>;

    /// Passes everything that was applied to the operating system.
    fn flush(&mut self) -> Result<(), StoreFault>;

    /// Returns once the operating system has it on the disk.
    fn sync(&mut self) -> Result<(), StoreFault>;

    /// After a step other than a sync failed for lack of space: opens the database again, if there is space, and
    /// returns its head, which must continue `durable`. `None`: not yet. An error: never.
    fn reopen(&mut self, durable: Head) -> Result<Option<Head>, StoreFault>;
}

/// sled's trees, and the file that holds them.
pub(super) struct SledDisk {
    /// The tree of commits. Its reader is asked what is stored.
    pub(super) reader: Reader,
    /// The tree of the plugins' data.
    pub(super) values: KeyValueTree,
    /// Our own handle of sled's file.
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) settings: StoreSettings,
}

impl Disk for SledDisk {
    fn get(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault> {
        self.reader.tree.get(key).map_err(fault("read an index"))
    }

    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault> {
        self.reader.tree.apply_batch(batch).map_err(fault("write a batch"))
    }

    /// Not `flush_async`: with several callers at once it deadlocks (sled issue 1308).
    fn flush(&mut self) -> Result<(), StoreFault> {
        self.values.begin_flush();
        self.reader.tree.flush().map_err(fault("flush"))
    }

    /// sled's own flush ends in `sync_file_range`, which does not survive a loss of power.
    fn sync(&mut self) -> Result<(), StoreFault> {
        self.file.sync_data().map_err(fault("sync"))?;
        self.values.synced();
        Ok(())
    }

    fn reopen(&mut self, durable: Head) -> Result<Option<Head>, StoreFault> {
        if !has_space(&self.path) {
            return Ok(None);
        }
        // This handle was open during the failed writes. It reports whether the kernel lost any of them.
        self.file.sync_data().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) })?;
        self.reader.tree.close();
        self.values.tree.close();
        self.reader.recoveries.fetch_add(1, Ordering::Release);
        match self.open() {
            Err(StoreFault { kind: FaultKind::NoSpace, .. }) => return Ok(None),
            opened => opened?,
        }
        self.reader.continues(durable).map(Some)
    }
}

impl SledDisk {
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
        self.file = File::open(database.join("db")).map_err(fault(attempted))?;
        // sled may have written more while it closed. What it shows now must be on the disk before readers see it.
        self.file.sync_data().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) })?;
        self.reader.tree.reopen((*db).clone());
        self.values.tree.reopen(values);
        self.values.write_again()
    }
}

/// Whether sled can write: whether there is space for a segment and for a snapshot, in a file that is as long as sled's.
fn has_space(path: &Path) -> bool {
    let probe = path.join(PROBE);
    let written = fs::metadata(path.join("sled/db")).and_then(|sled| {
        let mut file = File::create(&probe)?;
        file.seek(SeekFrom::Start(sled.len()))?;
        file.write_all(&vec![0; 2 * SEGMENT])?;
        file.sync_all()
    });
    fs::remove_file(probe).is_ok() && written.is_ok()
}
