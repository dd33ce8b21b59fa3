//! Lists, counts and events of suspensions, and several answers in one request.

use std::fmt;

use dispatch::ports::SuspensionRow;
use domain::{PrincipalId, Timestamp, principal::Channel};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Problem, ResolveOne, Resolved, Suspension, SuspensionState, Via, rfc3339};

/// A page of suspensions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingPage {
    /// The suspensions, oldest first.
    pub suspensions: Vec<Suspension>,
    /// Where the next page begins: pass it as `after`. `null` on the last page. A page may be empty and have a next
    /// one.
    pub next: Option<String>,
    /// Suspensions that are missing here because a stored record is damaged. Nobody can answer them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableSuspension>,
}

/// A suspension that cannot be shown, because a stored record is damaged.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct UnreadableSuspension {
    /// Its id.
    pub suspension: String,
    /// Its turn, if that is known.
    pub turn: Option<String>,
}

/// The number of open suspensions.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingCounts {
    /// All of them.
    pub open: usize,
    /// The numbers by kind.
    pub by_kind: KindCounts,
    /// Whether all were counted. A count reads a limited number of groups with the same approvers; if this
    /// is false, there are more.
    pub complete: bool,
}

/// The number of open suspensions by kind.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KindCounts {
    /// They wait for a yes or no.
    pub approval: usize,
    /// They wait for a person's answer.
    pub elicitation: usize,
    /// They wait for a client's result.
    pub client_exec: usize,
}

/// A suspension was closed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PendingClosed {
    /// The id of the closed suspension.
    pub suspension: String,
    /// The conversation of its turn.
    pub conversation: String,
    /// The decision, `expired` or `withdrawn`.
    #[schema(value_type = String)]
    pub state: SuspensionState,
    /// The principal that closed it. `system` is the host itself.
    pub by: String,
    /// The principals whose approvals count, in their order; the last one closed it. Present if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// The channel through which the answer came. Absent if nobody answered, or if an older host recorded it.
    pub via: Option<Via>,
    /// When it was closed.
    pub at: String,
    /// Whether an approver edited the arguments. Then `closed.arguments` of the suspension has the approved ones.
    pub edited: bool,
}

impl PendingClosed {
    /// How a suspension ended. `by` and the channel are who answered and how; `edited` tells whether an approver changed the arguments.
    pub fn new(row: &SuspensionRow, (by, via): (&PrincipalId, Option<Channel>), at: Timestamp, edited: bool) -> Self {
        Self {
            suspension: row.id.to_string(),
            conversation: row.conversation.to_string(),
            state: SuspensionState(row.state.clone()),
            by: by.to_string(),
            approvers: Vec::new(),
            via: via.map(Via),
            at: rfc3339(at),
            edited,
        }
    }
}

/// The name of an event of the stream of pending suspensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum PendingEventName {
    /// The stream is open. Suspensions that are opened or closed from now on are reported.
    #[serde(rename = "pending.ready")]
    Ready,
    /// A suspension was opened.
    #[serde(rename = "pending.opened")]
    Opened,
    /// A vote, a delegation or an escalation changed a suspension.
    #[serde(rename = "pending.changed")]
    Changed,
    /// A suspension was closed.
    #[serde(rename = "pending.closed")]
    Closed,
    /// The reader missed events. It has to list the suspensions again.
    #[serde(rename = "pending.reset")]
    Reset,
}

/// The word in JSON.
impl fmt::Display for PendingEventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// An event without content.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Nothing {}

/// Answers to several suspensions. Each is accepted or refused independently.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveSeveral {
    /// 1 to 100 answers. The host processes them in this order.
    pub answers: Vec<ResolveOne>,
}

/// The results of several answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResolvedSeveral {
    /// The results, in the order of the answers.
    pub answers: Vec<ResolvedOne>,
}

/// The result of one of several answers.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ResolvedOne {
    /// The id of the answered suspension. Of a text that is no id, only the beginning.
    pub suspension: String,
    /// The HTTP status that the answer would have in a request of its own. 200 if it was accepted.
    pub status: u16,
    /// The result, if the answer was accepted.
    pub ok: Option<Resolved>,
    /// Why the answer was refused. `errors` is empty, and `detail` is cut after about 200 bytes.
    pub problem: Option<Problem>,
}
