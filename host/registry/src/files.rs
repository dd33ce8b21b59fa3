//! Writing a file whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the name of a file begins that is being written.
const PARTIAL: &str = ".partial-";

/// Writes a file in a folder atomically: a reader sees the old content or the new one, also after a loss of power.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let unique = COUNT.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!("{PARTIAL}{}-{unique}-{name}", std::process::id()));
    let written = write_synced(&partial, bytes).and_then(|()| fs::rename(&partial, folder.join(name)));
    if let Err(error) = written {
        // It may not even exist; what matters is the error that is reported.
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    // The new name is on disk only once the folder is.
    File::open(folder)?.sync_all()
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes what writes that were killed have left in a folder.
pub(crate) fn remove_partial(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Reads a regular file of at most so many bytes. `None` where there is no such file.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let size = metadata.len();
    if size > most {
        return Err(io::Error::other(format!("{size} bytes, at most {most} are taken")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Removes a file, and says whether it was there.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
