//! A commit: facts for a log, and the changes to index rows that belong to them.

use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId,
    effect::Due,
    event::{HostStarted, PluginEvent, TurnEnd},
    journal::{Entry, ValueChange},
    standing::{StandingRevoked, StandingRow},
    suspension::Audience,
};

use super::call_log::RunLog;
use super::fault::StoreFault;
use super::footprint::Footprint;
use super::indexes::SuspensionRow;
use super::outbox::DeliveryRow;
use super::retention::{CallRecords, EndedTurn, TurnsToRemove};

/// Facts and row changes that the store writes atomically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The new facts. `None`: only rows change, and no log, feed or audit contains the commit.
    pub facts: Option<NewFacts>,
    /// The changes to rows. The store checks them in this order. At most one change writes a given row. Only a standing
    /// approval can have several uses in one commit, and a count several changes.
    pub rows: Vec<RowChange>,
}

/// Facts that have no position yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewFacts {
    /// Events for the log of a turn. Refused with [`AppendError::Conflict`] if the log does not have the expected
    /// length.
    Turn {
        turn: TurnId,
        /// The feed of this conversation shows the events.
        conversation: ConversationId,
        /// The number of commits in the log before this one.
        expected: u32,
        events: Vec<Event>,
    },
    /// An event for the host's feed.
    Plugin(PluginEvent),
    Started(HostStarted),
    /// Revokes a standing approval. No later commit can use it. Refused with [`AppendError::NotRevocable`] if it does
    /// not exist or is already revoked.
    Revoked(StandingRevoked),
    /// Removes the contents of ended turns. Refused with [`AppendError::Changed`] as [`EndedTurns`](super::EndedTurns)
    /// says.
    Removal(TurnsToRemove),
}

/// A change of one row. It contains all the data for the row and does not depend on the facts of its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    /// Makes a principal the owner of a conversation. Refused with [`AppendError::NotOwner`] if the conversation
    /// already has another owner.
    Owner { conversation: ConversationId, owner: PrincipalId },
    /// Assigns a call id to a turn. Refused with [`AppendError::CallExists`] if the id already belongs to another turn.
    Call { conversation: ConversationId, id: CallId, turn: TurnId },
    /// Changes the time at which a turn is next due. `before` is the current entry of the index. Without `after`, the
    /// turn has ended.
    Due { turn: TurnId, before: Option<Due>, after: Option<Due> },
    /// Adds a turn to the index of ended turns, and its end to the feeds. Its commit ends the turn. If the commit has no
    /// facts, no feed changes.
    Ended(EndedTurn, TurnEnd),
    /// Creates or changes a suspension.
    Suspension(SuspensionRow),
    /// Changes the audience that counts an open suspension.
    Audience(Box<AudienceChange>),
    /// Counts the record of this commit, and the entries of journals in the rows before this one, as kept for the principal whose
    /// turn they belong to.
    Kept(PrincipalId),
    /// Changes what the open turns of a principal use. Only a store that several hosts share counts it
    /// ([`Peers::open_turns`](super::Peers::open_turns)).
    Open { principal: PrincipalId, less: Footprint, more: Footprint },
    /// Changes nothing. Refused with [`AppendError::Conflict`] if the log of this turn has another number of commits.
    Length { turn: TurnId, commits: u32 },
    /// The time that retention goes by. Replaces the last one.
    RetentionTime(Timestamp),
    /// Creates or changes a delivery.
    Delivery(DeliveryRow),
    /// Writes the log of a run, unless it has more lines already or its turn was removed.
    RunLog(RunLog),
    /// Removes these records of the calls of an ended turn, which had this size with them. The size without them counts from then
    /// on. Refused with [`AppendError::Changed`] if the turn has another size or was removed. A log that is written at the same
    /// time may go as well, and lines that were written after the end of the turn were never counted.
    Forget(CallRecords, EndedTurn, u64),
    /// Names the run that may append to the journal of a call. `None`: no run may.
    JournalRun { turn: TurnId, call: CallIndex, run: Option<u32> },
    /// Appends to a journal. Refused with [`AppendError::Superseded`] if the run may not append, or if the journal has
    /// another length.
    JournalEntry(JournalRow),
    /// Changes key-value data. Only together with entries of a journal. Refused with [`AppendError::Changed`] if another host has
    /// replaced the old value. A store that only one host uses need not check this.
    Value(ValueChange),
    /// Creates a standing approval. Its id is new, and its terms never change.
    Standing(Box<StandingRow>),
    /// Uses a standing approval for a call. Refused with [`AppendError::StandingSpent`] if the approval is used up, is
    /// revoked, or does not exist.
    StandingUse(StandingId),
    /// Removes a standing approval. Refused with [`AppendError::Changed`] if it does not exist, or if it was used or
    /// revoked after this row was read.
    ForgetStanding(Box<StandingRow>),
    /// Records that a person denied a call. Replaces an earlier denial of an equal call in the conversation.
    Denied(Denial),
    /// Removes a denial. Refused with [`AppendError::Changed`] if it does not exist or has another time.
    ForgetDenial(Denial),
}

impl RowChange {
    /// The suspension that it creates or changes.
    #[must_use]
    pub const fn suspension(&self) -> Option<&SuspensionRow> {
        match self {
            Self::Suspension(row) => Some(row),
            Self::Owner { .. }
            | Self::Call { .. }
            | Self::Due { .. }
            | Self::Delivery(_)
            | Self::RunLog(_)
            | Self::Forget(..)
            | Self::JournalRun { .. }
            | Self::JournalEntry(_)
            | Self::Value(_)
            | Self::Standing(_)
            | Self::StandingUse(_)
            | Self::ForgetStanding(_)
            | Self::Denied(_)
            | Self::ForgetDenial(_)
            | Self::Audience(_)
            | Self::Kept(_)
            | Self::Open { .. }
            | Self::Length { .. }
            | Self::RetentionTime(_)
            | Self::Ended(..) => None,
        }
    }
}

/// Another audience for an open suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudienceChange {
    pub suspension: SuspensionId,
    pub conversation: ConversationId,
    pub caller: PrincipalId,
    pub tool: String,
    /// The audience that counts it now. `None`: the suspension opens.
    pub before: Option<Audience>,
    /// The audience that counts it from now on. `None`: the suspension ended.
    pub after: Option<Audience>,
}

/// A new entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRow {
    pub turn: TurnId,
    pub call: CallIndex,
    /// The run that appends it.
    pub run: u32,
    pub entry: Entry,
}

/// A record that a person denied a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub conversation: ConversationId,
    /// Calls that look equal to people have the same digest.
    pub alike: Digest,
    pub at: Timestamp,
}

impl Denial {
    /// About its size in a store, in bytes: the id of its conversation and 64 bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.conversation.as_str().len() + 64
    }
}

impl Commit {
    /// A commit for the log of a turn. The log must have `expected` commits.
    #[must_use]
    pub fn turn(turn: TurnId, conversation: ConversationId, expected: u32, events: Vec<Event>) -> Self {
        NewFacts::Turn { turn, conversation, expected, events }.into()
    }

    /// A commit of rows without facts.
    #[must_use]
    pub fn rows(rows: Vec<RowChange>) -> Self {
        Self { facts: None, rows }
    }

    /// The turn's events. Empty if the commit belongs to no turn.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        match &self.facts {
            Some(NewFacts::Turn { events, .. }) => events,
            Some(NewFacts::Plugin(_) | NewFacts::Started(_) | NewFacts::Revoked(_) | NewFacts::Removal(_)) | None => {
                &[]
            }
        }
    }

    /// Adds rows to the commit.
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

/// The store refused a commit or failed.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another commit came first. The caller must load the turn and decide again.
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
    /// Another commit changed the row first. The caller must read the row again.
    #[error("a row has changed since it was read")]
    Changed,
    #[error("the run may not append to the journal of its call any more")]
    Superseded,
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

impl AppendError {
    /// Converts the error to a fault, for callers that expect no refusal.
    #[must_use]
    pub fn into_fault(self, attempted: &'static str) -> StoreFault {
        match self {
            Self::Fault(fault) => fault,
            refusal => StoreFault::of_program(attempted, refusal.to_string()),
        }
    }
}
