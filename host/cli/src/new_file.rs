//! A new file that gets its name when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::report::{Exit, Report};

/// Makes a file that only this user can read. If there is one with its name, or the content cannot be written, there is no new file.
pub(crate) fn write<T>(path: &Path, content: impl FnOnce(&mut File) -> Result<T, Report>) -> Result<T, Report> {
    if path.exists() {
        return Err(exists(path));
    }
    let work = PathBuf::from(format!("{}.unfinished", path.display()));
    let written = written(&work, content).and_then(|done| {
        // Unlike a renaming, this fails if the file exists.
        fs::hard_link(&work, path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(path),
            _ => error.into(),
        })?;
        Ok(done)
    });
    match fs::remove_file(&work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let done = written?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(done)
}

fn written<T>(work: &Path, content: impl FnOnce(&mut File) -> Result<T, Report>) -> Result<T, Report> {
    // A killed command left it.
    let _ = fs::remove_file(work);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(work)?;
    let done = content(&mut file)?;
    file.sync_all()?;
    Ok(done)
}

fn exists(path: &Path) -> Report {
    Report::new(Exit::Refused, format!("{} exists", path.display())).hint("name a file that does not exist")
}
