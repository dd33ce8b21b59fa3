//! Backends of the store port: memory for tests, sled for everything else.
//!
//! What a store must do is written down as laws in `tests/laws.rs`, and each law runs on every backend. [`open`] gives
//! the store that a host uses; what it has acknowledged is on the disk.

mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod key_value;
mod memory;
mod record;
mod sled;

use std::path::{Path, PathBuf};

pub use self::key_value::{
    KeyValue, KeyValueError, LARGEST_KEY, LARGEST_LISTING, LARGEST_NAME, LARGEST_VALUE, Listing, Quota,
};
pub use self::memory::MemoryStore;
pub use self::sled::{Checked, ExportError, Problem, SledStore, VerifyError, verify};

/// What the operator may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Memory for pages that were read or written, in bytes.
    pub cache_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cache_bytes: 128 << 20 }
    }
}

/// Why a folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses it.
    #[error("{} is in use by another process; stop that one, or choose another folder", .path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A newer host wrote it.
    #[error("{} has the format {found} and this host knows {known}; start a newer toolgate", .path.display())]
    Newer {
        /// The folder.
        path: PathBuf,
        /// The format that it has.
        found: u8,
        /// The newest that is known here.
        known: u8,
    },
    /// A host wrote it before the first release, in a form that is read no longer.
    #[error("{} has the format {found}, of before the first release, and this host knows {known}; start with an empty folder", .path.display())]
    Older {
        /// The folder.
        path: PathBuf,
        /// The format that it has.
        found: u8,
        /// The only one that is known here.
        known: u8,
    },
    /// What is in it is not what was written.
    #[error("{} is damaged: {reason}; restore the folder from a copy, or start with an empty one", .path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The operating system refused.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Opens the store in a folder, or makes it. May take as long as the disk needs to read the log's tail, so call it where
/// blocking is allowed.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: impl AsRef<Path>, settings: &Settings) -> Result<SledStore, OpenError> {
    SledStore::open(path.as_ref(), settings)
}
