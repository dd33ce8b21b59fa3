//! The log: the one place where commits are made, and what a reader of logs and feeds needs.

use async_trait::async_trait;
use domain::{
    ConversationId, Event, PrincipalId, Timestamp, TurnId,
    event::{HostStarted, PluginEvent, TurnEnd},
    retention::Removal,
    standing::StandingRevoked,
};

use super::commit::{AppendError, Commit};
use super::fault::StoreFault;
use super::position::Position;
use super::retention::{EndedTurn, Loaded};

/// Appends commits, and reads them back by turn and by feed.
#[async_trait]
pub trait Log: Send + Sync {
    /// Makes a commit. All commits are made here. Key-value writes of calls that are not durable go to the same database and are
    /// on disk with the next commit.
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
    /// The host's plugins, and the ends of all turns. A removal of a turn removes its end.
    Host,
    /// The ends of the turns of this principal.
    Caller(PrincipalId),
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
    /// A turn ended. It is in the feeds of the host and of the caller; the audit has the events of the turn.
    Ended(TurnEnding),
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

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnding {
    pub turn: TurnId,
    pub conversation: ConversationId,
    /// The principal who submitted the turn.
    pub caller: PrincipalId,
    pub end: TurnEnd,
    pub at: Timestamp,
}

impl TurnEnding {
    #[must_use]
    pub fn of(row: &EndedTurn, end: TurnEnd) -> Self {
        let (conversation, caller) = (row.conversation.clone(), row.caller.clone());
        Self { turn: row.turn, conversation, caller, end, at: row.at }
    }
}
