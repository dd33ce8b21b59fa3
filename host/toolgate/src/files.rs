//! Files of the data folder that only their owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// `None` for a file or folder that does not exist.
pub(crate) fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Makes a file that does not exist yet.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a new, empty file. It replaces an old one.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    existing(fs::remove_file(path))?;
    create(path)
}

/// Writes a file that may exist. After a kill it is the old or the new file. When this returns, the new one is on disk.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = private(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
