//! The log: the one place where something is written, and what a reader of logs and feeds needs.

use async_trait::async_trait;
use domain::{
    ConversationId, Event, TurnId,
    event::{HostStarted, PluginEvent},
    retention::Removal,
    standing::StandingRevoked,
};

use super::commit::{AppendError, Commit};
use super::retention::Loaded;

/// A point in the order of all commits of one store. The first commit with facts has position 1, and each further one
/// the next number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// Appends commits, and reads them back by turn and by feed.
#[async_trait]
pub trait Log: Send + Sync {
    /// Makes a commit. Everything that a store writes goes through here.
    ///
    /// Laws:
    /// - A commit happens completely or not at all. If one row of it is refused, nothing of it is written.
    /// - When this returns, the commit is on disk, and so is everything that was written before it.
    /// - Commits happen one after the other. Each is checked against all commits before it.
    /// - A commit with facts gets the next position. A commit without facts gets none, and this returns the last position
    ///   that was given out.
    ///
    /// # Errors
    /// [`AppendError`]; nothing was written, except that the state is unknown after a fault of the disk.
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError>;

    /// The log of a turn. Absent if it has no commits.
    async fn load(&self, turn: TurnId) -> Result<Loaded<TurnLog>, StoreFault> {
        self.load_until(turn, u32::MAX).await
    }

    /// The first commits of a turn's log; all of them if it has fewer.
    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault>;

    /// The commits of a feed after a position, oldest first: at most `limit`, and as many as have at most `bytes` of
    /// stored records, but at least one.
    ///
    /// Laws:
    /// - It returns only what no crash can undo.
    /// - It reads no record that it does not return.
    async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault>;

    /// Returns once everything that was written before is on disk, the key-value data of plugins included.
    async fn sync(&self) -> Result<(), StoreFault>;

    /// Why the store takes no commits at present, or why reads take too long. `None`: both go on.
    fn failure(&self) -> Option<StoreFault> {
        None
    }

    /// How many damaged records were found since the store was opened. Each is set aside: reads that need it fail, and
    /// listings, feeds and the audit go on without it.
    fn damaged_records(&self) -> usize {
        0
    }

    /// The number of reads that failed because the disk did not answer in time.
    fn timed_out_reads(&self) -> u64 {
        0
    }
}

/// The log of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLog {
    /// The number of its commits.
    pub version: u32,
    /// Its events, oldest first.
    pub events: Vec<Event>,
}

/// Something that can be followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Feed {
    /// The turns of a conversation.
    Conversation(ConversationId),
    /// The host's plugins.
    Host,
}

/// A commit, as it appears in a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub position: Position,
    pub facts: Facts,
}

/// The facts of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    Turn {
        turn: TurnId,
        events: Vec<Event>,
    },
    Plugin(PluginEvent),
    /// A host started. It is in no feed, only in the audit.
    Started(HostStarted),
    /// A standing approval was revoked. It is in no feed, only in the audit.
    Revoked(StandingRevoked),
    /// Turns were removed. It is in no feed, only in the audit.
    Removal(Removal),
    /// The facts of this commit were removed with their turn. A later [`Facts::Removal`] says so.
    Removed {
        turn: TurnId,
    },
    /// The record of this commit is damaged, and set aside.
    Unreadable {
        /// The turn of the commit, if it is of one.
        turn: Option<TurnId>,
    },
}

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
