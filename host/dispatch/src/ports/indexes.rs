//! The indexes beside the logs.

use async_trait::async_trait;
use domain::{
    CallId, CallIndex, ConversationId, PrincipalId, SignalName, SuspensionId, Timestamp, TurnId,
    effect::Due,
    suspension::{Audience, SuspensionEnd, SuspensionKind, SuspensionState},
    turn::TurnState,
};
use tokio::task;

use super::fault::StoreFault;
use super::footprint::Footprint;
use super::position::Position;

/// Finds turns and suspensions without loading their logs.
#[async_trait]
pub trait Indexes: Send + Sync {
    /// The owner of a conversation. `None`: nothing was submitted to it yet.
    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault>;

    /// Conversations with their owners, in the order of their ids: those after the given one, at most `limit`.
    async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault>;

    /// The turn that a call id was submitted with.
    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault>;

    /// Turns of a conversation, the last one that was begun first: those that were begun before a position, at most
    /// `limit`.
    ///
    /// Law: its work is bounded, however long the conversation is.
    async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        limit: usize,
    ) -> Result<BegunTurns, StoreFault>;

    /// The states of these turns. `None`: the indexes do not have it, or there is no such turn.
    ///
    /// Law: the work depends on the number of turns and not on their sizes.
    async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault>;

    /// Turns that are due at or before a time, each with its time: those after the given one, at most `limit`. The
    /// soonest comes first. Turns with the same time come in the order of their ids.
    async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault>;

    /// Turns that have not ended, in the order of their ids: those after the given one, at most `limit`.
    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault>;

    /// The row of a suspension.
    async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault>;

    /// A page of suspensions, in the order of the filter.
    ///
    /// Law: the work depends on the limit and not on the number of suspensions that do not match.
    async fn suspensions(&self, filter: &Filter, after: Option<SuspensionId>, limit: usize)
    -> Result<Page, StoreFault>;

    /// A page of the open suspensions of these audiences, in the order of the filter. `open` of the filter does not matter.
    ///
    /// Law: the work depends on the limit and on the number of audiences, and not on the number of suspensions that do
    /// not match.
    async fn suspensions_of(
        &self,
        filter: &Filter,
        audiences: &[Audience],
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault>;

    /// The number of open suspensions of each audience. `open` of the filter does not matter.
    ///
    /// Law: the work depends on the number of different audiences and not on the number of suspensions.
    async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault>;

    /// The size of the records of a principal's turns, without those of removed turns.
    async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault>;

    /// All that a submission looks up, so that a store can read it at once. `keeper` asks for the usage of this principal.
    async fn find_submission(
        &self,
        conversation: &ConversationId,
        calls: Vec<CallId>,
        keeper: Option<&PrincipalId>,
    ) -> Result<FoundSubmission, StoreFault> {
        let mut found = FoundSubmission { owner: self.owner(conversation).await?, ..FoundSubmission::default() };
        // A conversation without an owner has no calls, and most turns of a conversation are new.
        for call in calls.into_iter().filter(|_| found.owner.is_some()) {
            if let Some(turn) = self.find_call(conversation, &call).await? {
                return Ok(FoundSubmission { call: Some((call, turn)), ..found });
            }
        }
        if let Some(keeper) = keeper {
            found.kept_bytes = Some(self.kept_bytes(keeper).await?);
        }
        Ok(found)
    }

    /// Waits until a read that holds the thread of this task has taken too long. A store whose reads hold no thread of their
    /// caller waits forever.
    async fn hangs(&self, _task: task::Id) -> StoreFault {
        std::future::pending().await
    }
}

/// The entries of the indexes that a submission needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundSubmission {
    /// The owner of its conversation. `None`: nothing was submitted to it yet.
    pub owner: Option<PrincipalId>,
    /// The first of its calls that was submitted before, and the turn that it was submitted with.
    pub call: Option<(CallId, TurnId)>,
    /// The kept bytes, if they were asked for and none of the calls was submitted before.
    pub kept_bytes: Option<u64>,
    /// As [`Peers::open_turns`](super::Peers::open_turns), if it was asked for and the store counts it.
    pub open_turns: Option<Footprint>,
}

/// Open suspensions by audience.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audiences {
    pub counts: Vec<(Audience, u64)>,
    /// Whether these are all audiences. A store reads at most [`Audiences::MAX`] of them.
    pub complete: bool,
}

impl Audiences {
    pub const MAX: usize = 10_000;
}

/// The index entry of a suspension. Filters read it without loading the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspensionRow {
    /// Its id. Ids sort by the time of their making.
    pub id: SuspensionId,
    pub turn: TurnId,
    pub call: CallIndex,
    pub conversation: ConversationId,
    /// The principal who submitted the turn.
    pub caller: PrincipalId,
    pub tool: String,
    pub kind: SuspensionKind,
    pub state: SuspensionState,
    /// Who ended it: who closed it, and who gave one of the approvals that closed it.
    pub ended_by: Vec<PrincipalId>,
    /// The name of the signal that ends it.
    pub signal: Option<SignalName>,
}

impl SuspensionRow {
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.state.is_open()
    }
}

/// A selection of suspensions, and their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those that still wait (`true`), or only those that ended (`false`).
    pub open: Option<bool>,
    /// Only those of this conversation and of its nested turns.
    pub conversation: Option<ConversationId>,
    /// Only those of this caller's turns.
    pub caller: Option<PrincipalId>,
    /// Only those of this tool.
    pub tool: Option<String>,
    /// Only those of this kind. `None`: those that people or clients are asked about.
    pub kind: Option<SuspensionKind>,
    /// Only those that ended so. Compares the names of the ends: a question may have a choice called `approve`.
    pub ended: Option<SuspensionEnd>,
    /// Only those that this principal ended, or gave one of the approvals that ended them.
    pub ended_by: Option<PrincipalId>,
    pub order: Order,
}

/// The order of suspensions by the time of their making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    OldestFirst,
    NewestFirst,
}

impl Order {
    /// Whether a suspension comes after another one.
    #[must_use]
    pub fn is_after(self, id: SuspensionId, other: SuspensionId) -> bool {
        match self {
            Self::OldestFirst => id > other,
            Self::NewestFirst => id < other,
        }
    }
}

impl Filter {
    /// Whether it asks how a suspension ended. Then no open suspension matches.
    #[must_use]
    pub const fn is_about_ends(&self) -> bool {
        self.ended.is_some() || self.ended_by.is_some()
    }

    /// Whether suspensions of a kind are asked for.
    #[must_use]
    pub fn has_kind(&self, kind: SuspensionKind) -> bool {
        self.kind.map_or_else(|| kind.is_asked(), |only| only == kind)
    }

    /// Whether a row is one of those that are asked for.
    #[must_use]
    pub fn matches(&self, row: &SuspensionRow) -> bool {
        self.open.is_none_or(|open| open == row.is_open())
            && self.conversation.as_ref().is_none_or(|conversation| conversation.is_with(&row.conversation))
            && self.caller.as_ref().is_none_or(|caller| *caller == row.caller)
            && self.tool.as_ref().is_none_or(|tool| *tool == row.tool)
            && self.has_kind(row.kind)
            && self
                .ended
                .as_ref()
                .is_none_or(|ended| matches!(&row.state, SuspensionState::Ended(of) if of.as_str() == ended.as_str()))
            && self.ended_by.as_ref().is_none_or(|by| row.ended_by.contains(by))
    }
}

/// A page of the turns of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BegunTurns {
    /// The turns, each with the position of its first commit.
    pub turns: Vec<(Position, TurnId)>,
    /// Where the next page begins, if there may be one. A page may be empty and still have a next one: a store looks at
    /// a bounded number of commits for each.
    pub next: Option<Position>,
}

/// A page of suspensions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub rows: Vec<SuspensionRow>,
    /// Where the next page begins, if there may be one. A page may have fewer rows than its limit and still have a next
    /// one: rows may change while it is read, and the work for one page is bounded.
    pub next: Option<SuspensionId>,
    /// Suspensions whose rows are damaged.
    pub unreadable: Vec<SuspensionId>,
}
