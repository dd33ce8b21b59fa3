//! The folder on disk. Only one process uses it at a time. Opening it removes the unfinished files of a killed process.
//!
//! ```text
//! lock        held by the process that uses the folder
//! sled/       sled's own files; the store syncs `db`
//! blobs/      records that are too large for the tree
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::blobs::Blobs;
use super::database_file::{self, DatabaseFile, Syncs};
use super::keys;
use super::tree::attempt;
use crate::fault::DatabaseError;
use crate::{OpenError, StoreSettings};

/// The version of the key format. `migrate.rs` says what each one added.
pub(super) const FORMAT: u8 = 8;

/// The oldest format that can be migrated.
pub(super) const OLDEST: u8 = 2;

/// A file that is written to find out whether there is space.
pub(super) const PROBE: &str = "space";

/// The maximum wait for sled's file.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The time between two attempts to lock sled's file.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) struct Folder {
    /// Each owner of a database handle also owns this, and drops it last.
    pub(super) folder_lock: Arc<FolderLock>,
    pub(super) db: sled::Db,
    /// The store's own handle of sled's file.
    pub(super) file: DatabaseFile,
    pub(super) blobs: Blobs,
    /// The version of the key format that the folder has.
    pub(super) format: u8,
}

/// The ownership of the folder. After the drop, the folder can be opened again immediately.
pub(super) struct FolderLock {
    lock: File,
    /// The path of sled's file.
    pub(super) file: PathBuf,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if !is_given_back(&self.file) {
            tracing::error!(file = %self.file.display(), "sled keeps its file though the store is closed");
        }
        // The unlock is explicit, because closing this handle may not release the lock: a forked child has a copy of
        // every handle until it executes another program.
        if let Err(error) = self.lock.unlock() {
            tracing::error!(%error, "the folder's lock could not be released");
        }
    }
}

impl Folder {
    /// Opens the folder, and creates it if it does not exist. `check` runs before sled changes anything.
    pub(super) fn open(
        path: &Path,
        settings: &StoreSettings,
        check: impl FnOnce(&Path, &StoreSettings) -> Result<(), OpenError>,
    ) -> Result<Self, OpenError> {
        let at = |source| OpenError::io(path, source);
        let database = path.join("sled");
        let above = folders_above(path);
        fs::create_dir_all(&database).map_err(at)?;
        // This is created before the database, so that an error drops it after the database.
        let folder_lock = Arc::new(FolderLock { lock: lock(path)?, file: database.join("db") });
        remove_unfinished_snapshots(&database).map_err(at)?;
        // A kill while the disk was full can leave it.
        let _ = fs::remove_file(path.join(PROBE));
        let syncs = Syncs::default();
        let blobs = Blobs::open(path.join("blobs"), syncs.clone()).map_err(at)?;
        if !is_given_back(&folder_lock.file) {
            return Err(OpenError::InUse { path: path.to_owned() });
        }
        // A loss of power in the first moment can leave half of sled's settings, before the database has anything.
        if fs::metadata(&folder_lock.file).map_or(true, |file| file.len() == 0) {
            let _ = fs::remove_file(database.join("conf"));
        }
        database_file::copy_unsynced(path).map_err(at)?;
        check(path, settings)?;
        let db = open_sled(&database, settings).map_err(|cause| OpenError::of(path, &cause))?;
        let format = check_format(path, &db)?;
        let file = DatabaseFile::open(path, syncs).map_err(at)?;
        file.sync().and_then(|()| sync_all(path, &database)).map_err(at)?;
        above.iter().try_for_each(|folder| File::open(folder)?.sync_all()).map_err(at)?;
        Ok(Self { folder_lock, db, file, blobs, format })
    }
}

/// Returns the parents of the folders that do not exist yet. The store syncs these parents: if the name of a folder is
/// lost, all data in the folder is lost. The parent of an existing store's folder is also included, because a killed
/// process may have created the folder without syncing the parent.
fn folders_above(path: &Path) -> Vec<PathBuf> {
    let mut above = Vec::new();
    for folder in path.ancestors().skip(1) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        above.push(folder.to_owned());
        if folder.is_dir() {
            break;
        }
    }
    above
}

/// Callers lock the folder before they change it: files that look unfinished may belong to another running process.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let at = |source| OpenError::io(path, source);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock")).map_err(at)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(at(source)),
    }
}

/// An unfinished snapshot of a killed process makes sled report corruption at every start (sled issues 1527 and 1533).
/// The log has all the data of such a snapshot.
pub(super) fn remove_unfinished_snapshots(database: &Path) -> io::Result<()> {
    for entry in fs::read_dir(database)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            tracing::warn!(file = %name, "removed a snapshot that a killed process did not finish");
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Waits until sled's file is unlocked. sled's own threads may keep it open briefly after the last handle of a database
/// is dropped, and so may a child that is being forked. Returns false if the file is still locked after [`MAX_WAIT`].
pub(super) fn is_given_back(file: &Path) -> bool {
    let Ok(file) = File::open(file) else { return true };
    let mut waited = Duration::ZERO;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        if waited >= MAX_WAIT {
            return false;
        }
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
    file.unlock().is_ok()
}

pub(super) fn open_sled(database: &Path, settings: &StoreSettings) -> Result<sled::Db, DatabaseError> {
    let config =
        sled::Config::new().path(database).segment_size(settings.segment_bytes).cache_capacity(settings.cache_bytes);
    // The committing thread flushes. A background flush would only interfere with it.
    attempt(|| config.flush_every_ms(None).open())
}

/// The format of the folder. With the mark, it has the version of a migration that did not end, and counts as the format before.
/// The host of that version may have begun it again, so that its indexes are incomplete.
fn check_format(path: &Path, db: &sled::Db) -> Result<u8, OpenError> {
    let damaged = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
    let failed = |cause| OpenError::of(path, &cause);
    match attempt(|| db.get(keys::FORMAT)).map_err(failed)?.as_deref() {
        Some(&[found @ OLDEST..=FORMAT]) => {
            let has_mark = attempt(|| db.contains_key(keys::FOLDING)).map_err(failed)?;
            Ok(found - u8::from(has_mark))
        }
        Some(&[found]) if found > FORMAT => Err(OpenError::Newer { path: path.to_owned(), found, known: FORMAT }),
        Some(&[found]) if found > 0 => Err(OpenError::Older { path: path.to_owned(), found, known: FORMAT }),
        Some(other) => Err(damaged(format!("its format is {other:?}"))),
        None if db.is_empty() => {
            attempt(|| db.insert(keys::FORMAT, &[FORMAT]).and_then(|_| db.flush())).map(|_| FORMAT).map_err(failed)
        }
        None => Err(damaged("it holds something, but not the version of its format".into())),
    }
}

/// Makes sled's files and their names durable, once per opening. Later commits sync only the content of files.
fn sync_all(path: &Path, database: &Path) -> io::Result<()> {
    for name in ["db", "conf"] {
        let file: PathBuf = database.join(name);
        if file.exists() {
            File::open(file)?.sync_all()?;
        }
    }
    for folder in [database, path] {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::SledStore;
    use super::*;

    #[test]
    fn half_written_settings_of_an_empty_database_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sled")).unwrap();
        fs::write(folder.path().join("sled/conf"), "segment_size: 13").unwrap();
        SledStore::open(folder.path(), &StoreSettings::default()).unwrap();
    }

    #[test]
    fn a_folder_is_released_after_sleds_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = SledStore::open(folder.path(), &StoreSettings::default()).unwrap();
        // This clone simulates a thread of sled that keeps its handle and ends late.
        let (late, closing) = (store.reader.tree.clone(), store.reader.durable.clone());
        let lock = File::open(folder.path().join("lock")).unwrap();
        let watching = thread::spawn(move || {
            while closing.has_changed().is_ok() {
                thread::yield_now();
            }
            let early = (0..200).any(|_| {
                thread::yield_now();
                lock.try_lock().is_ok()
            });
            drop(late);
            early
        });
        drop(store);
        assert!(!watching.join().unwrap(), "it was opened to others while sled had its file");
        drop(
            sled::Config::new()
                .path(folder.path().join("sled"))
                .segment_size(StoreSettings::default().segment_bytes)
                .open()
                .unwrap(),
        );
    }
}
