//! Turns any error into the one error of the port.

use std::fmt::Display;
use std::io;

use dispatch::ports::StoreFault;

/// For `map_err`: what was attempted, and why it failed.
pub(crate) fn fault<E: Display>(attempted: &'static str) -> impl FnOnce(E) -> StoreFault {
    move |reason| StoreFault { attempted, reason: reason.to_string() }
}

/// Why the database failed. The kinds differ in what an operator can do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// The disk or a quota of it is full. What is stored is whole.
    #[error("no space is left on the disk")]
    NoSpace,
    /// The operating system refused. What is stored may be whole.
    #[error("the disk failed: {0}")]
    Io(io::Error),
    /// The content is not what was written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
}

impl From<io::Error> for DatabaseError {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, QuotaExceeded, StorageFull, UnexpectedEof};
        match error.kind() {
            StorageFull | QuotaExceeded => Self::NoSpace,
            // A file is shorter than it was.
            InvalidData | UnexpectedEof => Self::Damaged(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<sled::Error> for DatabaseError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => error.into(),
            sled::Error::Corruption { at: Some(at), .. } => {
                Self::Damaged(format!("its file is not as it was written at byte {}", at.lid()))
            }
            sled::Error::Corruption { at: None, .. } => Self::Damaged("its files are not as they were written".into()),
            sled::Error::CollectionNotFound(_) => Self::Damaged("a table is missing".into()),
            sled::Error::Unsupported(reason) | sled::Error::ReportableBug(reason) => Self::Damaged(reason),
        }
    }
}
