//! The removal of ended turns.

use async_trait::async_trait;
use domain::{
    Call, ConversationId, PrincipalId, SuspensionId, Timestamp, Turn, TurnId,
    retention::{Removal, RemovalRule, RemovedTurn},
    turn::TurnState,
};

use super::fault::StoreFault;

/// Finds ended turns to remove. [`NewFacts::Removal`](super::NewFacts::Removal) removes them.
///
/// Laws of a removal:
/// - The log of a removed turn is [`Loaded::Removed`]. Its entries in feeds, its suspensions and their deliveries are
///   removed. Its call ids still belong to it, and nothing can be appended to its log.
/// - The chain of the audit keeps the digests of the removed records, so every hash stays the same.
/// - It is refused with [`AppendError::Changed`](super::AppendError::Changed) if a turn has not ended, was removed
///   before, has another number of commits, or has a delivery with another attempt to come.
#[async_trait]
pub trait EndedTurns: Send + Sync {
    /// Ended turns that were not removed, each with the size of its records in bytes: those after the given one, at
    /// most `limit`. The turn that ended first comes first. Turns that ended at the same time come in the order of their
    /// ids.
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault>;

    /// The size of these records of an ended turn's calls in bytes. `None` without any. A
    /// [`RowChange::Forget`](super::RowChange::Forget) removes them.
    async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault>;

    /// The last [`RowChange::RetentionTime`](super::RowChange::RetentionTime).
    async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault>;

    /// Frees the space of large records that nothing refers to: those of removed turns, and those of commits that
    /// failed. Returns how many were removed.
    ///
    /// Law: a record that a present or a concurrent commit refers to stays.
    async fn reclaim(&self) -> Result<u64, StoreFault>;
}

/// Records of calls that can be removed before their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallRecords {
    Logs,
    Journals,
}

/// An ended turn, as far as the rules of retention need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTurn {
    pub turn: TurnId,
    pub conversation: ConversationId,
    /// The principal who submitted the turn.
    pub caller: PrincipalId,
    /// The tools of its calls and of those of their nested turns, sorted, each once. The turn has the results of both.
    pub tools: Vec<String>,
    /// When it ended.
    pub at: Timestamp,
}

impl EndedTurn {
    /// The row of a turn. `None` if the turn has not ended.
    #[must_use]
    pub fn of(turn: &Turn) -> Option<Self> {
        let TurnState::Ended(_, at) = turn.state else { return None };
        let nested = turn.calls.iter().flat_map(Call::nested).flat_map(|nested| nested.calls.iter());
        let tools = turn.calls.iter().map(|call| &call.tool).chain(nested.map(|call| &call.tool));
        let mut tools: Vec<String> = tools.map(ToString::to_string).collect();
        tools.sort();
        tools.dedup();
        let (conversation, caller) = (turn.conversation.clone(), turn.caller.clone());
        Some(Self { turn: turn.id, conversation, caller, tools, at })
    }

    /// Its place among the ended turns.
    #[must_use]
    pub fn key(&self) -> (Timestamp, TurnId) {
        (self.at, self.turn)
    }
}

/// Ended turns to remove under one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnsToRemove {
    pub at: Timestamp,
    pub rule: RemovalRule,
    pub turns: Vec<TurnToRemove>,
}

/// An ended turn to remove, with everything that points to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnToRemove {
    /// Its row, as it was read.
    pub ended: EndedTurn,
    /// The size of its records, as it was read.
    pub bytes: u64,
    /// The number of commits in its log.
    pub commits: u32,
    /// The suspensions of its calls.
    pub suspensions: Vec<SuspensionId>,
}

impl TurnsToRemove {
    /// The fact that is stored.
    #[must_use]
    pub fn fact(&self) -> Removal {
        let removed = |turn: &TurnToRemove| RemovedTurn { turn: turn.ended.turn, commits: turn.commits };
        Removal {
            at: self.at,
            rule: self.rule.clone(),
            bytes: self.turns.iter().map(|turn| turn.bytes).fold(0, u64::saturating_add),
            turns: self.turns.iter().map(removed).collect(),
            lost: Vec::new(),
        }
    }
}

/// The result of loading something that may have been removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loaded<T> {
    Found(T),
    /// It was there, and retention removed it.
    Removed(Tombstone),
    /// It never was there.
    Absent,
}

/// The remains of a removed turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    pub conversation: ConversationId,
    /// When it was removed.
    pub at: Timestamp,
    /// The rule that removed it.
    pub rule: RemovalRule,
}

impl<T> Loaded<T> {
    /// The loaded value, if it is still there.
    #[must_use]
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Removed(_) | Self::Absent => None,
        }
    }
}
