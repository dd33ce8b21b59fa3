//! Rebuilds sled's snapshot from its log.
//!
//! A snapshot is an index of the log up to a position. This position is part of the snapshot's name. sled refuses a
//! folder with a damaged snapshot, although the log has all the data. Without a snapshot, sled reads the whole log. If
//! the log is damaged, sled then drops entries and overwrites the end of the log.
//!
//! So the store copies the log, lets sled make a snapshot of the copy, and checks the whole copy. Then it writes only
//! the new snapshot into the folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::SledStore;
use super::folder::Folder;
use super::folder::{self, open_sled};
use super::log::{self, Loss};
use super::verify::{VerifyError, verified};
use crate::{OpenError, StoreSettings};

/// A snapshot ends with the length of its content and a checksum of its content. These are their sizes in bytes.
const LENGTH: usize = 8;
const CHECKSUM: usize = 4;

/// Replaces a damaged snapshot if the log is intact. No process may use the folder. Returns whether the snapshot was
/// replaced.
pub(super) fn snapshot(path: &Path, settings: &StoreSettings) -> Result<bool, OpenError> {
    let at = |source| OpenError::io(path, source);
    let database = path.join("sled");
    let Some(damaged) = newest(&database).map_err(at)? else { return Ok(false) };
    if is_whole(&fs::read(&damaged).map_err(at)?) {
        return Ok(false);
    }
    let log = File::open(database.join("db")).map_err(at)?;
    if log::loss(&log, settings.segment_bytes, 0).map_err(at)?.is_some() {
        return Ok(false);
    }
    tracing::warn!(file = %damaged.display(), "a snapshot is damaged; it is being rebuilt from the log");
    let _lock = folder::lock(path)?;
    let (name, content) = match tried(path, None, settings) {
        // An earlier position than that of the damaged snapshot means that the log has lost its end.
        Ok(Some((name, content))) if Some(name.as_os_str()) >= damaged.file_name() => (name, content),
        Ok(_) | Err(OpenError::Damaged { .. }) => return Ok(false),
        Err(other) => return Err(other),
    };
    install(&database, &name, &content, &damaged).map_err(at)?;
    Ok(true)
}

/// Refuses a log if sled would drop intact messages from it. It would also overwrite them, and then a salvage cannot read them.
pub(super) fn check_log(path: &Path, settings: &StoreSettings) -> Result<(), OpenError> {
    let damaged = |reason| OpenError::Damaged { path: path.to_owned(), reason };
    match lost(&path.join("sled"), settings).map_err(|source| OpenError::io(path, source))? {
        None => Ok(()),
        Some(Loss::Synced(lsn)) => Err(damaged(format!("messages of its log are damaged from position {lsn} on"))),
        Some(Loss::Unclear) if is_whole_without_the_end(path, settings)? => Ok(()),
        Some(Loss::Unclear) => Err(damaged("messages of its log are damaged".into())),
    }
}

fn lost(database: &Path, settings: &StoreSettings) -> io::Result<Option<Loss>> {
    match File::open(database.join("db")) {
        Ok(log) => log::loss(&log, settings.segment_bytes, end_of(database)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the store is whole if sled drops what follows the first damage of its log.
fn is_whole_without_the_end(path: &Path, settings: &StoreSettings) -> Result<bool, OpenError> {
    let snapshot = newest(&path.join("sled")).map_err(|source| OpenError::io(path, source))?;
    match tried(path, snapshot.as_deref(), &StoreSettings { migrates: true, ..*settings }) {
        Ok(made) => Ok(made.is_some()),
        Err(OpenError::Damaged { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Opens a copy of the log, with this snapshot. Returns the name and the content of the snapshot that sled makes, if all data
/// in the copy is intact.
fn tried(
    path: &Path,
    snapshot: Option<&Path>,
    settings: &StoreSettings,
) -> Result<Option<(PathBuf, Vec<u8>)>, OpenError> {
    let at = |source| OpenError::io(path, source);
    let copy = path.join("rebuilding");
    let made = copied(path, snapshot, &copy).map_err(at).and_then(|()| made(&copy, settings));
    let removed = fs::remove_dir_all(&copy).map_err(at);
    let made = made?;
    removed.map(|()| made)
}

/// Returns the path of the snapshot that sled reads. The names of snapshots sort by position.
pub(super) fn newest(database: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap.")) {
            newest = newest.max(Some(path));
        }
    }
    Ok(newest)
}

/// The end of what the newest snapshot covers, which is its name. An opened database has one of all that it has replayed.
pub(super) fn end_of(database: &Path) -> io::Result<u64> {
    let snapshot = newest(database)?;
    let lsn = snapshot.as_deref().and_then(Path::extension).and_then(|lsn| u64::from_str_radix(lsn.to_str()?, 16).ok());
    Ok(lsn.unwrap_or(0))
}

pub(super) fn is_whole(snapshot: &[u8]) -> bool {
    let Some((content, checksum)) = snapshot.split_last_chunk::<CHECKSUM>() else { return false };
    let Some((content, _)) = content.split_last_chunk::<LENGTH>() else { return false };
    !content.is_empty() && crc32fast::hash(content) == u32::from_le_bytes(*checksum)
}

/// Creates a folder of a store with a copy of the log, this snapshot, and a symbolic link to the large records.
pub(super) fn copied(path: &Path, snapshot: Option<&Path>, copy: &Path) -> io::Result<()> {
    if copy.exists() {
        // A killed process left this copy.
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy.join("sled"))?;
    for name in ["db", "conf"] {
        fs::copy(path.join("sled").join(name), copy.join("sled").join(name))?;
    }
    if let Some((snapshot, name)) = snapshot.and_then(|snapshot| Some((snapshot, snapshot.file_name()?))) {
        fs::copy(snapshot, copy.join("sled").join(name))?;
    }
    std::os::unix::fs::symlink(fs::canonicalize(path.join("blobs"))?, copy.join("blobs"))
}

fn made(copy: &Path, settings: &StoreSettings) -> Result<Option<(PathBuf, Vec<u8>)>, OpenError> {
    let at = |source| OpenError::io(copy, source);
    let database = copy.join("sled");
    // sled makes the snapshot when it opens the copy. It is read before anything else writes to the copied log.
    drop(open_sled(&database, settings).map_err(|cause| OpenError::of(copy, &cause))?);
    let Some(made) = newest(&database).map_err(at)? else { return Ok(None) };
    let content = fs::read(&made).map_err(at)?;
    let failed = |fault| OpenError::of(copy, &fault);
    match verified(Folder::open(copy, settings, |_, _| Ok(()))?, Vec::new()) {
        Ok(_) => {}
        Err(VerifyError::Open(error)) => return Err(error),
        Err(VerifyError::Store(fault)) => return Err(failed(fault)),
        Err(VerifyError::Tampered(_)) => return Ok(None),
    }
    let checked = SledStore::open_whole(copy, settings, |_, _| Ok(()))?.check().map_err(failed)?;
    let name = made.file_name().map(PathBuf::from);
    Ok(name.filter(|_| checked.problems.is_empty()).map(|name| (name, content)))
}

/// Writes the new snapshot and then removes the damaged one.
fn install(database: &Path, name: &Path, content: &[u8], damaged: &Path) -> io::Result<()> {
    let unfinished = database.join(name).with_extension("generating");
    fs::write(&unfinished, content)?;
    File::open(&unfinished)?.sync_all()?;
    let finished = database.join(name);
    fs::rename(unfinished, &finished)?;
    if finished != damaged {
        fs::remove_file(damaged)?;
    }
    File::open(database)?.sync_all()
}
