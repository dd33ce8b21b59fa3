//! What must outlive the process. A store keeps a log of commits per turn and the indexes that are derived from it; it
//! knows no rule of a call's life. Its laws are tests that run on every implementation.

use async_trait::async_trait;
use domain::{
    CallId, CallIndex, ConversationId, Digest, Due, Event, HostStarted, Kind, PluginEvent, PrincipalId, StandingId,
    StandingRevoked, StandingRow, SuspensionId, SuspensionState, Timestamp, TurnId,
};

use super::audit::{Audited, Head, Link};
use super::outbox::DeliveryRow;

/// A point in the order of everything that was committed to one store: the first commit has 1, each further one has one
/// more than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// A log of commits with its indexes.
///
/// Laws: a commit happens wholly or not at all. A returned `append` is on disk. A read sees every append that returned
/// before it began. Positions rise in the order of commits, in every feed. The audit is that order: every commit is a link
/// of its chain, and the same commits make the same chain on every backend.
#[async_trait]
pub trait Store: Send + Sync {
    /// Appends to the log of a turn and changes the indexes with it.
    ///
    /// # Errors
    /// [`AppendError`]; nothing has changed.
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError>;

    /// Appends a fact about a plugin to the host's feed.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing has changed.
    async fn record(&self, event: PluginEvent) -> Result<Position, StoreFault>;

    /// Appends that a host began to run. It is in no feed.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing has changed.
    async fn started(&self, start: HostStarted) -> Result<Position, StoreFault>;

    /// The start that was recorded last.
    async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault>;

    /// Returns once everything that was written before is on disk, the plugins' own key-value data included.
    async fn sync(&self) -> Result<(), StoreFault>;

    /// The log of a turn.
    async fn load(&self, turn: TurnId) -> Result<Option<Loaded>, StoreFault> {
        self.load_until(turn, u32::MAX).await
    }

    /// The log of a turn as it was when it had so many commits; as it is, if it has fewer.
    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Option<Loaded>, StoreFault>;

    /// To whom a conversation belongs. `None`: to nobody yet, and nothing was ever submitted to it.
    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault>;

    /// Conversations with whose they are, in the order of their ids: those after the given one, at most `limit`.
    async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault>;

    /// The turn that a call id was submitted with.
    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault>;

    /// Turns that are due at or before a time, soonest first and those of one time in the order of ids, with the time of each, in
    /// pages: those after the given one, at most `limit`.
    async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault>;

    /// Every turn that has not ended, in pages: those after the given one, in the order of ids.
    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault>;

    /// What was committed to a feed after a position, oldest first, at most `limit` commits.
    async fn follow(&self, feed: &Feed, after: Position, limit: usize) -> Result<Vec<Committed>, StoreFault>;

    /// One suspension's row.
    async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault>;

    /// A page of suspensions, oldest first.
    async fn suspensions(&self, filter: &Filter, after: Option<SuspensionId>, limit: usize)
    -> Result<Page, StoreFault>;

    /// Writes down how far a delivery has come. It is in no log and not in the audit.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing has changed.
    async fn delivery(&self, row: DeliveryRow) -> Result<(), StoreFault>;

    /// Every delivery about a suspension, in the order of occasions.
    async fn deliveries(&self, of: SuspensionId) -> Result<Vec<DeliveryRow>, StoreFault>;

    /// Deliveries to a webhook that are to be attempted at or before a time, soonest first, at most `limit`.
    async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault>;

    /// The names of the webhooks to which something is still to be delivered, each once.
    async fn webhooks_owed(&self) -> Result<Vec<String>, StoreFault>;

    /// One standing approval, as often used as the commits say that used it.
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault>;

    /// Every standing approval, usable or not, in pages: those after the given one, in the order of ids. Fewer than `limit`
    /// are the last.
    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault>;

    /// Takes a standing approval back: no commit after it uses it. `None` where there is none, or it was taken back before;
    /// nothing has changed then. It is in no feed.
    ///
    /// # Errors
    /// [`StoreFault`]; nothing has changed.
    async fn revoke(&self, revoked: StandingRevoked) -> Result<Option<Position>, StoreFault>;

    /// When a person last denied a call of a conversation that is the same to people as the one of this digest.
    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault>;

    /// Forgets the denials of before a time, and the standing approvals whose time was over before another: nobody asks for
    /// them any more. A row that changes meanwhile stays. The logs and the audit keep what happened. Returns how many rows
    /// are gone.
    ///
    /// # Errors
    /// [`StoreFault`]; some may be gone.
    async fn forget(&self, denied: Timestamp, ended: Timestamp) -> Result<usize, StoreFault>;

    /// Every commit after a position with what it says, oldest first, at most `limit`.
    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault>;

    /// The same as links of the chain: with the digests that the records have now, whatever they say.
    async fn chain(&self, after: Position, limit: usize) -> Result<Vec<Link>, StoreFault>;

    /// The last link of what is on disk.
    async fn head(&self) -> Result<Head, StoreFault>;
}

/// What happens at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The turn whose log grows.
    pub turn: TurnId,
    /// The conversation in whose feed the events appear.
    pub conversation: ConversationId,
    /// How many commits the turn's log has. The only concurrency control there is.
    pub expected: u32,
    /// What became true.
    pub events: Vec<Event>,
    /// What of the indexes changes with it.
    pub index: Vec<Index>,
}

/// A change of a derived index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    /// The conversation belongs to this principal. Holds if it did already; fails the commit if it is another's.
    Owner(PrincipalId),
    /// This call id belongs to this turn. Fails the commit if it belongs to another.
    Call(CallId),
    /// When the turn is next due, and when it was due before.
    Due {
        /// What the index holds for the turn.
        before: Option<Due>,
        /// What it shall hold.
        after: Option<Due>,
    },
    /// A suspension began, or its row changed.
    Suspension(SuspensionRow),
    /// Somebody is to be told of it.
    Delivery(DeliveryRow),
    /// A standing approval was given.
    Standing(Box<StandingRow>),
    /// A standing approval lets a call go on. Fails the commit where it has no use left or was taken back.
    StandingUse(StandingId),
    /// A person denied the call of this digest, at this time.
    Denied(Digest, Timestamp),
}

/// What can be filtered of a suspension without loading its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspensionRow {
    /// Its id. Ids sort by the time of their making.
    pub id: SuspensionId,
    /// Its turn.
    pub turn: TurnId,
    /// Its call.
    pub call: CallIndex,
    /// Its conversation.
    pub conversation: ConversationId,
    /// Who submitted the turn.
    pub caller: PrincipalId,
    /// The tool.
    pub tool: String,
    pub kind: Kind,
    pub state: SuspensionState,
}

impl SuspensionRow {
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.state.is_open()
    }
}

/// Which suspensions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those that still wait (`true`), or only those that ended (`false`).
    pub open: Option<bool>,
    /// Only those of this conversation.
    pub conversation: Option<ConversationId>,
    /// Only those of this caller's turns.
    pub caller: Option<PrincipalId>,
    /// Only those of this tool.
    pub tool: Option<String>,
    /// Only those of this kind.
    pub kind: Option<Kind>,
}

impl Filter {
    /// Whether a row is one of those that are asked for.
    #[must_use]
    pub fn matches(&self, row: &SuspensionRow) -> bool {
        self.open.is_none_or(|open| open == row.is_open())
            && self.conversation.as_ref().is_none_or(|conversation| *conversation == row.conversation)
            && self.caller.as_ref().is_none_or(|caller| *caller == row.caller)
            && self.tool.as_ref().is_none_or(|tool| *tool == row.tool)
            && self.kind.is_none_or(|kind| kind == row.kind)
    }
}

/// A page of suspensions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The rows.
    pub rows: Vec<SuspensionRow>,
    /// Where the next page begins, if there may be one. A page may be empty and still have a next one: a store looks at
    /// a bounded number of rows for each.
    pub next: Option<SuspensionId>,
}

/// The log of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// How many commits it has.
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

/// One commit, as it appears in a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Where it stands.
    pub position: Position,
    /// What became true with it.
    pub facts: Facts,
}

/// What became true with one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    /// Of a turn.
    Turn {
        /// Which.
        turn: TurnId,
        /// What.
        events: Vec<Event>,
    },
    /// Of a plugin.
    Plugin(PluginEvent),
    /// Of the host itself: it began to run. In the audit only.
    Started(HostStarted),
    /// Of a standing approval: it was taken back. In the audit only.
    Revoked(StandingRevoked),
}

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else appended first. Load, decide again.
    #[error("the log of the turn has another length than expected")]
    Conflict,
    /// The conversation is another principal's.
    #[error("the conversation belongs to somebody else")]
    NotOwner,
    /// A call id of the commit was submitted before, with this turn.
    #[error("a call id was submitted before, with {0}")]
    CallExists(TurnId),
    /// A standing approval that the commit relies on cannot be used any more.
    #[error("the standing approval {0} is used up or was taken back")]
    StandingSpent(StandingId),
    /// The store failed.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

/// The store failed: ours, or the disk's.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store failed to {attempted}: {reason}")]
pub struct StoreFault {
    /// What was attempted.
    pub attempted: &'static str,
    /// Why it failed, for the log.
    pub reason: String,
}
