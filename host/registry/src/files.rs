//! Writes a file completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// The prefix of the name of a file while it is written.
const PARTIAL: &str = ".partial-";

/// Writes a file atomically: a reader sees the old or the new content, even after a power failure.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut partial = tempfile::Builder::new();
    partial.prefix(PARTIAL);
    // Without this, only the owner could read the file.
    #[cfg(unix)]
    partial.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut partial = partial.tempfile_in(folder)?;
    partial.write_all(bytes)?;
    partial.as_file().sync_all()?;
    partial.persist(folder.join(name))?;
    // Syncing the folder makes the new name durable.
    File::open(folder)?.sync_all()
}

/// Removes the partial files that killed writes left in a folder.
pub(crate) fn remove_partial(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Opens a file to read it. A pipe in its place would keep the caller until somebody writes to it, so it does not wait.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, i32::from_ne_bytes(flags.to_ne_bytes()));
    }
    options.open(path)
}

/// Reads a regular file of at most this many bytes. `None` if it does not exist.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let size = metadata.len();
    if size > max {
        return Err(io::Error::other(format!("{size} bytes, at most {max} are allowed")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Removes a file. Returns whether it existed.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn written_file_has_the_mode_of_other_new_files() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "written", b"1").expect("writes");
        File::create(folder.path().join("new")).expect("creates");
        let [written, new] = ["written", "new"].map(|name| fs::metadata(folder.path().join(name)).expect("it exists"));
        assert_eq!(written.permissions().mode(), new.permissions().mode());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_without_waiting() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("a.wasm");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("a pipe");
        let refused = read(&pipe, 10).expect_err("nobody writes to it");
        assert_eq!(refused.to_string(), "not a regular file");
    }
}
