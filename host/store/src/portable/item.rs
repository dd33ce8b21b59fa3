//! A line of an export, with its records decoded.

use dispatch::ports::{DeliveryRow, Denial, EndedTurn, Head, Position, RunLog, Source, SuspensionRow};
use domain::{
    CallId, CallIndex, ConversationId, Digest, PrincipalId, Timestamp, TurnId, event::TurnEnd, standing::StandingRow,
};

use super::{EntryItem, Shared};

/// A decoded record with its stored form.
pub(crate) struct Recorded<T> {
    pub(crate) row: T,
    pub(crate) record: Vec<u8>,
}

/// A line between the first and the last one.
pub(crate) enum Item {
    RetentionTime(Timestamp),
    Commit(CommitItem),
    Owner(ConversationId, PrincipalId),
    Call(ConversationId, CallId, TurnId),
    Suspension(Recorded<SuspensionRow>),
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "a data folder finds the position and the end in the log")
    )]
    Ended {
        position: Option<Position>,
        end: TurnEnd,
        bytes: u64,
        ended: Recorded<EndedTurn>,
    },
    Standing(Box<Recorded<StandingRow>>),
    Denial(Denial),
    Delivery(Recorded<DeliveryRow>),
    RunLog(Recorded<RunLog>),
    Journal {
        turn: TurnId,
        call: CallIndex,
        run: Option<u32>,
        length: u32,
    },
    JournalEntry(EntryItem),
    Value {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Shared(Shared),
}

/// An entry of the audit.
pub(crate) struct CommitItem {
    pub(crate) head: Head,
    pub(crate) source: Source,
    /// Of a turn.
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// The stored form, and the ids of the calls that it requests.
    Record(Vec<u8>, Vec<CallId>),
    Removed {
        digest: Digest,
        by: Position,
    },
}
