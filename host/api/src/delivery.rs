//! Deliveries of messages to webhooks.

use dispatch::ports::DeliveryRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DeliveryEvent, DeliveryState, rfc3339};

/// One message about a suspension or a turn to one webhook, and its state.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// The name of the webhook.
    pub webhook: String,
    /// The event that the message reports.
    pub event: DeliveryEvent,
    /// Whether the webhook has received it.
    pub state: DeliveryState,
    /// The number of attempts.
    pub attempts: u32,
    /// The HTTP status of the last response. Absent if there was none.
    pub last_status: Option<u16>,
    /// The error of the last attempt, escaped.
    pub last_error: Option<String>,
    /// The time of the last attempt. Before the first attempt, the time of the event.
    pub at: String,
    /// The time of the next attempt, while it is pending.
    pub next_at: Option<String>,
}

impl From<&DeliveryRow> for Delivery {
    fn from(row: &DeliveryRow) -> Self {
        let last = row.last.as_ref();
        Self {
            webhook: row.webhook.clone(),
            event: (&row.report).into(),
            state: (&row.state).into(),
            attempts: row.attempts,
            last_status: last.and_then(|last| last.status),
            last_error: last.and_then(|last| last.error.clone()),
            at: rfc3339(last.map_or(row.at, |last| last.at)),
            next_at: row.next().map(rfc3339),
        }
    }
}
