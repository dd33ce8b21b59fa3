//! The host's own key for sessions and links: made at the first start, kept in the data folder, readable by its owner alone.
//! Whoever removes it ends all sessions and links.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use server::SigningKey;

/// The file's name in the data folder.
const FILE: &str = "session-key";

/// The key, which is made if there is none.
///
/// # Errors
/// When the file cannot be read or written, or holds something else.
pub(crate) fn signing_key(folder: &Path) -> io::Result<SigningKey> {
    let path = folder.join(FILE);
    let bits = match std::fs::read(&path) {
        Ok(bits) => bits.try_into().map_err(|_| {
            io::Error::other(format!("{} holds no key; remove it, and all sessions and links end", path.display()))
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(folder, &path)?,
        Err(error) => return Err(error),
    };
    Ok(SigningKey::new(bits))
}

/// A key is in its place whole or not at all: a start that is killed in between makes another.
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

/// A new, empty file that nobody but its owner can read, in the place of one that may be there.
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
    fn the_key_is_made_once_and_is_its_owners_alone() {
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
        assert!(signing_key(folder.path()).is_err(), "half a key is not taken for one");
    }
}
