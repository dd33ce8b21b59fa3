//! The tree of the plugins' data. Plugins' writes are not synced one by one: the next commit syncs them. But without a
//! commit their number would have no limit, and then a loss of power could damage what was synced long before.
//!
//! sled moves the pages of a segment that is mostly obsolete to the end of its log, and later writes over the segment.
//! In between it asks the system to write the moved pages, but it does not sync them. So after a loss of power they can
//! be missing, and the segment too. At least one whole segment lies in the log between a moved page and the write over
//! its old segment. So nothing is lost if the writes between two syncs are smaller than a segment
//! (`tests/tests/power_loss.rs`).

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::{FaultKind, StoreFault};
use tokio::sync::watch::Receiver;

use super::database_file::DatabaseFile;
use super::durable::Durable;
use super::folder::FolderLock;
use super::tree::Tree;
use super::watchdog::Watch;
use crate::StoreSettings;
use crate::fault::fault;
use crate::key_value::SortedMap;

/// The name of the tree.
pub(super) const VALUES: &str = "key-value";

/// How many times more bytes sled writes than it is given: it writes whole pages again, and moves others.
const AMPLIFICATION: usize = 16;

/// The bytes that an entry needs besides its key and its value.
const PER_ENTRY: usize = 64;

/// The maximum number of bytes that may be written without a sync.
pub(super) fn max_unsynced(settings: &StoreSettings) -> usize {
    settings.segment_bytes / AMPLIFICATION
}

/// The tree of the plugins' data. It takes no writes after the disk has failed.
#[derive(Clone)]
pub(super) struct KeyValueTree {
    tree: Tree,
    unsynced: Arc<Mutex<Unsynced>>,
    max_unsynced: usize,
    /// Another handle of sled's file than the one of the committing thread: the kernel reports a lost write once to
    /// each, and both must know.
    file: Arc<DatabaseFile>,
    durable: Receiver<Durable>,
    watch: Arc<Watch>,
    /// The folder is in use as long as there is a handle. Declared last, so that it is released last.
    _lock: Arc<FolderLock>,
}

/// Writes that may not be on disk yet, with the last value of each key. They are made again when the database is opened
/// again: a plugin that saw them may still be running.
#[derive(Default)]
struct Unsynced {
    /// Since the last flush began.
    new: Writes,
    /// Before the last flush.
    flushed: Writes,
    /// Why a sync failed. It is never tried again.
    failed: Option<StoreFault>,
}

#[derive(Default)]
struct Writes {
    values: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// The size of all writes, also of those whose value was replaced.
    bytes: usize,
}

impl KeyValueTree {
    pub(super) fn new(
        tree: Tree,
        file: DatabaseFile,
        durable: Receiver<Durable>,
        settings: &StoreSettings,
        watch: Arc<Watch>,
        lock: Arc<FolderLock>,
    ) -> Self {
        let (unsynced, file) = (Arc::default(), Arc::new(file));
        Self { tree, unsynced, max_unsynced: max_unsynced(settings), file, durable, watch, _lock: lock }
    }

    /// The tree, to read.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns once all writes are on disk.
    pub(super) fn make_durable(&self) -> Result<(), StoreFault> {
        self.sync(&mut self.unsynced())
    }

    fn sync(&self, unsynced: &mut Unsynced) -> Result<(), StoreFault> {
        if let Some(fault) = &unsynced.failed {
            return Err(fault.clone());
        }
        if unsynced.new.bytes + unsynced.flushed.bytes == 0 {
            return Ok(());
        }
        let _step = self.watch.begin_flush();
        self.tree.flush().map_err(fault("flush"))?;
        if let Err(error) = self.file.sync() {
            let fault = StoreFault { kind: FaultKind::Disk, ..fault("sync")(error) };
            unsynced.failed = Some(fault.clone());
            return Err(fault);
        }
        (unsynced.new, unsynced.flushed) = (Writes::default(), Writes::default());
        Ok(())
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreFault> {
        let done = match value {
            Some(value) => self.tree.insert(key, value),
            None => self.tree.remove(key),
        };
        done.map(drop).map_err(fault("write a value"))
    }

    /// The committing thread is about to flush.
    pub(super) fn begin_flush(&self) {
        let mut unsynced = self.unsynced();
        let Writes { values, bytes } = std::mem::take(&mut unsynced.new);
        unsynced.flushed.values.extend(values);
        unsynced.flushed.bytes += bytes;
    }

    /// The committing thread has synced what it flushed.
    pub(super) fn synced(&self) {
        self.unsynced().flushed = Writes::default();
    }

    /// Runs a step while nobody writes.
    pub(super) fn quiet<T>(&self, step: impl FnOnce() -> T) -> T {
        let _quiet = self.unsynced();
        step()
    }

    pub(super) fn close(&self, kind: FaultKind) {
        self.tree.close(kind);
    }

    /// Takes the tree of a database that was opened again, and makes all writes again that may be lost.
    pub(super) fn reopen(&self, tree: sled::Tree) -> Result<(), StoreFault> {
        self.tree.reopen(tree);
        let Unsynced { new, flushed, .. } = &*self.unsynced();
        let mut writes = flushed.values.iter().chain(&new.values);
        writes.try_for_each(|(key, value)| self.write(key, value.as_deref()))
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SortedMap for KeyValueTree {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(self.tree.get(key).map_err(fault("read a value"))?.map(|value| value.to_vec()))
    }

    /// Waits for the disk if too much was written without a sync.
    fn swap(&self, key: &[u8], _: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, StoreFault> {
        if let Durable::Failed(_, fault) = &*self.durable.borrow() {
            return Err(fault.clone());
        }
        // A flush that does not see this write in the list has written it if it is in the tree.
        let mut unsynced = self.unsynced();
        let bytes = key.len() + new.map_or(0, <[u8]>::len) + PER_ENTRY;
        if unsynced.new.bytes + unsynced.flushed.bytes + bytes > self.max_unsynced {
            self.sync(&mut unsynced)?;
        }
        self.write(key, new)?;
        unsynced.new.bytes += bytes;
        unsynced.new.values.insert(key.to_vec(), new.map(<[u8]>::to_vec));
        Ok(true)
    }

    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault> {
        for entry in self.tree.range((key, Bound::Unbounded)) {
            let (key, value) = entry.map_err(fault("read values"))?;
            if !each(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}
