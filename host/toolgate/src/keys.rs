//! The host's keys: for sessions and one-time links, for checkpoints of the audit, and for the names of the conversations of
//! MCP clients. Each is a file in the data folder that the host makes and that only its owner can read. Hosts that share a secret
//! derive them from it instead.

use std::io;
use std::path::{Path, PathBuf};

use server::SigningKey;

use crate::files::{existing, replace};
#[cfg(feature = "postgres")]
use crate::shared_secret::SharedSecret;

/// The name of the key for sessions and one-time links.
const SESSIONS: &str = "session-key";

/// The name of the key that signs checkpoints.
const AUDIT: &str = "audit-key";

/// Where the keys come from.
#[derive(Clone)]
pub(crate) enum Keys {
    /// Files in the data folder.
    Folder(PathBuf),
    #[cfg(feature = "postgres")]
    Shared(SharedSecret),
}

impl Keys {
    /// The key for sessions and one-time links.
    ///
    /// # Errors
    /// When the file cannot be read or written, or does not contain a key. So do the other functions.
    pub(crate) fn signing(&self) -> io::Result<SigningKey> {
        self.key(SESSIONS, "all sessions and links become invalid").map(SigningKey::new)
    }

    /// The key for the names of the conversations of MCP clients.
    pub(crate) fn mcp(&self) -> io::Result<[u8; 32]> {
        self.key("mcp-key", "MCP clients can no longer wait for the calls that they have made")
    }

    /// The seed of the key that signs checkpoints, and whether it was made now.
    pub(crate) fn audit(&self) -> io::Result<([u8; 32], bool)> {
        let is_new = match self {
            Self::Folder(folder) => !folder.join(AUDIT).exists(),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => false,
        };
        Ok((self.key(AUDIT, "the next start makes a new key for checkpoints")?, is_new))
    }

    /// Whether other hosts have the same keys, so that they can use the same database.
    pub(crate) fn are_shared(&self) -> bool {
        !matches!(self, Self::Folder(_))
    }

    /// A key. `lost` says what happens without its file.
    fn key(&self, name: &str, lost: &str) -> io::Result<[u8; 32]> {
        match self {
            Self::Folder(folder) => read_or_make(folder, name, lost),
            #[cfg(feature = "postgres")]
            Self::Shared(secret) => Ok(secret.derived(name)),
        }
    }
}

fn read_or_make(folder: &Path, file: &str, lost: &str) -> io::Result<[u8; 32]> {
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
        let keys = Keys::Folder(folder.path().to_owned());
        keys.signing().unwrap();
        let path = folder.path().join(SESSIONS);
        let bits = std::fs::read(&path).unwrap();
        assert!(bits.len() == 32 && bits != [0; 32]);
        keys.signing().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bits);
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(keys.signing().is_err(), "half a key is refused");
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn hosts_with_a_shared_secret_have_the_same_keys() {
        let [one, other, foreign] = [7, 7, 8].map(|byte| Keys::Shared(SharedSecret::new(&[byte; 32]).unwrap()));
        assert_eq!((one.mcp().unwrap(), one.audit().unwrap()), (other.mcp().unwrap(), other.audit().unwrap()));
        assert_ne!(one.mcp().unwrap(), foreign.mcp().unwrap());
        assert_ne!(one.mcp().unwrap(), one.audit().unwrap().0);
    }
}
