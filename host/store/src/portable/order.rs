//! The order of the lines of a kind. Exports write them by their keys, so an import finds a key that is there twice without remembering
//! all of them.

use std::cmp::Ordering;
use std::fmt;

use dispatch::ports::{Denial, Subject};
use domain::{CallId, CallIndex, ConversationId, Digest, StandingId, SuspensionId, Timestamp, TurnId};

use super::item::Item;
use super::{EntryItem, Shared, hex};

/// The key of a line. Keys sort as the lines of an export do.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    RetentionTime,
    Owner(ConversationId),
    /// The length of the conversation's name, the name, and the id.
    Call(usize, ConversationId, CallId),
    Suspension(SuspensionId),
    Ended(Timestamp, TurnId),
    Standing(StandingId),
    /// The length of the conversation's name, the name, and the digest.
    Denial(usize, ConversationId, Digest),
    /// The bits of its subject, the number of its event, and the webhook.
    Delivery(u128, u32, String),
    RunLog(TurnId, CallIndex, u32),
    Journal(TurnId, CallIndex),
    JournalEntry(TurnId, CallIndex, u32),
    Value(Vec<u8>),
    Document(String),
    Component(Digest),
}

impl Key {
    /// `None`: a commit, whose position is one more than that of the commit before it.
    pub(super) fn of(item: &Item) -> Option<Self> {
        Some(match item {
            Item::RetentionTime(_) => Self::RetentionTime,
            Item::Commit(_) => return None,
            Item::Owner(conversation, _) => Self::Owner(conversation.clone()),
            Item::Call(conversation, id, _) => Self::call(conversation.clone(), id.clone()),
            Item::Suspension(suspension) => Self::Suspension(suspension.row.id),
            Item::Ended { ended, .. } => Self::Ended(ended.row.at, ended.row.turn),
            Item::Standing(standing) => Self::Standing(standing.row.standing.id),
            Item::Denial(Denial { conversation, alike, .. }) => {
                Self::Denial(conversation.as_str().len(), conversation.clone(), *alike)
            }
            Item::Delivery(delivery) => {
                let report = delivery.row.report;
                let bits = match report.subject() {
                    Subject::Suspension(id) => id.bits(),
                    Subject::Turn(id) => id.bits(),
                };
                Self::Delivery(bits, report.number(), delivery.row.webhook.clone())
            }
            Item::RunLog(log) => Self::RunLog(log.row.turn, log.row.call, log.row.run),
            Item::Journal { turn, call, .. } => Self::Journal(*turn, *call),
            Item::JournalEntry(EntryItem { turn, call, entry }) => Self::JournalEntry(*turn, *call, entry.row.number),
            Item::Value { key, .. } => Self::Value(key.clone()),
            Item::Shared(Shared::Document { name, .. }) => Self::Document(name.clone()),
            Item::Shared(Shared::Component { digest, .. }) => Self::Component(*digest),
        })
    }

    pub(crate) fn call(conversation: ConversationId, id: CallId) -> Self {
        Self::Call(conversation.as_str().len(), conversation, id)
    }

    /// Why a line with this key cannot follow one with another key.
    pub(super) fn refused_after(&self, before: &Self) -> Option<String> {
        match self.cmp(before) {
            Ordering::Greater => None,
            Ordering::Equal => Some(self.repeated()),
            Ordering::Less => Some(format!("{self} is there twice, or not in the order of the lines")),
        }
    }

    /// Why a line is refused if another one has this key.
    pub(crate) fn repeated(&self) -> String {
        format!("it repeats {self}")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetentionTime => f.write_str("the time of retention"),
            Self::Owner(conversation) => write!(f, "the owner of the conversation `{conversation}`"),
            Self::Call(_, conversation, id) => write!(f, "the call id `{id}` of the conversation `{conversation}`"),
            Self::Suspension(id) => write!(f, "the suspension {id}"),
            Self::Ended(_, turn) => write!(f, "the end of {turn}"),
            Self::Standing(id) => write!(f, "the standing approval {id}"),
            Self::Denial(_, conversation, _) => write!(f, "a denial in the conversation `{conversation}`"),
            Self::Delivery(.., webhook) => write!(f, "a delivery to the webhook `{webhook}`"),
            Self::RunLog(turn, call, run) => write!(f, "the log of run {run} of call {} of {turn}", call.0),
            Self::Journal(turn, call) => write!(f, "the journal of call {} of {turn}", call.0),
            Self::JournalEntry(turn, call, number) => {
                write!(f, "entry {number} of the journal of call {} of {turn}", call.0)
            }
            Self::Value(key) => write!(f, "the value with the key {}", hex(key)),
            Self::Document(name) => write!(f, "the document `{name}`"),
            Self::Component(digest) => write!(f, "the component {digest}"),
        }
    }
}
