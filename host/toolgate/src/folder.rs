//! The data folder: only its owner can read it, and one host at a time can use it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Makes the folder if it is missing, and removes the access of everyone but its owner.
///
/// # Errors
/// When the operating system refuses.
pub fn private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// A lock for as long as a host runs on the folder. The operating system releases it even after a kill.
#[derive(Debug)]
pub(crate) struct Claim {
    _file: File,
}

impl Claim {
    /// Claims the folder. `None` if another host has it.
    pub(crate) fn take(folder: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
