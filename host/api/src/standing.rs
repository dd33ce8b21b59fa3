//! Standing approvals: approvals of later similar calls.

use domain::{
    Span, Timestamp,
    standing::{Pin, StandingRow},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::{StandingState, Verbatim, rfc3339};

/// The limits of a standing approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StandingBounds {
    /// The maximum time, in milliseconds.
    pub max_ttl_ms: u64,
    /// The maximum number of uses.
    pub max_uses: u32,
}

impl From<&domain::standing::StandingBounds> for StandingBounds {
    fn from(bounds: &domain::standing::StandingBounds) -> Self {
        Self { max_ttl_ms: bounds.time.millis(), max_uses: bounds.uses }
    }
}

/// The terms of a standing approval. It covers later calls of the same caller, tool and component whose pinned
/// arguments are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingTerms {
    /// How long it is valid from now, in milliseconds.
    pub ttl_ms: u64,
    /// The number of uses, at least 1.
    pub uses: u32,
    /// The arguments that must equal the approved ones.
    pub pin: PinnedArguments,
}

/// `"all"`, or JSON Pointers into the arguments. The other arguments may have any value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum PinnedArguments {
    /// All of them.
    Word(AllArguments),
    /// 1 to 64 JSON Pointers.
    Fields(Vec<String>),
}

/// The word for all arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllArguments {
    /// All of them.
    All,
}

impl StandingTerms {
    pub(super) fn terms(self) -> Result<domain::standing::StandingTerms> {
        let pin = match self.pin {
            PinnedArguments::Word(AllArguments::All) => Pin::All,
            PinnedArguments::Fields(pointers) => {
                if let Some(n) = pointers.iter().position(|pointer| !pointer.starts_with('/')) {
                    let wrong = "a JSON Pointer begins with `/`".to_owned();
                    return Err(Error::invalid_at(format!("/standing/pin/{n}"), wrong));
                }
                Pin::Fields(pointers.into())
            }
        };
        Ok(domain::standing::StandingTerms { time: Span::from_millis(self.ttl_ms), uses: self.uses, pin })
    }
}

/// A standing approval.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StandingApproval {
    /// The id of the standing approval.
    pub id: String,
    /// Whether it can still be used.
    pub state: StandingState,
    /// The caller whose calls it covers.
    pub caller: String,
    /// The tool whose calls it covers.
    pub tool: String,
    /// The plugin that offers the tool.
    pub plugin: String,
    /// The digest of the component. The approval does not cover a later version of the plugin.
    pub component: String,
    /// The arguments that were approved.
    pub arguments: Verbatim,
    /// The arguments that a later call must repeat.
    pub pin: PinnedArguments,
    /// The principal who gave it.
    pub by: String,
    /// The suspension whose answer gave it.
    pub suspension: String,
    /// The conversation of that suspension. The approval is valid in all conversations of the caller.
    pub conversation: String,
    /// When it was given.
    pub created_at: String,
    /// When it expires.
    pub expires_at: String,
    /// The number of uses that it allows.
    pub uses: u32,
    /// The number of uses so far.
    pub used: u32,
    /// The principal who revoked it.
    pub revoked_by: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<String>,
}

impl StandingApproval {
    /// The standing approval in its state at this time.
    #[must_use]
    pub fn new(row: &StandingRow, now: Timestamp) -> Self {
        Self {
            id: row.standing.id.to_string(),
            state: (&row.state(now)).into(),
            caller: row.caller.to_string(),
            tool: row.tool.to_string(),
            plugin: row.plugin.to_string(),
            component: row.component.to_string(),
            arguments: (&row.arguments).into(),
            pin: match &row.standing.pin {
                Pin::All => PinnedArguments::Word(AllArguments::All),
                Pin::Fields(pointers) => PinnedArguments::Fields(pointers.to_vec()),
            },
            by: row.by.to_string(),
            suspension: row.suspension.to_string(),
            conversation: row.conversation.to_string(),
            created_at: rfc3339(row.created_at),
            expires_at: rfc3339(row.standing.expires_at),
            uses: row.standing.uses,
            used: row.used,
            revoked_by: row.revoked.as_ref().map(|(by, _)| by.to_string()),
            revoked_at: row.revoked.as_ref().map(|(_, at)| rfc3339(*at)),
        }
    }
}

/// A page of standing approvals.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StandingApprovals {
    /// The standing approvals that this principal may see, oldest first.
    pub standing_approvals: Vec<StandingApproval>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next
    /// one.
    pub next: Option<String>,
}
