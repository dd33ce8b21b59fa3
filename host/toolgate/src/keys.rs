//! The host's keys: for sessions and one-time links, for checkpoints of the audit, and for the names of the conversations of
//! MCP clients. Each is a file in the data folder that the host makes and that only its owner can read.

use std::io;
use std::path::Path;

use server::SigningKey;

use crate::files::{existing, replace};

/// The file with the key for sessions and one-time links.
const FILE: &str = "session-key";

/// Reads the key for sessions and one-time links, or makes it at the first start.
///
/// # Errors
/// When the file cannot be read or written, or does not contain a key.
pub(crate) fn signing_key(folder: &Path) -> io::Result<SigningKey> {
    read_or_make(folder, FILE, "all sessions and links become invalid").map(SigningKey::new)
}

/// Reads the key for the names of the conversations of MCP clients, or makes it at the first start.
///
/// # Errors
/// When the file cannot be read or written, or does not contain a key.
pub(crate) fn mcp_key(folder: &Path) -> io::Result<[u8; 32]> {
    read_or_make(folder, "mcp-key", "MCP clients can no longer wait for the calls that they have made")
}

/// Reads a key, or makes it. `lost` says what happens without the file.
pub(crate) fn read_or_make(folder: &Path, file: &str, lost: &str) -> io::Result<[u8; 32]> {
    let path = folder.join(file);
    if let Some(bits) = existing(std::fs::read(&path))? {
        let no_key = |_| format!("{} does not contain a key; if you remove it, {lost}", path.display());
        return bits.try_into().map_err(no_key).map_err(io::Error::other);
    }
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    // The key is complete or absent: after a kill in between, the next start makes another.
    replace(&path, &bits)?;
    Ok(bits)
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
