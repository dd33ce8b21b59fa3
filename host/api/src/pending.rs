//! What waits: in numbers, live, and answered several at a time.

use dispatch::ports::SuspensionRow;
use domain::{LinkId, PrincipalId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Problem, Resolve, Resolved, StandingTerms, Verbatim, present, rfc3339};

/// How many suspensions wait.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingCounts {
    /// All of them.
    pub open: usize,
    /// By what is waited for.
    pub by_kind: KindCounts,
    /// Whether all were counted. A count looks at a bounded number, and there are more than it says if this is false.
    pub complete: bool,
}

/// How many suspensions wait for what.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KindCounts {
    /// For a yes or no.
    pub approval: usize,
    /// For a person's answer.
    pub elicitation: usize,
    /// For a client's result.
    pub client_exec: usize,
}

/// That a suspension waits no more.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingClosed {
    /// Which.
    pub suspension: String,
    /// Its conversation.
    pub conversation: String,
    /// The decision, `expired` or `withdrawn`.
    pub state: String,
    /// By whom; `system` for what the host does by itself.
    pub by: String,
    /// `link`, where whoever answered came by a link.
    pub via: Option<String>,
    /// When.
    pub at: String,
    /// Whether an approver edited the arguments: `closed.arguments` of the suspension has the approved ones.
    pub edited: bool,
}

impl PendingClosed {
    pub fn new(row: &SuspensionRow, (by, link): (&PrincipalId, Option<LinkId>), at: Timestamp, edited: bool) -> Self {
        Self {
            suspension: row.id.to_string(),
            conversation: row.conversation.to_string(),
            state: row.state.clone(),
            by: by.to_string(),
            via: super::via(link),
            at: rfc3339(at),
            edited,
        }
    }
}

/// An event that says no more than its name.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Nothing {}

/// Answers to several suspensions. Each stands or falls for itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveSeveral {
    /// The answers, 1 to 100. They are given in this order.
    pub answers: Vec<ResolveOne>,
}

/// An answer to one of several.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveOne {
    /// To which suspension.
    pub suspension: String,
    /// One of the allowed decisions.
    pub decision: String,
    /// What comes with it.
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Verbatim>,
    /// Arguments to take the place of the submitted ones.
    pub arguments: Option<Verbatim>,
    /// Why.
    pub comment: Option<String>,
    /// The digest of what was shown. With it, an answer to anything else is refused.
    pub expect_digest: Option<String>,
    /// With an approval: what it shall allow beforehand.
    pub standing: Option<StandingTerms>,
}

impl ResolveOne {
    /// To which suspension, and the answer.
    pub fn split(self) -> (String, Resolve) {
        let Self { suspension, decision, data, arguments, comment, expect_digest, standing } = self;
        (suspension, Resolve { decision, data, arguments, comment, expect_digest, standing })
    }
}

/// What became of several answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResolvedSeveral {
    /// In the order of the answers.
    pub answers: Vec<ResolvedOne>,
}

/// What became of one of several answers.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResolvedOne {
    /// To which suspension.
    pub suspension: String,
    /// The status that it would have had by itself: 200 where it stands.
    pub status: u16,
    /// What it was answered with, where it stands.
    pub ok: Option<Resolved>,
    /// Why it does not stand.
    pub problem: Option<Problem>,
}
