//! Backends of the store port: memory for tests, sled for a host with a folder of its own, and PostgreSQL.
//!
//! The laws of a store are tests (`tests/laws`), and each law runs on every backend. [`open`] opens the store that a
//! host uses; when it acknowledges a commit, the commit is on disk.

mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod key_value;
mod memory;
mod portable;
#[cfg(feature = "postgres")]
mod postgres;
mod read_ports;
mod record;
mod sled;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dispatch::ports::FaultKind;

pub use self::key_value::{CommitValue, KeyValue, KeyValueError, Listing, MAX_VALUE, NamespaceQuota};
pub use self::memory::MemoryStore;
pub use self::portable::{DOCUMENTS, ExportError, ImportError, MAX_RECORD, Moved, Shared};
#[cfg(feature = "postgres")]
pub use self::postgres::{
    DatabaseTime, Documents, HostIdentity, PostgresError, PostgresSettings, PostgresStore, SharedComponents,
    authorities, export_database, import_database,
};
pub use self::sled::{
    BESIDE, Inconsistency, MAX_READ_THREADS, SalvageError, Salvaged, SledStore, StoreCheck, VerifyError, import,
    salvage, verify,
};

/// The operator's settings of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSettings {
    /// The size of the page cache, in bytes.
    pub cache_bytes: u64,
    /// Whether a folder of an older format is migrated. Without it, such a folder is refused.
    pub migrates: bool,
    /// The maximum time for a read. While the disk does not answer, reads fail after this time, and
    /// [`Health::health`](dispatch::ports::Health::health) says so.
    pub disk_deadline: Duration,
    /// The runtime whose threads may read single entries themselves, one at a time and without a deadline. It is faster. `None`:
    /// all reads run in threads of their own.
    pub reading_runtime: Option<tokio::runtime::Id>,
    /// The size of a segment of the log, in bytes. A folder can be opened only with the size that it was made with.
    /// Tests use smaller ones than the default, so that the log needs new segments and frees old ones after few writes.
    #[doc(hidden)]
    pub segment_bytes: usize,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            migrates: true,
            disk_deadline: Duration::from_secs(10),
            reading_runtime: None,
            segment_bytes: sled::SEGMENT,
        }
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
    /// An older host wrote it, and the settings do not allow a migration.
    #[error(
        "{} has the format {found}, and this host knows {known}; a dry run or an export does not migrate it. Copy the folder; \
         then start the host, or run `toolgate store prune`",
        .path.display()
    )]
    NotMigrated { path: PathBuf, found: u8, known: u8 },
    /// A host from before the first release wrote it, in a form that is no longer read.
    #[error("{} has the pre-release format {found}, and this host knows {known}; keep it, and start with another folder", .path.display())]
    Older { path: PathBuf, found: u8, known: u8 },
    /// Its content is not what was written.
    #[error(
        "{} is damaged: {reason}; do not delete it, because most of it can be read; `toolgate store salvage` copies what is \
         intact to another folder; or restore a backup to another folder, and start from that",
        .path.display()
    )]
    Damaged { path: PathBuf, reason: String },
    /// The disk is full. The store is whole.
    #[error("no space is left on the disk of {}; nothing that was stored is lost: free some space and start again", .path.display())]
    NoSpace { path: PathBuf },
    /// The operating system refused.
    #[error("cannot use {}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl OpenError {
    /// The error for a cause. The kinds stay apart: an operator who takes a full disk for damage may give up whole data.
    fn of(path: &Path, cause: &impl fault::Cause) -> Self {
        let (path, reason) = (path.to_owned(), cause.to_string());
        match cause.kind() {
            FaultKind::NoSpace => Self::NoSpace { path },
            FaultKind::Damaged => Self::Damaged { path, reason },
            FaultKind::Disk | FaultKind::NoAnswer | FaultKind::Program => {
                Self::Io { path, source: io::Error::other(reason) }
            }
        }
    }

    /// The error for an operation on the folder itself.
    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match fault::Cause::kind(&source) {
            FaultKind::NoSpace => Self::NoSpace { path },
            _ => Self::Io { path, source },
        }
    }
}

/// Opens the store in a folder, or creates it. Reads the end of sled's log, so call it where blocking is allowed.
///
/// # Errors
/// [`OpenError`].
pub fn open(path: impl AsRef<Path>, settings: &StoreSettings) -> Result<SledStore, OpenError> {
    SledStore::open(path.as_ref(), settings)
}
