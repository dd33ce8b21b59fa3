//! Values and rules: what a call is, what may happen to it, and which effects are due.
//!
//! Everything here is pure. Time, ids and the results of schema checks are arguments. Nothing reads a clock, a file or
//! a socket, and nothing is async. A turn is the unit of decision:
//!
//! ```text
//! Turn::decide(input, context) -> events       may refuse, changes nothing
//! Turn::apply(event)                           cannot refuse, changes only the value
//! Turn::effects(owner) -> effects              what this state requires; a restart resumes from it
//! ```
//!
//! ```text
//!  requested ─► gated? ─► awaiting approval ─► denied / expired ─► settled
//!      │                        │ approved
//!      └───────────┬────────────┘
//!    server ─► running ─────────► settled      human ─► awaiting answer ─► settled
//!    client ─► awaiting client ─► settled      provider ─► recorded, settled
//! ```

mod names;

pub mod approvers;
mod authority;
pub mod call;
pub mod digest;
pub mod doubt;
pub mod effect;
pub mod event;
pub mod gate;
pub mod ids;
pub mod journal;
pub mod json;
mod limits;
pub mod link;
mod load_rule;
pub mod nested;
pub mod outcome;
pub mod principal;
pub mod rate;
mod receipt;
pub mod refusal;
pub mod retention;
pub mod standing;
pub mod step;
pub mod suspension;
mod time;
pub mod tool;
pub mod turn;
mod violation;

pub use self::time::{Span, Timestamp, rfc3339};
pub use call::Call;
pub use digest::Digest;
pub use event::Event;
pub use ids::{
    CallId, CallIndex, ConversationId, LinkId, OwnerId, PluginName, SignalName, StandingId, SuspensionId, TurnId,
};
pub use json::Json;
pub use limits::{CatalogLimits, Limits, ObservableLimits};
pub use load_rule::LoadRule;
pub use outcome::Outcome;
pub use principal::{Principal, PrincipalId};
pub use receipt::Receipt;
pub use refusal::Refusal;
pub use standing::Standing;
pub use suspension::Suspension;
pub use tool::{Tool, ToolName};
pub use turn::Turn;
pub use violation::Violation;
