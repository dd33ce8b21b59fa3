//! The outbox: deliveries to webhooks. A delivery is committed together with the events that cause it, so a kill loses
//! none, and it is made at least once.

use std::fmt;

use async_trait::async_trait;
use domain::{SuspensionId, Timestamp, Turn, TurnId};

use super::fault::StoreFault;
use super::indexes::SuspensionRow;

/// Reads deliveries. They are written with `RowChange::Delivery`.
///
/// Law: the progress of a delivery is in no log and not in the audit.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Every delivery about a suspension or a turn, in the order of its events.
    async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault>;

    /// Deliveries to a webhook whose next attempt is at or before a time, soonest first, at most `limit`.
    async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault>;

    /// The names of the webhooks that have pending deliveries, each once.
    async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault>;
}

/// The subject of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Suspension(SuspensionId),
    Turn(TurnId),
}

impl From<SuspensionId> for Subject {
    fn from(id: SuspensionId) -> Self {
        Self::Suspension(id)
    }
}

impl From<TurnId> for Subject {
    fn from(id: TurnId) -> Self {
        Self::Turn(id)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspension(id) => id.fmt(f),
            Self::Turn(id) => id.fmt(f),
        }
    }
}

/// An event that a webhook message reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Report {
    /// An event of a suspension's life.
    Suspension(SuspensionId, Occasion),
    /// Every call of a turn has its outcome. This happens once.
    TurnSettled(TurnId),
}

impl Report {
    #[must_use]
    pub const fn subject(self) -> Subject {
        match self {
            Self::Suspension(id, _) => Subject::Suspension(id),
            Self::TurnSettled(turn) => Subject::Turn(turn),
        }
    }

    /// The number of the event. Numbers sort the reports of one subject in the order in which they happen. No suspension
    /// has the number of a turn, so the number also tells the two apart.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Suspension(_, occasion) => occasion.number(),
            Self::TurnSettled(_) => TURN_SETTLED,
        }
    }
}

/// Above every need, and below `closed`.
pub const TURN_SETTLED: u32 = u32::MAX - 1;

/// Its id, such as `susp_…-opened`, `susp_…-escalated-0` or `turn_…-settled`.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suspension(id, occasion) => write!(f, "{id}-{occasion}"),
            Self::TurnSettled(turn) => write!(f, "{turn}-settled"),
        }
    }
}

/// An event of a suspension's life that webhooks report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occasion {
    Opened,
    /// A need of it was not met in time, and others may answer as well.
    Escalated {
        /// The position of the need, from 0.
        need: u16,
    },
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

    /// Numbers that sort occasions in the order in which they happen.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Opened => 0,
            Self::Escalated { need } => 1 + need as u32,
            Self::Closed => u32::MAX,
        }
    }
}

/// One per suspension: `opened`, `escalated-0`, `closed`.
impl fmt::Display for Occasion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Escalated { need } => write!(f, "escalated-{need}"),
            Self::Opened | Self::Closed => f.write_str(self.as_str()),
        }
    }
}

/// One delivery to one webhook. There is one for each report and webhook. It is kept as long as its suspension or turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRow {
    pub report: Report,
    pub webhook: String,
    pub at: Timestamp,
    pub state: DeliveryState,
    pub attempts: u32,
    pub last: Option<Attempt>,
}

impl DeliveryRow {
    /// The next attempt; `None`: it was delivered, or it failed.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        match self.state {
            DeliveryState::Pending { next } => Some(next),
            DeliveryState::Delivered | DeliveryState::Failed => None,
        }
    }

    /// Its id, the same at every attempt, by which a receiver recognises a repetition.
    #[must_use]
    pub fn message_id(&self) -> String {
        self.report.to_string()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// The host will try again.
    Pending {
        /// The earliest time of the next attempt.
        next: Timestamp,
    },
    /// The receiver accepted it.
    Delivered,
    /// There are no more attempts.
    Failed,
}

impl DeliveryState {
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
    pub at: Timestamp,
    /// The HTTP status of the response, if there was one.
    pub status: Option<u16>,
    /// Why it failed, in the host's words.
    pub error: Option<String>,
}

/// The webhooks that receive deliveries.
pub trait Subscribers: Send + Sync {
    /// The names of the webhooks that subscribe to this event of a suspension, each once.
    fn subscribed_to(&self, occasion: Occasion, row: &SuspensionRow) -> Vec<String>;

    /// The names of the webhooks that subscribe to the end of this turn, each once.
    fn subscribed_to_turn(&self, turn: &Turn) -> Vec<String>;

    /// Deliveries were committed: the delivery workers look for them now.
    fn deliveries_committed(&self);
}

/// A host without webhooks.
impl Subscribers for () {
    fn subscribed_to(&self, _: Occasion, _: &SuspensionRow) -> Vec<String> {
        Vec::new()
    }

    fn subscribed_to_turn(&self, _: &Turn) -> Vec<String> {
        Vec::new()
    }

    fn deliveries_committed(&self) {}
}
