//! Values and rules: what a call is, what may happen to it, and what is owed to the world.
//!
//! Everything here is pure. Time, identifiers and the results of schema checks come in as arguments; nothing reads a
//! clock, a file or a socket, and nothing is async. A turn is the unit of decision:
//!
//! ```text
//! Turn::decide(input, context) -> events       may refuse, changes nothing
//! Turn::apply(event)                           may not refuse, changes only the value
//! Turn::due(owner) -> effects                  what is owed in this state; also what a restart resumes from
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
mod call;
mod digest;
mod effect;
mod event;
pub mod gate;
mod ids;
mod limits;
mod link;
mod outcome;
mod payload;
mod principal;
mod receipt;
mod standing;
mod suspension;
mod time;
mod tool;
mod turn;

pub use self::time::{Span, Timestamp, rfc3339};
pub use approvers::{Delegation, Escalate, Need, Risk, Vote, Who};
pub use call::{Call, CallState, Pinned, Plan, Running, Wait};
pub use digest::{Digest, ParseDigestError};
pub use effect::{Due, Effect};
pub use event::{CallEvent, Event, HostStarted, PluginChange, PluginEvent, TurnEnd};
pub use gate::{Rule, Verdict};
pub use ids::{
    CallId, CallIndex, ConversationId, Group, InvalidId, LinkId, OwnerId, PluginName, StandingId, SuspensionId, TurnId,
};
pub use limits::Limits;
pub use link::{Link, MOST_LINKS, SentLink};
pub use outcome::{Failure, FailureCode, Outcome, Status};
pub use payload::Json;
pub use principal::{Named, Principal, PrincipalId, Role, Roles};
pub use receipt::Receipt;
pub use standing::{
    Pin, Standing, StandingActive, StandingBounds, StandingRevoked, StandingRow, StandingState, StandingTerms,
    StandingUse,
};
pub use suspension::{Asked, Closed, ClosedAs, Decision, Kind, PromptBy, Resolution, Suspension};
pub use tool::{
    Approval, Editable, Executor, Hints, OnExpiry, Recovery, Retention, Tool, ToolName, ToolOptions, Violation,
};
pub use turn::{Checked, Context, Input, Refusal, Rejection, Requested, Resolve, Rules, Submission, Turn, TurnState};
