//! Standing approvals: what an approver allows beforehand for later calls.

use domain::{Pin, Span, StandingRow, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::{Verbatim, rfc3339};

/// The most that may be allowed beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StandingBounds {
    /// For how long, in milliseconds.
    pub max_ttl_ms: u64,
    /// How often.
    pub max_uses: u32,
}

impl From<&domain::StandingBounds> for StandingBounds {
    fn from(bounds: &domain::StandingBounds) -> Self {
        Self { max_ttl_ms: bounds.time.millis(), max_uses: bounds.uses }
    }
}

/// What an approval shall allow beforehand: later calls of the same caller, tool and component, with these arguments pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StandingTerms {
    /// For how long from now on, in milliseconds.
    pub ttl_ms: u64,
    /// How often, from 1.
    pub uses: u32,
    /// Which arguments must be those that are approved now.
    pub pin: Pinned,
}

/// `"all"`, or JSON Pointers into the arguments; those that are not named are free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Pinned {
    /// All of them.
    Word(PinnedWord),
    /// These: 1 to 64.
    Fields(Vec<String>),
}

/// All arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinnedWord {
    /// All of them.
    All,
}

impl StandingTerms {
    pub(super) fn terms(self) -> Result<domain::StandingTerms> {
        let pin = match self.pin {
            Pinned::Word(PinnedWord::All) => Pin::All,
            Pinned::Fields(pointers) => {
                if let Some(n) = pointers.iter().position(|pointer| !pointer.starts_with('/')) {
                    let wrong = "a JSON Pointer begins with `/`".to_owned();
                    return Err(Error::invalid_at(format!("/standing/pin/{n}"), wrong));
                }
                Pin::Fields(pointers.into())
            }
        };
        Ok(domain::StandingTerms { time: Span::from_millis(self.ttl_ms), uses: self.uses, pin })
    }
}

/// Whether a standing approval can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StandingState {
    /// It can.
    Active,
    /// It was used as often as it allows.
    UsedUp,
    /// Its time is over.
    Expired,
    /// Somebody took it back.
    Revoked,
}

/// A standing approval.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StandingApproval {
    /// Its id.
    pub id: String,
    /// Whether it can still be used.
    pub state: StandingState,
    /// For whose calls.
    pub caller: String,
    /// Of which tool.
    pub tool: String,
    /// Of which plugin.
    pub plugin: String,
    /// Of which component: not of the next version of the plugin.
    pub component: String,
    /// The arguments that were approved.
    pub arguments: Verbatim,
    /// Which of them a later call must have.
    pub pin: Pinned,
    /// Who gave it.
    pub by: String,
    /// With the answer to which suspension.
    pub suspension: String,
    /// In which conversation that was. It counts in the caller's others as well.
    pub conversation: String,
    /// When it was given.
    pub created_at: String,
    /// Until when it can be used.
    pub expires_at: String,
    /// How often it can be used.
    pub uses: u32,
    /// How often it was.
    pub used: u32,
    /// Who took it back.
    pub revoked_by: Option<String>,
    /// When.
    pub revoked_at: Option<String>,
}

impl StandingApproval {
    /// A standing approval as it is at this time.
    #[must_use]
    pub fn new(row: &StandingRow, now: Timestamp) -> Self {
        Self {
            id: row.standing.id.to_string(),
            state: match row.state(now) {
                domain::StandingState::Active => StandingState::Active,
                domain::StandingState::UsedUp => StandingState::UsedUp,
                domain::StandingState::Expired => StandingState::Expired,
                domain::StandingState::Revoked => StandingState::Revoked,
            },
            caller: row.caller.to_string(),
            tool: row.tool.to_string(),
            plugin: row.plugin.to_string(),
            component: row.component.to_string(),
            arguments: (&row.arguments).into(),
            pin: match &row.standing.pin {
                Pin::All => Pinned::Word(PinnedWord::All),
                Pin::Fields(pointers) => Pinned::Fields(pointers.to_vec()),
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
    /// Those that this principal may see, oldest first.
    pub standing_approvals: Vec<StandingApproval>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next one.
    pub next: Option<String>,
}
