//! Values and rules: what a call is, what may happen to it, and which effects are due.
//!
//! Everything here is pure. Time, ids and the results of schema checks are arguments. Nothing reads a clock, a file or
//! a socket, and nothing is async. A turn is the unit of decision:
//!
//! ```text
//! Turn::decide(input, context) -> events       may refuse, changes nothing
//! Turn::apply(event)                           cannot refuse, changes only the value
//! Turn::due(owner) -> effects                  what this state requires; a restart resumes from it
//! ```
//!
//! ```text
//!  requested ─► gated? ─► awaiting approval ─► denied / expired ─► settled
//!      │                        │ approved
//!      └───────────┬────────────┘
//!    server ─► running ─────────► settled      human ─► awaiting answer ─► settled
//!    client ─► awaiting client ─► settled      provider ─► recorded, settled
//! ```

mod approvers;
mod authority;
mod call;
mod digest;
mod effect;
mod event;
pub mod gate;
mod ids;
pub mod json;
mod limits;
mod link;
mod outcome;
mod principal;
mod receipt;
mod refusal;
mod standing;
mod suspension;
mod time;
mod tool;
mod turn;
mod violation;

pub use self::time::{Span, Timestamp, rfc3339};
pub use approvers::{Delegation, Escalate, Need, Vote, Who};
pub use call::{Call, CallState, Pinned, Plan, Running, Wait};
pub use digest::{Digest, ParseDigestError};
pub use effect::{Due, Effect};
pub use event::{CallEvent, Event, HostStarted, PluginChange, PluginEvent, Rejection, TurnEnd};
pub use gate::{Rule, Verdict};
pub use ids::{
    CallId, CallIndex, ConversationId, Group, InvalidId, LinkId, OwnerId, PluginName, StandingId, SuspensionId, TurnId,
};
pub use json::Json;
pub use limits::Limits;
pub use link::{Link, MAX_LINKS, SentLink};
pub use outcome::{Failure, FailureCode, Outcome, Status};
pub use principal::{Named, Principal, PrincipalId, Role, Roles};
pub use receipt::Receipt;
pub use refusal::{NoDelegation, NoStanding, NotAllowed, Refusal};
pub use standing::{
    Pin, Standing, StandingActive, StandingBounds, StandingRevoked, StandingRow, StandingState, StandingTerms,
    StandingUse,
};
pub use suspension::{
    ApprovalRequest, ApprovalTimeout, Ask, Asked, ClientExec, Closed, ClosedAs, Decision, Elicitation, Ended, Kind,
    PromptBy, Resolution, Suspension, SuspensionState,
};
pub use tool::{Approval, Editable, Executor, Hints, OnExpiry, Recovery, Retention, Risk, Tool, ToolName, ToolOptions};
pub use turn::{Checked, Context, Input, Requested, Resolve, Rules, Submission, Turn, TurnState};
pub use violation::Violation;
