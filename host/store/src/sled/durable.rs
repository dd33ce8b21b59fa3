//! How far the commits are on disk: the committing thread says it, and readers wait for it.

use dispatch::ports::{Position, StoreFault};

/// The position up to which commits are on disk. Readers wait for it, so they never return data that may be lost.
#[derive(Debug, Clone)]
pub(super) enum Durable {
    /// All commits up to this position are on disk.
    Until(Position),
    /// A write failed. All commits up to this position are on disk. The state of later commits is unknown.
    Failed(Position, StoreFault),
}

impl Durable {
    pub(super) fn until(&self) -> Position {
        match self {
            Self::Until(until) | Self::Failed(until, _) => *until,
        }
    }
}
