//! The host's keys: one for sessions and one-time links, and one for checkpoints of the audit. Each is a file in the data
//! folder that the host makes and that only its owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use server::SigningKey;

/// The file with the key for sessions and one-time links.
const FILE: &str = "session-key";

/// Reads the key for sessions and one-time links, or makes it at the first start.
///
/// # Errors
/// When the file cannot be read or written, or does not contain a key.
pub(crate) fn signing_key(folder: &Path) -> io::Result<SigningKey> {
    read_or_make(folder, FILE, "all sessions and links become invalid").map(SigningKey::new)
}

/// Reads a key, or makes it. `lost` says what happens without the file.
pub(crate) fn read_or_make(folder: &Path, file: &str, lost: &str) -> io::Result<[u8; 32]> {
    let path = folder.join(file);
    match std::fs::read(&path) {
        Ok(bits) => bits.try_into().map_err(|_| {
            io::Error::other(format!("{} does not contain a key; if you remove it, {lost}", path.display()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(folder, &path),
        Err(error) => Err(error),
    }
}

/// The rename makes the key complete or absent: after a kill in between, the next start makes another.
fn make(folder: &Path, path: &Path) -> io::Result<[u8; 32]> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    let beside = path.with_extension("new");
    let mut file = private(&beside)?;
    file.write_all(&bits)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    File::open(folder)?.sync_all()?;
    Ok(bits)
}

/// Makes a new, empty file that only its owner can read. It replaces an old file.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_made_once_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        signing_key(folder.path()).unwrap();
        let path = folder.path().join(FILE);
        let bits = std::fs::read(&path).unwrap();
        assert!(bits.len() == 32 && bits != [0; 32]);
        signing_key(folder.path()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bits);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(signing_key(folder.path()).is_err(), "half a key is refused");
    }
}
