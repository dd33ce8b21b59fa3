//! sled's file, as the store syncs it.
//!
//! After a failed sync the kernel may have dropped data that the next reads still show, and the next sync would report
//! success. So the failure leaves a mark in the folder, and the next start copies the file into one that syncs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mark of a failed sync.
const UNSYNCED: &str = "unsynced";

/// A handle of sled's file. The kernel reports a lost write once to each handle.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    file: File,
    mark: PathBuf,
    syncs: Syncs,
}

/// The number of syncs of a store's files since the store was opened.
#[derive(Debug, Clone, Default)]
pub(super) struct Syncs(Arc<AtomicU64>);

impl Syncs {
    /// Counts a sync that is about to begin.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl DatabaseFile {
    /// Opens the file of the store in this folder.
    pub(super) fn open(store: &Path, syncs: Syncs) -> io::Result<Self> {
        Ok(Self { file: File::open(database(store))?, mark: store.join(UNSYNCED), syncs })
    }

    /// Opens it once more.
    pub(super) fn again(&self, store: &Path) -> io::Result<Self> {
        Self::open(store, self.syncs.clone())
    }

    /// Returns when the operating system has written the content to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.syncs.begin();
        self.file.sync_data().inspect_err(|_| {
            if let Err(error) = fs::write(&self.mark, "") {
                let file = self.mark.display();
                tracing::error!(%file, %error, "the mark of a failed sync could not be written: create this file before the next start");
            }
        })
    }
}

/// Copies sled's file if its last sync failed. No process may use it.
pub(super) fn copy_unsynced(store: &Path) -> io::Result<()> {
    let (mark, file) = (store.join(UNSYNCED), database(store));
    if !mark.exists() {
        return Ok(());
    }
    tracing::warn!(file = %file.display(), "a sync of the database failed; it is copied into a file that syncs");
    let copy = file.with_extension("copy");
    fs::copy(&file, &copy)?;
    File::open(&copy)?.sync_all()?;
    fs::rename(copy, &file)?;
    File::open(store.join("sled"))?.sync_all()?;
    fs::remove_file(mark)
}

fn database(store: &Path) -> PathBuf {
    store.join("sled").join("db")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use dispatch::ports::{Commit, Log as _, RowChange};
    use domain::{ConversationId, PrincipalId};

    use super::super::SledStore;
    use super::*;
    use crate::StoreSettings;

    #[tokio::test]
    async fn database_is_copied_after_a_failed_sync() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (conversation, owner) = (ConversationId::new("c").unwrap(), PrincipalId::new("ann").unwrap());
        let row = RowChange::Owner { conversation: conversation.clone(), owner: owner.clone() };
        let open = || SledStore::open(path, &StoreSettings::default()).unwrap();
        open().append(&Commit::rows(vec![row])).await.unwrap();
        let number = || fs::metadata(database(path)).unwrap().ino();
        let first = number();
        drop(open());
        assert_eq!(number(), first, "nothing failed");

        // The kernel syncs no such file.
        let (file, mark) = (File::open("/dev/null").unwrap(), path.join(UNSYNCED));
        let handle = DatabaseFile { file, mark, syncs: Syncs::default() };
        assert!(handle.sync().is_err());
        let store = open();
        let copied = number();
        assert_ne!(copied, first);
        assert_eq!(store.reader.owner(&conversation).await.unwrap(), Some(owner));
        drop(store);
        drop(open());
        assert_eq!(number(), copied, "once is enough");
    }
}
