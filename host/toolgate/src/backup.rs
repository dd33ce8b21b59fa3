//! Backups: a data folder as one file, made while the host runs.
//!
//! ```text
//! "toolgate backup 1\n"
//! for each file: the length of its path in 2 bytes, the path, the length of the file in 8 bytes, the file
//! the length 0 in 2 bytes, the position of the head in 8 bytes, its hash in 32 bytes
//! the SHA-256 of everything before
//! ```
//!
//! Numbers are big-endian. A backup without its end is refused.
//!
//! It has the store with large records and plugins' values, the components, the signed checkpoints of the audit, and the
//! hashes of tokens. It has no keys and no revoked sessions. A restored host makes new keys, so no session or link that was
//! revoked since is valid again, and nobody can sign checkpoints with a stolen backup.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use dispatch::Handle;
use dispatch::ports::{Head, Position};
use domain::Digest;
use server::{BackupError, Backups};
use sha2::{Digest as _, Sha256};
use store::{StoreSettings, VerifyError};
use tokio::sync::{Mutex, mpsc};

use crate::checkpoint::FOLDER as CHECKPOINTS;
use crate::files::{create, existing};
use crate::host::Kept;

const MAGIC: &[u8] = b"toolgate backup 1\n";

/// The folder in the data folder with the files of a backup that is being sent.
const WORK: &str = "backup.unfinished";

/// The bytes that are read and sent at once.
const CHUNK: usize = 256 << 10;

/// The chunks that wait for a slow reader.
const QUEUED: usize = 4;

/// Why a file was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file does not begin as a backup does, or another version wrote it.
    #[error("it is not a backup that this version of toolgate can read")]
    Unknown,
    /// Its end is missing, or a part of it changed.
    #[error("it is not a whole backup: {0}")]
    Damaged(&'static str),
    /// The folder is not empty.
    #[error("{} is not empty; name a folder that does not exist", .0.display())]
    NotEmpty(PathBuf),
    /// A killed restore may have left it, or it belongs to somebody else.
    #[error("{} exists; a restore that was killed may have left it: look into it, and remove it", .0.display())]
    Unfinished(PathBuf),
    /// The restored store is not the one that was backed up.
    #[error("the restored store cannot be verified")]
    Unverified(#[source] VerifyError),
    /// The head of the restored store differs.
    #[error("the restored store does not match the backup: its head is {found}, expected {expected}")]
    OtherHead {
        /// The head of the restored store.
        found: Head,
        /// The head at the end of the backup.
        expected: Head,
    },
    /// A file operation failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Makes backups of a running host, one at a time.
pub(crate) struct HostBackups {
    pub(crate) kept: Kept,
    pub(crate) data: PathBuf,
    pub(crate) handle: Handle,
    pub(crate) one: Arc<Mutex<()>>,
}

/// Removes what a killed host left of a backup.
pub(crate) fn clean(data: &Path) -> io::Result<()> {
    existing(fs::remove_dir_all(data.join(WORK))).map(drop)
}

#[async_trait]
impl Backups for HostBackups {
    async fn begin(&self) -> Result<mpsc::Receiver<io::Result<Vec<u8>>>, BackupError> {
        let on_disk = match &self.kept {
            Kept::Folder(on_disk) => on_disk,
            Kept::Memory => return Err(BackupError::InMemory),
            #[cfg(feature = "postgres")]
            Kept::Database(_) => return Err(BackupError::InDatabase),
        };
        let one = self.one.clone().try_lock_owned().map_err(|_| BackupError::Busy)?;
        let (data, work) = (self.data.clone(), self.data.join(WORK));
        if !self.handle.has_room(blocking(move || needed(&data)).await?) {
            return Err(BackupError::NoRoom);
        }
        let (data, made) = (self.data.clone(), work.clone());
        blocking(move || clean(&data).and_then(|()| crate::folder::private(&made))).await?;
        let copied = on_disk.copy(&self.data.join("store"), &work.join("store")).await;
        if copied.is_err() {
            let data = self.data.clone();
            blocking(move || clean(&data)).await?;
        }
        let head = copied?;
        let (sender, receiver) = mpsc::channel(QUEUED);
        let data = self.data.clone();
        tokio::task::spawn_blocking(move || {
            let _one = one;
            let mut out = Sending(&sender);
            let sent = copy_rest(&data, &work).and_then(|()| write(&work, head, &mut out));
            if let Err(error) = sent {
                tracing::warn!(%error, "a backup was not sent to its end");
                let _ = sender.blocking_send(Err(error));
            }
            if let Err(error) = clean(&data) {
                tracing::warn!(%error, "the copy for a backup could not be removed");
            }
        });
        Ok(receiver)
    }
}

/// Runs work in a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// The bytes of the files that a backup copies. Large records are linked.
fn needed(data: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for path in ["store/sled/db", "store/sled/conf", "components", CHECKPOINTS, "tokens.json"] {
        let path = data.join(path);
        let mut files = Vec::new();
        match existing(fs::metadata(&path))? {
            Some(found) if found.is_dir() => list(&path, Path::new(""), &mut files)?,
            found => bytes += found.map_or(0, |found| found.len()),
        }
        for file in files {
            // No call needs the component any more, or the checkpoint was the oldest.
            bytes += existing(fs::metadata(path.join(file)))?.map_or(0, |found| found.len());
        }
    }
    Ok(bytes)
}

/// Copies what belongs to a backup beside the store.
fn copy_rest(data: &Path, work: &Path) -> io::Result<()> {
    for folder in ["components", CHECKPOINTS] {
        let copy = work.join(folder);
        fs::create_dir(&copy)?;
        for entry in existing(fs::read_dir(data.join(folder)))?.into_iter().flatten() {
            let entry = entry?;
            // Half-written files have other endings.
            let is_whole = folder != CHECKPOINTS || entry.path().extension().is_some_and(|ending| ending == "json");
            if is_whole && entry.file_type()?.is_file() {
                // No call needs the component any more, or the checkpoint was the oldest.
                existing(fs::copy(entry.path(), copy.join(entry.file_name())))?;
            }
        }
    }
    existing(fs::copy(data.join("tokens.json"), work.join("tokens.json")))?;
    Ok(())
}

struct Sending<'a>(&'a mpsc::Sender<io::Result<Vec<u8>>>);

impl Write for Sending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.blocking_send(Ok(bytes.to_vec())).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the files of a folder as a backup.
fn write(folder: &Path, head: Head, out: &mut dyn Write) -> io::Result<()> {
    let mut out = Hashed { inner: out, hash: Sha256::new() };
    out.write_all(MAGIC)?;
    let mut files = Vec::new();
    list(folder, Path::new(""), &mut files)?;
    let mut buffer = vec![0; CHUNK];
    for path in files {
        let name = path.to_str().ok_or_else(|| io::Error::other("the name of a file is not text"))?.as_bytes();
        let mut file = File::open(folder.join(&path))?;
        let length = file.metadata()?.len();
        let name_length = u16::try_from(name.len()).map_err(io::Error::other)?;
        out.write_all(&[&name_length.to_be_bytes(), name, &length.to_be_bytes()[..]].concat())?;
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            file.read_exact(&mut buffer[..most])?;
            out.write_all(&buffer[..most])?;
            left -= most as u64;
        }
    }
    out.write_all(&[&0_u16.to_be_bytes(), &head.position.0.to_be_bytes()[..], head.hash.as_bytes()].concat())?;
    let hash = out.hash.clone().finalize();
    out.inner.write_all(&hash)
}

/// The paths of all files, below the folder.
fn list(folder: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() { list(folder, &path, files)? } else { files.push(path) }
    }
    Ok(())
}

struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Hashed<T> {
    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], RestoreError> {
        let mut bytes = [0; LENGTH];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), RestoreError> {
        self.inner.read_exact(bytes).map_err(cut)?;
        self.hash.update(bytes);
        Ok(())
    }
}

fn cut(error: io::Error) -> RestoreError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => RestoreError::Damaged("its end is missing"),
        _ => error.into(),
    }
}

/// Reads a backup, and gives each part of each file to `each`. Returns the head of its store. The parts count only
/// if this succeeds.
///
/// # Errors
/// [`RestoreError`]: it is no backup, or not a whole one.
pub fn read(backup: impl Read, mut each: impl FnMut(&Path, &[u8]) -> io::Result<()>) -> Result<Head, RestoreError> {
    let mut backup = Hashed { inner: backup, hash: Sha256::new() };
    let mut magic = [0; MAGIC.len()];
    backup.fill(&mut magic).map_err(|_| RestoreError::Unknown)?;
    if magic != MAGIC {
        return Err(RestoreError::Unknown);
    }
    let mut buffer = vec![0; CHUNK];
    loop {
        let length = usize::from(u16::from_be_bytes(backup.take()?));
        if length == 0 {
            break;
        }
        let mut name = vec![0; length];
        backup.fill(&mut name)?;
        let name = String::from_utf8(name).map_err(|_| RestoreError::Damaged("the name of a file is not text"))?;
        let path = Path::new(&name);
        // A name must not lead out of the folder.
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(RestoreError::Damaged("the name of a file leads out of the folder"));
        }
        let mut left = u64::from_be_bytes(backup.take()?);
        each(path, &[])?;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            backup.fill(&mut buffer[..most])?;
            each(path, &buffer[..most])?;
            left -= most as u64;
        }
    }
    let position = Position(u64::from_be_bytes(backup.take()?));
    let head = Head { position, hash: Digest::from_bytes(backup.take()?) };
    let expected = backup.hash.clone().finalize();
    if backup.take::<32>()? != expected.as_slice() {
        return Err(RestoreError::Damaged("a part of it changed"));
    }
    match backup.inner.read(&mut [0])? {
        0 => Ok(head),
        _ => Err(RestoreError::Damaged("something follows its end")),
    }
}

/// Restores a backup to a new or empty data folder. The folder gets its files at once, or none. Verifies the audit, unless
/// `unverified`: the backup of a host with damaged records cannot be verified, but it can be salvaged.
///
/// # Errors
/// [`RestoreError`].
pub fn restore(backup: impl Read, folder: &Path, unverified: bool) -> Result<Head, RestoreError> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        return Err(RestoreError::NotEmpty(folder.to_owned()));
    }
    let name = folder.file_name().ok_or_else(|| io::Error::other("the new folder needs a name"))?;
    let work = folder.with_file_name(format!("{}.unfinished", name.to_string_lossy()));
    if work.exists() {
        return Err(RestoreError::Unfinished(work));
    }
    crate::folder::private(&work)?;
    let restored = unpacked(backup, &work, unverified).and_then(|head| {
        sync_folders(&work)?;
        // Replaces an empty folder.
        fs::rename(&work, folder)?;
        let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(head)
    });
    if restored.is_err() {
        fs::remove_dir_all(&work)?;
    }
    restored
}

/// Syncs a folder after those in it, so that a power loss loses no name of a file. The files are synced before.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

fn unpacked(backup: impl Read, work: &Path, unverified: bool) -> Result<Head, RestoreError> {
    let mut open: Option<File> = None;
    let finish = |open: Option<File>| open.map_or(Ok(()), |file| file.sync_all());
    let head = read(backup, |path, bytes| {
        if bytes.is_empty() {
            finish(open.take())?;
            let at = work.join(path);
            at.parent().map_or(Ok(()), crate::folder::private)?;
            open = Some(create(&at)?);
            return Ok(());
        }
        open.as_mut().map_or(Ok(()), |file| file.write_all(bytes))
    })?;
    finish(open.take())?;
    if unverified {
        return Ok(head);
    }
    let found = store::verify(&work.join("store"), &StoreSettings::default(), Vec::new());
    let found = found.map_err(RestoreError::Unverified)?;
    if found == head { Ok(head) } else { Err(RestoreError::OtherHead { found, expected: head }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_needs_room_for_all_that_it_copies() {
        let data = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: usize| {
            let path = data.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        };
        assert_eq!(needed(data.path()).unwrap(), 0);
        write("store/sled/db", 1);
        write("store/sled/conf", 20);
        write("store/sled/snap.1", 7_000_000);
        write("store/blobs/record", 300);
        write("components/one", 4_000);
        write("components/two", 4_000);
        write("tokens.json", 50_000);
        write("session-key", 600_000);
        write("checkpoints/4.json", 100_000);
        assert_eq!(needed(data.path()).unwrap(), 158_021);
    }

    #[test]
    fn a_folder_that_cannot_be_read_ends_a_backup() {
        let (data, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(data.path().join("components"), "").unwrap();
        assert_eq!(copy_rest(data.path(), work.path()).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        fs::remove_file(data.path().join("components")).unwrap();
        let work = tempfile::tempdir().unwrap();
        copy_rest(data.path(), work.path()).unwrap();
    }

    #[test]
    fn a_restore_removes_no_folder_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("restored.unfinished");
        fs::create_dir(&other).unwrap();
        let refused = restore(io::empty(), &folder.path().join("restored"), false);
        assert!(matches!(refused, Err(RestoreError::Unfinished(path)) if path == other) && other.exists());
    }
}
