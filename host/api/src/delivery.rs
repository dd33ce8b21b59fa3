//! What webhooks were told of a suspension.

use dispatch::ports::DeliveryRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::rfc3339;

/// Something that one webhook is told of a suspension, and how far that has come.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// The name of the webhook.
    pub webhook: String,
    /// What it is told: `opened`, `escalated` or `closed`.
    pub event: String,
    /// `pending`, `delivered`; or `failed`, when it was given up.
    pub state: String,
    /// How often it was attempted.
    pub attempts: u32,
    /// The status of the last answer, if there was one.
    pub last_status: Option<u16>,
    /// What went wrong at the last attempt, escaped.
    pub last_error: Option<String>,
    /// When it was attempted last; before the first attempt, when it happened.
    pub at: String,
    /// When it is attempted next, while it is pending.
    pub next_at: Option<String>,
}

impl From<&DeliveryRow> for Delivery {
    fn from(row: &DeliveryRow) -> Self {
        let last = row.last.as_ref();
        Self {
            webhook: row.webhook.clone(),
            event: row.occasion.as_str().to_owned(),
            state: row.state.as_str().to_owned(),
            attempts: row.attempts,
            last_status: last.and_then(|last| last.status),
            last_error: last.and_then(|last| last.error.clone()),
            at: rfc3339(last.map_or(row.at, |last| last.at)),
            next_at: row.next().map(rfc3339),
        }
    }
}
