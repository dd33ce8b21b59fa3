//! Rebuilds sled's snapshot from its log.
//!
//! A snapshot is an index of the log up to a position, and its name is that position. sled refuses a folder whose
//! snapshot is damaged, although the log has everything. Without a snapshot it reads the whole log, and where the log is
//! damaged it leaves out entries and overwrites its end. So the snapshot is made in a copy of the log, the copy is
//! checked as a whole, and only the new snapshot comes into the folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::folder::{self, open_sled};
use super::{SledStore, VerifyError, verify};
use crate::{OpenError, StoreSettings};

/// The last bytes of a snapshot: the length of the content, and its checksum.
const LENGTH: usize = 8;
const CHECKSUM: usize = 4;

/// Replaces the snapshot of a folder that no process uses, if it is damaged and the log is whole. Returns whether it
/// did.
pub(super) fn snapshot(path: &Path, settings: &StoreSettings) -> Result<bool, OpenError> {
    let at = |source| OpenError::io(path, source);
    let database = path.join("sled");
    let Some(damaged) = newest(&database).map_err(at)? else { return Ok(false) };
    if is_whole(&fs::read(&damaged).map_err(at)?) {
        return Ok(false);
    }
    tracing::warn!(file = %damaged.display(), "a snapshot is damaged; it is being rebuilt from the log");
    let copy = path.join("rebuilding");
    let _lock = folder::lock(path)?;
    let made = copied(path, &copy).map_err(at).and_then(|()| made(&copy, settings));
    let removed = fs::remove_dir_all(&copy);
    let (name, content) = match made {
        // A shorter log than the snapshot was made of has lost its end.
        Ok(Some((name, content))) if Some(name.as_os_str()) >= damaged.file_name() => (name, content),
        Ok(_) | Err(OpenError::Damaged { .. }) => return Ok(false),
        Err(other) => return Err(other),
    };
    removed.and_then(|()| install(&database, &name, &content, &damaged)).map_err(at)?;
    Ok(true)
}

/// The snapshot that sled reads: names sort like positions.
fn newest(database: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest = None;
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap.")) {
            newest = newest.max(Some(path));
        }
    }
    Ok(newest)
}

fn is_whole(snapshot: &[u8]) -> bool {
    let Some((content, checksum)) = snapshot.split_last_chunk::<CHECKSUM>() else { return false };
    let Some((content, _)) = content.split_last_chunk::<LENGTH>() else { return false };
    !content.is_empty() && crc32(content) == u32::from_le_bytes(*checksum)
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

/// Makes a folder of a store with a copy of the log and with the same large records.
fn copied(path: &Path, copy: &Path) -> io::Result<()> {
    if copy.exists() {
        // Of a process that was killed.
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy.join("sled"))?;
    for name in ["db", "conf"] {
        fs::copy(path.join("sled").join(name), copy.join("sled").join(name))?;
    }
    std::os::unix::fs::symlink(fs::canonicalize(path.join("blobs"))?, copy.join("blobs"))
}

/// The name and the content of the snapshot that sled makes, if everything in the copy is as it was written.
fn made(copy: &Path, settings: &StoreSettings) -> Result<Option<(PathBuf, Vec<u8>)>, OpenError> {
    let at = |source| OpenError::io(copy, source);
    let database = copy.join("sled");
    // Read before anything else is written to the log.
    drop(open_sled(&database, settings).map_err(|cause| OpenError::of(copy, &cause))?);
    let Some(made) = newest(&database).map_err(at)? else { return Ok(None) };
    let content = fs::read(&made).map_err(at)?;
    let failed = |fault| OpenError::of(copy, &fault);
    match verify(copy, settings, Vec::new()) {
        Ok(_) => {}
        Err(VerifyError::Open(error)) => return Err(error),
        Err(VerifyError::Store(fault)) => return Err(failed(fault)),
        Err(VerifyError::Tampered(_)) => return Ok(None),
    }
    let checked = SledStore::open_whole(copy, settings)?.check().map_err(failed)?;
    let name = made.file_name().map(PathBuf::from);
    Ok(name.filter(|_| checked.problems.is_empty()).map(|name| (name, content)))
}

/// Writes a snapshot. The damaged one is removed once the new one is on disk.
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
