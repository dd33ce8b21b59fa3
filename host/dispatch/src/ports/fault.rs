//! The faults of a store.

/// The kind of a fault. Each has its own remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The disk is full, or a quota on it is used up. The stored data is intact.
    NoSpace,
    /// The disk or the operating system failed.
    Disk,
    /// The disk did not answer in time. Nothing is known to be lost.
    NoAnswer,
    /// Stored content is not what was written.
    Damaged,
    /// Anything else: a fault of this program.
    Program,
}

/// The store failed: a fault of this program or of the disk.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store failed to {attempted}: {reason}")]
pub struct StoreFault {
    pub kind: FaultKind,
    /// The operation that failed.
    pub attempted: &'static str,
    /// Why it failed, for the log.
    pub reason: String,
}

impl StoreFault {
    /// A fault of this program.
    pub fn of_program(attempted: &'static str, reason: impl Into<String>) -> Self {
        Self { kind: FaultKind::Program, attempted, reason: reason.into() }
    }

    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.kind == FaultKind::Damaged
    }

    /// Stored content is not what was written.
    pub fn damaged(attempted: &'static str, reason: impl Into<String>) -> Self {
        Self { kind: FaultKind::Damaged, attempted, reason: reason.into() }
    }
}
