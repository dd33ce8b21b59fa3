//! The public JSON API: one type for each request and response, the formats of models' providers ([`formats`]), and the
//! parser of bodies ([`json`]). The server writes these types and the commands read them. This crate makes no decisions
//! and knows no HTTP. A type has the name of the core's type whose JSON form it is: [`Turn`] is the form of
//! [`domain::Turn`], and [`AuditEntry`] the form of [`dispatch::AuditEntry`].
//!
//! Times are RFC 3339 texts in UTC with milliseconds. A request with an unknown member is refused. A response may get
//! new members, so readers ignore unknown ones. Arguments, results and schemas are embedded verbatim and never
//! re-encoded.

#![warn(missing_docs)]

mod answer;
mod approval;
mod audit;
mod conversation;
mod delivery;
mod doubt;
mod edit;
mod error;
mod event;
pub mod formats;
mod hosts;
mod journal;
pub mod json;
mod log;
mod nested;
mod pending;
mod plugin;
mod policy;
mod problem;
mod progress;
mod receipt;
mod session;
mod standing;
mod status;
mod step;
mod suspension;
mod tool;
mod turn;
mod verbatim;
mod words;

pub use answer::{Resolve, ResolveCall, ResolveOne};
pub use approval::{Delegate, Delegated, Delegation, Need, Vote, You, several};
pub use audit::{AuditChain, AuditEntry, AuditHead, AuditLink, AuditPage, SignedCheckpoint};
pub use conversation::{Conversation, ConversationPage};
pub use delivery::Delivery;
pub use domain::rfc3339;
pub use doubt::RequestInDoubt;
pub use edit::{Edit, EditDefaults};
pub use error::{Error, Result};
pub use event::{Detail, Event, EventName};
pub use formats::{ToolsInFormat, TurnInFormat};
pub use hosts::{Drained, HostCall, HostList, HostView};
pub use journal::{CallJournal, EntryState, JournalEntry};
pub use log::{CallLog, LogLine, RunLog};
pub use nested::{Nested, Parent};
pub use pending::{
    KindCounts, Nothing, PendingClosed, PendingCounts, PendingEventName, PendingPage, ResolveSeveral, ResolvedOne,
    ResolvedSeveral, UnreadableSuspension,
};
pub use plugin::{
    AccessView, FindingView, NoteView, PluginList, PluginState, PluginView, Removed, RequestState, RequestedView,
};
pub use policy::{Effect, Escalation, Explain, ExplainedStep, Explanation, RequiredApproval};
pub use problem::{Pointed, Problem, ProblemCode};
pub use progress::{ProgressReported, ReportProgress};
pub use receipt::{JournalSummary, Receipt};
pub use session::{Link, LinkSession, LogIn, LoggedOut, MakeLink, Session, UseLink};
pub use standing::{AllArguments, PinnedArguments, StandingApproval, StandingApprovals, StandingBounds, StandingTerms};
pub use status::{CompilerStatus, HealthStatus, HostStatus, LandlockState, PluginCounts, PluginNames, StoreState};
pub use step::StepSummary;
pub use suspension::{Closed, Display, Editable, EditableWord, OnExpiry, Resolved, Suspension};
pub use tool::{Hints, Retention, Tool, ToolList};
pub use turn::{Call, CallSummary, Content, ErrorCode, ErrorContent, Submit, SubmitCall, Turn, TurnPage, TurnSummary};
pub use verbatim::Verbatim;
use verbatim::present;
pub use words::{
    Action, Approval, Decision, DeliveryEvent, DeliveryState, Ended, Executor, FailureCode, Kind, Level, LoadRule,
    NotOpen, Outcome, PromptBy, Rejection, Resource, Risk, Role, Rule, StaleState, StandingState, Status, StepKind,
    SuspensionEnd, SuspensionState, TurnState, Via,
};
