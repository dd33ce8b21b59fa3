//! The key under which compiled code is authenticated.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use hmac::{Hmac, Mac as _};
use rustix::process::geteuid;
use sha2::Sha256;

use super::image::ChunkDigest;

/// Bytes of a tag at the end of each file.
pub(super) const TAG: usize = 32;

pub(super) struct Key(Hmac<Sha256>);

impl Key {
    /// Reads the key, or makes one. Without its key, all code is compiled again.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Ok(Some(key)) => return Ok(key),
            Ok(None) => super::remove(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        let draft = path.with_extension(super::draft()?);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        // A link, not a rename: if two hosts start at once, both use the key of the first.
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        let linked = written.and_then(|()| fs::hard_link(&draft, path));
        fs::remove_file(&draft)?;
        match linked {
            Ok(()) => Self::new(&bytes),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::read(path)?.ok_or_else(|| io::Error::other("the key is being replaced by others"))
            }
            Err(error) => Err(error),
        }
    }

    /// The key in a file. `None` if it is not a key, or another user made it or could read it.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = fs::File::open(path)?;
        let found = file.metadata()?;
        let is_secret = found.is_file() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
        let mut bytes = [0; 32];
        if !is_secret || found.len() != 32 || file.read_exact(&mut bytes).is_err() {
            return Ok(None);
        }
        Self::new(&bytes).map(Some)
    }

    fn new(bytes: &[u8]) -> io::Result<Self> {
        Hmac::new_from_slice(bytes).map(Self).map_err(io::Error::other)
    }

    /// The tag of code with these chunks under this name.
    pub(super) fn sign(&self, name: &str, chunks: &[ChunkDigest]) -> [u8; TAG] {
        self.over(name, chunks).finalize().into_bytes().into()
    }

    /// Checks a tag in constant time.
    pub(super) fn verify(&self, name: &str, chunks: &[ChunkDigest], tag: &[u8; TAG]) -> bool {
        self.over(name, chunks).verify_slice(tag).is_ok()
    }

    /// Names of files have one length, and so have digests, so they need no separator.
    fn over(&self, name: &str, chunks: &[ChunkDigest]) -> Hmac<Sha256> {
        self.0.clone().chain_update(name).chain_update(chunks.as_flattened())
    }
}
