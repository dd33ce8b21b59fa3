//! Small files in a folder that only this user can change: the address and the admin token of the user's own host.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The size of the largest file that is read, in bytes.
const MAX_BYTES: u64 = 4096;

/// Reads a file of the folder, without the white space around it. `None` if the folder or the file does not exist.
///
/// # Errors
/// As [`open`].
pub(crate) fn read(folder: &Path, name: &str) -> io::Result<Option<String>> {
    open(folder, name)?.map(|file| text(&file)).transpose()
}

/// The text of an open file, without the white space around it.
pub(crate) fn text(file: &File) -> io::Result<String> {
    Ok(io::read_to_string(file.take(MAX_BYTES))?.trim().to_owned())
}

/// Opens a file of the folder. `None` if the folder or the file does not exist.
///
/// # Errors
/// Why others may have written the file, and faults of the system.
pub(crate) fn open(folder: &Path, name: &str) -> io::Result<Option<File>> {
    match opened(folder, name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder that was checked is the one that the file is read from, even if it is renamed meanwhile.
#[cfg(unix)]
fn opened(folder: &Path, name: &str) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt as _;

    let folder = File::open(folder)?;
    let metadata = folder.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("the folder belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("other users can access the folder; its mode must be 0700"));
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&folder, name, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn opened(folder: &Path, name: &str) -> io::Result<File> {
    File::open(folder.join(name))
}
