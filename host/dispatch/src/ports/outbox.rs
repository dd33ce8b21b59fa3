//! What is owed to those outside who want to be told: an outbox. A delivery is committed together with the events that
//! cause it, so a kill forgets none, and it is made at least once.

use std::fmt;

use domain::{SuspensionId, Timestamp};

use super::store::SuspensionRow;

/// What of a suspension is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occasion {
    /// It began to wait.
    Opened,
    /// A need of it was not met in time, and others may answer now.
    Escalated {
        /// Which of its needs, from 0.
        need: u16,
    },
    /// It ended, in whatever way.
    Closed,
}

impl Occasion {
    /// The name of the event.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Escalated { .. } => "escalated",
            Self::Closed => "closed",
        }
    }

    /// Numbers that sort as occasions follow each other.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Opened => 0,
            Self::Escalated { need } => 1 + need as u32,
            Self::Closed => u32::MAX,
        }
    }

    /// Reads [`Occasion::number`].
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Opened),
            u32::MAX => Some(Self::Closed),
            need => u16::try_from(need - 1).ok().map(|need| Self::Escalated { need }),
        }
    }
}

/// One per suspension: `opened`, `escalated-0`, `closed`.
impl fmt::Display for Occasion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escalated { need } => write!(f, "escalated-{need}"),
            _ => f.write_str(self.as_str()),
        }
    }
}

/// Something that one webhook is told, and how far that has come. There is one of it for each suspension, occasion and
/// webhook, and it is kept as long as the suspension's own row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    /// About which suspension.
    pub suspension: SuspensionId,
    /// What happened to it.
    pub occasion: Occasion,
    /// The name of the webhook.
    pub webhook: String,
    /// When it happened.
    pub at: Timestamp,
    /// Whether it was told.
    pub state: DeliveryState,
    /// How often it was attempted.
    pub attempts: u32,
    /// The last attempt.
    pub last: Option<Attempt>,
}

impl DeliveryRow {
    /// When it is attempted next; `None` once it is over.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        match self.state {
            DeliveryState::Pending { next } => Some(next),
            DeliveryState::Delivered | DeliveryState::Failed => None,
        }
    }

    /// What it is known by, however often it is attempted: a receiver that knows it already has been told already.
    #[must_use]
    pub fn message_id(&self) -> String {
        format!("{}-{}", self.suspension, self.occasion)
    }
}

/// How far a delivery has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is still to be made.
    Pending {
        /// Not before this time.
        next: Timestamp,
    },
    /// The receiver said that it has it.
    Delivered,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it ended.
    pub at: Timestamp,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What went wrong, in a few words of the host.
    pub error: Option<String>,
}

/// Who wants to be told.
pub trait Subscribers: Send + Sync {
    /// The names of the webhooks that want to be told of this, each once.
    fn wanting(&self, occasion: Occasion, row: &SuspensionRow) -> Vec<String>;

    /// Deliveries were committed: whoever makes them looks for them now.
    fn owed(&self);
}

/// Nobody.
impl Subscribers for () {
    fn wanting(&self, _: Occasion, _: &SuspensionRow) -> Vec<String> {
        Vec::new()
    }

    fn owed(&self) {}
}
