//! A commit: facts for a log, and the rows of the indexes that change with them.

use domain::{
    CallId, ConversationId, Digest, Event, PrincipalId, StandingId, Timestamp, TurnId,
    effect::Due,
    event::{HostStarted, PluginEvent},
    standing::{StandingRevoked, StandingRow},
};

use super::log::StoreFault;
use super::outbox::DeliveryRow;
use super::store::SuspensionRow;

/// What is written at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// What becomes true. `None`: only rows change, and the commit appears in no log, no feed and not in the audit.
    pub facts: Option<NewFacts>,
    /// The rows that change, checked in this order. At most one of them writes a given row, but there may be several
    /// uses of one standing approval.
    pub rows: Vec<RowChange>,
}

/// Facts that have no position yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewFacts {
    /// For the log of a turn. Refused with [`AppendError::Conflict`] if the log has another length than expected.
    Turn {
        turn: TurnId,
        /// The conversation in whose feed the events appear.
        conversation: ConversationId,
        /// The number of commits in the log before this one.
        expected: u32,
        events: Vec<Event>,
    },
    /// For the host's feed.
    Plugin(PluginEvent),
    /// A host starts.
    Started(HostStarted),
    /// Revokes a standing approval: no later commit uses it. Refused with [`AppendError::NotRevocable`] if it does not
    /// exist or was revoked before.
    Revoked(StandingRevoked),
}

/// A change of one row. A row contains all that is stored of it: it does not depend on the facts of its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    /// A conversation belongs to its first owner. Refused with [`AppendError::NotOwner`] if that is somebody else.
    Owner { conversation: ConversationId, owner: PrincipalId },
    /// A call id belongs to the first turn that was submitted with it. Refused with [`AppendError::CallExists`] if that
    /// is another turn.
    Call { conversation: ConversationId, id: CallId, turn: TurnId },
    /// When a turn is next due. `before` is what the index holds. A turn without `after` has ended.
    Due { turn: TurnId, before: Option<Due>, after: Option<Due> },
    /// A suspension is new, or its row changed.
    Suspension(SuspensionRow),
    /// A delivery is new, or has made progress.
    Delivery(DeliveryRow),
    /// A standing approval was given. Its id is new, and its terms never change.
    Standing(Box<StandingRow>),
    /// A call uses a standing approval. Refused with [`AppendError::StandingSpent`] if it has no use left, was revoked,
    /// or does not exist.
    StandingUse(StandingId),
    /// Removes a standing approval. Refused with [`AppendError::Changed`] if it does not exist, or was used or revoked
    /// since this row was read.
    ForgetStanding(Box<StandingRow>),
    /// A person denied a call. Replaces an earlier denial of the same call.
    Denied(Denial),
    /// Removes a denial. Refused with [`AppendError::Changed`] if it does not exist, or has another time.
    ForgetDenial(Denial),
}

/// A person denied a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub conversation: ConversationId,
    /// The digest that calls share which are the same to people.
    pub alike: Digest,
    pub at: Timestamp,
}

impl Commit {
    /// Events for the log of a turn that has `expected` commits.
    #[must_use]
    pub fn turn(turn: TurnId, conversation: ConversationId, expected: u32, events: Vec<Event>) -> Self {
        NewFacts::Turn { turn, conversation, expected, events }.into()
    }

    /// Rows without facts.
    #[must_use]
    pub fn rows(rows: Vec<RowChange>) -> Self {
        Self { facts: None, rows }
    }

    /// Its events; none if it belongs to no turn.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        match &self.facts {
            Some(NewFacts::Turn { events, .. }) => events,
            Some(NewFacts::Plugin(_) | NewFacts::Started(_) | NewFacts::Revoked(_)) | None => &[],
        }
    }

    /// The same commit with more rows.
    #[must_use]
    pub fn with(mut self, rows: impl IntoIterator<Item = RowChange>) -> Self {
        self.rows.extend(rows);
        self
    }
}

impl From<NewFacts> for Commit {
    fn from(facts: NewFacts) -> Self {
        Self { facts: Some(facts), rows: Vec::new() }
    }
}

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Somebody else appended first. Load the turn and decide again.
    #[error("the log of the turn has another length than expected")]
    Conflict,
    #[error("the conversation belongs to somebody else")]
    NotOwner,
    #[error("a call id was submitted before, with {0}")]
    CallExists(TurnId),
    #[error("the standing approval {0} is used up or was revoked")]
    StandingSpent(StandingId),
    #[error("the standing approval {0} does not exist or was revoked before")]
    NotRevocable(StandingId),
    /// Somebody else wrote the row first. Read it again.
    #[error("a row to remove has changed since it was read")]
    Changed,
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

impl AppendError {
    /// As a fault, for callers that no refusal concerns.
    #[must_use]
    pub fn into_fault(self, attempted: &'static str) -> StoreFault {
        match self {
            Self::Fault(fault) => fault,
            refusal => StoreFault::of_program(attempted, refusal.to_string()),
        }
    }
}
