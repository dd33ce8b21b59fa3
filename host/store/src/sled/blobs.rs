//! Records that are too large for the tree, as files that are named by their digest.
//!
//! sled writes a page that is larger than a quarter of a segment to a file of its own, which it neither syncs nor
//! always removes. A page holds up to two dozen values. So values in the tree stay small, and segments are large enough
//! that no page of such values becomes a file; everything larger is a file of ours. A file is complete and on disk
//! before a commit refers to it. If the commit then fails, the file stays until the next [`Blobs::remove`]. Several
//! records with the same content share one file.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::{FaultKind, StoreFault};
use domain::Digest;

use super::database_file::Syncs;
use crate::fault::fault;

/// The size of segments of sled's log. A page may have a quarter of it: 24 values of the largest size in any tree.
pub(crate) const SEGMENT: usize = 8 << 20;

/// The largest value in the tree.
pub(super) const MAX_INLINE: usize = 64 << 10;

/// Replaces the version byte of a record: no format has this version.
const ELSEWHERE: u8 = 0;

/// The operation that fails when a blob is not written.
pub(super) const WRITE: &str = "write a large record";

/// The size of a reference to a blob.
const REFERENCE: usize = 33;

/// The value in the tree for a record that is a blob.
pub(super) fn reference(digest: Digest) -> [u8; REFERENCE] {
    let mut reference = [ELSEWHERE; REFERENCE];
    reference[1..].copy_from_slice(digest.as_bytes());
    reference
}

/// The blob that a value refers to, if it is not the record itself.
pub(super) fn referred(value: &[u8]) -> Option<Digest> {
    match value.split_first() {
        Some((&ELSEWHERE, digest)) => digest.try_into().ok().map(Digest::from_bytes),
        _ => None,
    }
}

/// The digest of a record, from the record itself or from a reference to it.
pub(super) fn digest(value: &[u8]) -> Digest {
    referred(value).unwrap_or_else(|| Digest::of(value))
}

#[derive(Clone)]
pub(super) struct Blobs {
    folder: Arc<Path>,
    /// Makes the names of unfinished files unique.
    unfinished: Arc<AtomicU64>,
    uses: Arc<Mutex<Uses>>,
    names: Arc<Names>,
    /// Of the whole store.
    syncs: Syncs,
}

/// Syncs the folder, which has the names of the files.
struct Names {
    /// One handle for all syncs, so that each error of the kernel reaches one of them.
    folder: File,
    /// How many syncs were requested.
    requested: AtomicU64,
    /// How many of these are done. `None` after a failed sync.
    done: Mutex<Option<u64>>,
}

/// The blobs that commits are about to refer to.
#[derive(Default)]
struct Uses {
    /// Those of commits that are not written yet, with the number of these commits.
    held: HashMap<Digest, usize>,
    /// Those of commits since a removal of blobs began. They stay, although a later commit may remove the references.
    recent: Option<HashSet<Digest>>,
}

/// A removal of blobs. Ends when it is dropped.
pub(super) struct Removing<'a>(&'a Blobs);

impl Drop for Removing<'_> {
    fn drop(&mut self) {
        lock(&self.0.uses).recent = None;
    }
}

/// Keeps a blob on disk, although no commit refers to it yet.
pub(super) struct Hold {
    uses: Arc<Mutex<Uses>>,
    digest: Digest,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut uses = lock(&self.uses);
        if let Some(count) = uses.held.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                uses.held.remove(&self.digest);
            }
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Blobs {
    /// Opens the folder and removes unfinished files of a killed process.
    pub(super) fn open(folder: PathBuf, syncs: Syncs) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "unfinished") {
                fs::remove_file(path)?;
            }
        }
        let (requested, done) = (AtomicU64::new(0), Mutex::new(Some(0)));
        let names = Arc::new(Names { folder: File::open(&folder)?, requested, done });
        Ok(Self { folder: folder.into(), unfinished: Arc::default(), uses: Arc::default(), names, syncs })
    }

    /// The number of syncs of these files and of sled's file.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.count()
    }

    /// Writes records and returns once all are on disk. They stay there while they are held. Runs in threads that may
    /// block: a large result must not delay small commits. A fault that is for lack of space allows another attempt, which
    /// writes a new file.
    pub(super) async fn write(&self, blobs: Vec<(Digest, Vec<u8>)>) -> Result<Vec<Hold>, StoreFault> {
        if blobs.is_empty() {
            return Ok(Vec::new());
        }
        let holds = blobs.iter().map(|(digest, _)| self.hold(*digest)).collect();
        let this = self.clone();
        tokio::task::spawn_blocking(move || {
            blobs.iter().try_for_each(|(digest, bytes)| this.write_one(*digest, bytes)).map_err(fault(WRITE))?;
            // No attempt makes a failed sync good, not even of a disk that was full.
            this.sync().map_err(|error| StoreFault { kind: FaultKind::Disk, ..fault(WRITE)(error) })
        })
        .await
        .map_err(fault(WRITE))??;
        Ok(holds)
    }

    /// Makes the names of new files durable. One sync serves all callers that wait for it. After a failed one the kernel
    /// may have dropped names, and another sync would report success. So every later sync fails, until a restart.
    pub(super) fn sync(&self) -> io::Result<()> {
        let number = self.names.requested.fetch_add(1, Ordering::AcqRel);
        let mut done = lock(&self.names.done);
        match *done {
            None => return Err(io::Error::other("an earlier sync of their folder failed")),
            Some(done) if done > number => return Ok(()),
            Some(_) => {}
        }
        let requested = self.names.requested.load(Ordering::Acquire);
        self.syncs.begin();
        let synced = self.names.folder.sync_all();
        *done = synced.is_ok().then_some(requested);
        synced
    }

    fn hold(&self, digest: Digest) -> Hold {
        let mut uses = lock(&self.uses);
        *uses.held.entry(digest).or_default() += 1;
        if let Some(recent) = &mut uses.recent {
            recent.insert(digest);
        }
        Hold { uses: self.uses.clone(), digest }
    }

    /// Begins a removal of blobs. [`Blobs::remove`] keeps the blobs of later commits.
    pub(super) fn begin_removing(&self) -> Removing<'_> {
        let mut uses = lock(&self.uses);
        // Those of commits in flight too: such a commit may be written before the removal looks for references.
        uses.recent = Some(uses.held.keys().copied().collect());
        drop(uses);
        Removing(self)
    }

    pub(super) fn list(&self) -> Result<Vec<Digest>, StoreFault> {
        let mut blobs = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fault("list large records"))? {
            let name = entry.map_err(fault("list large records"))?.file_name();
            // Unfinished files have other names.
            blobs.extend(name.to_str().and_then(|name| name.parse::<Digest>().ok()));
        }
        Ok(blobs)
    }

    /// Removes a blob, unless a commit may refer to it. `is_referred` looks for the commits that are written.
    pub(super) fn remove(
        &self,
        digest: Digest,
        is_referred: impl FnOnce() -> Result<bool, StoreFault>,
    ) -> Result<bool, StoreFault> {
        // Locked until the file is removed: a commit that needs it from then on writes it again.
        let uses = lock(&self.uses);
        let is_recent = uses.recent.as_ref().is_none_or(|recent| recent.contains(&digest));
        if uses.held.contains_key(&digest) || is_recent || is_referred()? {
            return Ok(false);
        }
        match fs::remove_file(self.path(digest)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(fault("remove a large record")(error)),
        }
    }

    pub(super) fn write_one(&self, digest: Digest, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(digest);
        if path.exists() {
            // The file was synced before it got its name.
            return Ok(());
        }
        let number = self.unfinished.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.folder.join(format!("{}.{number}.unfinished", digest.hex()));
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(bytes)?;
            self.syncs.begin();
            file.sync_all()?;
            fs::rename(&unfinished, path)
        });
        if written.is_err() {
            // The disk may be full, so nothing useless stays.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// The size of a record, from the record itself or from the file that it refers to, which is not read. A file that
    /// cannot be examined counts as too large: it is read alone, and that reports the error.
    pub(super) fn size(&self, value: &[u8]) -> usize {
        let Some(digest) = referred(value) else { return value.len() };
        let examined = fs::metadata(self.path(digest)).ok();
        examined.and_then(|file| usize::try_from(file.len()).ok()).unwrap_or(usize::MAX)
    }

    /// A blob, read in this thread, which must be allowed to block.
    pub(super) fn read_now(&self, digest: Digest) -> Result<Vec<u8>, StoreFault> {
        let bytes = fs::read(self.path(digest)).map_err(fault("read a large record"))?;
        if Digest::of(&bytes) != digest {
            return Err(StoreFault::damaged(
                "read a large record",
                format!("{digest} is damaged: its content has another digest"),
            ));
        }
        Ok(bytes)
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failed_sync_of_the_folder_is_not_made_good() {
        let folder = tempfile::tempdir().unwrap();
        let mut blobs = Blobs::open(folder.path().join("blobs"), Syncs::default()).unwrap();
        let write = async |blobs: &Blobs, record: &str| {
            blobs.write(vec![(Digest::of(record), record.into())]).await.map(drop).map_err(|fault| fault.kind)
        };
        assert_eq!(write(&blobs, "first").await, Ok(()));
        // No kernel syncs this file.
        let device = File::open("/dev/null").unwrap();
        let folder = std::mem::replace(&mut Arc::get_mut(&mut blobs.names).unwrap().folder, device);
        assert_eq!(write(&blobs, "second").await, Err(FaultKind::Disk));
        Arc::get_mut(&mut blobs.names).unwrap().folder = folder;
        for record in ["second", "third"] {
            assert_eq!(write(&blobs, record).await, Err(FaultKind::Disk), "{record}");
        }
    }

    #[tokio::test]
    async fn a_blob_of_a_commit_in_flight_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path().join("blobs"), Syncs::default()).unwrap();
        let digest = Digest::of("record");
        let write = async || blobs.write(vec![(digest, b"record".to_vec())]).await.unwrap();
        let remove = || blobs.remove(digest, || Ok(false)).unwrap();

        let (first, second) = (write().await, write().await);
        let removing = blobs.begin_removing();
        assert_eq!(blobs.list().unwrap(), [digest]);
        drop(first);
        assert!(!remove(), "another commit in flight needs it");
        drop(second);
        assert!(!remove(), "it was in flight when the removal began");
        drop(removing);

        let removing = blobs.begin_removing();
        assert!(!blobs.remove(digest, || Ok(true)).unwrap(), "a record refers to it");
        assert!(remove() && !remove());
        drop(removing);

        let removing = blobs.begin_removing();
        drop(write().await);
        assert!(!remove(), "a commit since the removal began needed it");
        drop(removing);
        assert!(!remove(), "no removal is under way");
        let _removing = blobs.begin_removing();
        assert!(remove());
        assert!(blobs.list().unwrap().is_empty());
    }
}
