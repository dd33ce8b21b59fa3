//! The public JSON: one type for each shape that enters or leaves, and nothing that decides.
//!
//! Times are RFC 3339 texts in UTC with milliseconds. Requests refuse unknown members; answers may grow, so whoever reads
//! them ignores what it does not know. Arguments, results and schemas are embedded verbatim and never re-encoded.

mod audit;
mod event;
mod forms;
mod plugin;
mod problem;
mod receipt;
mod suspension;
mod time;
mod tool;
mod turn;
mod verbatim;
mod words;

pub use self::time::rfc3339;
pub use audit::{AuditChain, AuditEntry, AuditHead, AuditLink, AuditPage};
pub use event::{Detail, Event};
pub use forms::{ToolsInForm, TurnInForm};
pub use plugin::{AccessView, FindingView, PluginList, PluginState, PluginView, Removed, WantedView};
pub use problem::{Pointed, Problem};
pub use receipt::Receipt;
pub use suspension::{Closed, Display, Editable, EditableWord, OnExpiry, PendingPage, Resolve, Resolved, Suspension};
pub use tool::{Hints, Retention, Tool, ToolList};
pub use turn::{Call, CallResult, Content, ErrorContent, Submit, SubmitCall, Turn};
pub use verbatim::Verbatim;
pub(crate) use verbatim::present;
pub use words::{Approval, Executor, Kind, Outcome, Rejection, Rule, Status, TurnState};
