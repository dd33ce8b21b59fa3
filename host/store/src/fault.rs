//! Turns any error into the one error of the port.

use std::fmt::Display;
use std::io;

use dispatch::ports::{FaultKind, StoreFault};

/// For `map_err`: what was attempted, and why it failed.
pub(crate) fn fault<E: Cause>(attempted: &'static str) -> impl FnOnce(E) -> StoreFault {
    move |cause| StoreFault { kind: cause.kind(), attempted, reason: cause.to_string() }
}

/// An error that a store turns into a fault.
pub(crate) trait Cause: Display {
    fn kind(&self) -> FaultKind {
        FaultKind::Program
    }
}

impl Cause for &str {}
impl Cause for serde_json::Error {}
impl Cause for tokio::task::JoinError {}
impl Cause for tokio::sync::AcquireError {}
impl Cause for tokio::sync::watch::error::RecvError {}

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

impl Cause for io::Error {
    fn kind(&self) -> FaultKind {
        use io::ErrorKind::{FileTooLarge, InvalidData, NotFound, QuotaExceeded, StorageFull, UnexpectedEof};
        // Too many open files.
        if matches!(self.raw_os_error(), Some(ENFILE | EMFILE)) {
            return FaultKind::Program;
        }
        match io::Error::kind(self) {
            StorageFull | QuotaExceeded | FileTooLarge => FaultKind::NoSpace,
            // A file is shorter than it was, or is no longer there.
            InvalidData | NotFound | UnexpectedEof => FaultKind::Damaged,
            _ => FaultKind::Disk,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Io(io::Error),
    /// The content is not what was written.
    #[error("the database is damaged: {0}")]
    Damaged(String),
    /// It is being opened again after the disk was full, or that has failed for good.
    #[error("{}", match .0 {
        FaultKind::NoSpace => "the disk was full, and the database is not open again yet",
        _ => "the database could not be opened again after the disk was full",
    })]
    Closed(FaultKind),
}

impl Cause for StoreFault {
    fn kind(&self) -> FaultKind {
        self.kind
    }
}

impl Cause for DatabaseError {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Io(error) => Cause::kind(error),
            Self::Damaged(_) => FaultKind::Damaged,
            Self::Closed(kind) => *kind,
        }
    }
}

impl From<sled::Error> for DatabaseError {
    fn from(error: sled::Error) -> Self {
        match error {
            sled::Error::Io(error) => Self::Io(error),
            sled::Error::Corruption { at: Some(at), .. } => {
                Self::Damaged(format!("its file is not as it was written at byte {}", at.lid()))
            }
            sled::Error::Corruption { at: None, .. } => Self::Damaged("its files are not as they were written".into()),
            sled::Error::CollectionNotFound(_) => Self::Damaged("a table is missing".into()),
            sled::Error::Unsupported(reason) | sled::Error::ReportableBug(reason) => Self::Damaged(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lack_of_descriptors_is_no_fault_of_the_disk() {
        for (code, kind) in [(ENFILE, FaultKind::Program), (EMFILE, FaultKind::Program), (5, FaultKind::Disk)] {
            assert_eq!(Cause::kind(&io::Error::from_raw_os_error(code)), kind, "{code}");
        }
    }
}
