//! The audit: who decided what, in order.

use dispatch::ports::{self, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Verbatim, rfc3339};

/// A page of the audit.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries, oldest first.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins: pass it as `after`. `null` where there was nothing more.
    pub next: Option<u64>,
}

/// One decision, and who made it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Where it stands. Positions rise, with gaps.
    pub position: u64,
    /// When.
    pub at: String,
    /// Who; `system` for an expiry.
    pub by: String,
    /// What: a decision, `expired`, `cancel`, `plugin.loaded`, …
    pub action: String,
    /// In which turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// About which call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Of which tool or plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// By which suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension: Option<String>,
    /// Bound to what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The arguments that took the place of the submitted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Verbatim>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

impl From<&(Position, ports::AuditEntry)> for AuditEntry {
    fn from((position, entry): &(Position, ports::AuditEntry)) -> Self {
        Self {
            position: position.0,
            at: rfc3339(entry.at),
            by: entry.by.to_string(),
            action: entry.action.clone(),
            turn: entry.turn.map(|turn| turn.to_string()),
            call: entry.call.as_ref().map(ToString::to_string),
            subject: entry.subject.clone(),
            suspension: entry.suspension.map(|suspension| suspension.to_string()),
            digest: entry.digest.map(|digest| digest.to_string()),
            edited: entry.edited.as_ref().map(Verbatim::from),
            comment: entry.comment.clone(),
        }
    }
}
