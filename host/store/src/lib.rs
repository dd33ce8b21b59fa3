//! Backends of the store port: memory for tests, sled for everything else.
//!
//! The laws of a store are tests (`tests/laws`), and each law runs on every backend. [`open`] opens the store that a
//! host uses; when it acknowledges a commit, the commit is on disk.

mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod key_value;
mod memory;
mod record;
mod sled;

use std::path::{Path, PathBuf};

pub use self::key_value::{KeyValue, KeyValueError, Listing, MAX_VALUE, NamespaceQuota};
pub use self::memory::MemoryStore;
pub use self::sled::{ExportError, Problem, SledStore, StoreCheck, VerifyError, verify};

/// What the operator may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSettings {
    /// The size of the page cache, in bytes.
    pub cache_bytes: u64,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { cache_bytes: 128 << 20 }
    }
}

/// Why a folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error("{} is in use by another process; stop that one, or choose another folder", .path.display())]
    InUse { path: PathBuf },
    /// A newer host wrote it.
    #[error("{} has the format {found} and this host knows {known}; start a newer toolgate", .path.display())]
    Newer { path: PathBuf, found: u8, known: u8 },
    /// A host from before the first release wrote it, in a form that is no longer read.
    #[error("{} has the format {found}, of before the first release, and this host knows {known}; start with an empty folder", .path.display())]
    Older { path: PathBuf, found: u8, known: u8 },
    /// Its content is not what was written.
    #[error("{} is damaged: {reason}; restore the folder from a copy, or start with an empty one", .path.display())]
    Damaged { path: PathBuf, reason: String },
    /// The operating system refused.
    #[error("cannot use {}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// Opens the store in a folder, or creates it. Reads the end of sled's log, so call it where blocking is allowed.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: impl AsRef<Path>, settings: &StoreSettings) -> Result<SledStore, OpenError> {
    SledStore::open(path.as_ref(), settings)
}
