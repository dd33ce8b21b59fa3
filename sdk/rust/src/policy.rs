//! Policies in Rust: a function that decides about calls. The host asks the component before it continues a call.
//!
//! ```
//! use toolgate_sdk::policy::{Answer, Question, Risk};
//!
//! fn judge(question: &Question) -> Answer {
//!     if question.tool.contains("delete") && question.context["environment"] == "production" {
//!         return Answer::require_approval("it deletes something in production").risk(Risk::High);
//!     }
//!     Answer::Proceed
//! }
//!
//! toolgate_sdk::policy!(judge);
//!
//! assert_eq!(judge(&Question::new("note_delete", serde_json::json!({}))), Answer::Proceed);
//! ```
//!
//! A policy only tightens: with `Proceed`, the tool's declaration and all other rules still apply. If a policy panics
//! or exceeds its limits, a person is asked. So when in doubt, panic.
//!
//! Arguments come from a model and the context from the caller. Trust neither. If one has an unexpected form, require
//! an approval.

use serde_json::{Map, Value};

use crate::Level;

/// A call to decide about.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The name of the tool.
    pub tool: String,
    /// The plugin that it belongs to.
    pub plugin: String,
    /// The principal that submitted the call, as the host authenticated it.
    pub caller: String,
    /// The conversation that it belongs to. The caller chooses its name.
    pub conversation: String,
    /// Its arguments: an object that fits the tool's schema. Numbers outside of `f64`, `i64` and `u64` are rounded.
    pub arguments: Value,
    /// The value that the caller passed with the turn, or `null`.
    pub context: Value,
    /// The kind of executor.
    pub executor: Executor,
    /// Whether the tool itself declares that a person must approve.
    pub requires_approval: bool,
    /// The settings that the operator configured for this policy: an object.
    pub settings: Value,
    /// All other facts that the host provides: an object. Later versions may add members.
    pub facts: Map<String, Value>,
}

impl Question {
    /// A call of a server tool with these arguments, for tests. Set other fields afterwards.
    pub fn new(tool: &str, arguments: Value) -> Self {
        Self {
            tool: tool.to_owned(),
            plugin: "plugin".to_owned(),
            caller: "caller".to_owned(),
            conversation: "conversation".to_owned(),
            arguments,
            context: Value::Null,
            executor: Executor::Server,
            requires_approval: false,
            settings: Value::Object(Map::new()),
            facts: Map::new(),
        }
    }
}

/// The kind of executor of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// The plugin.
    Server,
    /// A person. Only [`Answer::Deny`] has an effect, because a person is asked anyway.
    Human,
    /// The program at the user's end.
    Client,
}

/// The possible harm of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Easy to undo.
    Low,
    /// Can be undone with some effort.
    Medium,
    /// Hard to undo.
    High,
    /// Impossible to undo, or with wide effects.
    Critical,
}

impl Risk {
    /// Its word in the declaration of a tool.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// The decision of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// The policy does not object.
    Proceed,
    /// A person must approve the call first.
    RequireApproval {
        /// The reason for that person, cut at 4096 bytes.
        reason: String,
        /// The possible harm.
        risk: Option<Risk>,
    },
    /// The call is denied. The text is the reason for the model and the audit, cut at 4096 bytes.
    Deny(String),
}

impl Answer {
    /// Requires that a person approves the call, for this reason.
    pub fn require_approval(reason: impl Into<String>) -> Self {
        Self::RequireApproval { reason: reason.into(), risk: None }
    }

    /// Denies the call, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }

    /// Sets the risk. It has no effect on an answer that asks nobody.
    pub fn risk(self, risk: Risk) -> Self {
        match self {
            Self::RequireApproval { reason, .. } => Self::RequireApproval { reason, risk: Some(risk) },
            other => other,
        }
    }
}

/// Writes a line to the host's log, under the policy's name. Does nothing in a native test.
pub fn log(level: Level, message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::policy::toolgate::policy::host::log(level.into(), message);
    #[cfg(not(target_family = "wasm"))]
    let _ = (level, message);
}

/// The longest reason that a host accepts, in bytes.
#[cfg(any(target_family = "wasm", test))]
const MAX_REASON: usize = 4096;

/// Shortens a reason to the length that a host accepts.
#[cfg(any(target_family = "wasm", test))]
pub(crate) fn cut(mut reason: String) -> String {
    if reason.len() > MAX_REASON {
        let marked = MAX_REASON - "…".len();
        reason.truncate(reason.floor_char_boundary(marked));
        reason.push('…');
    }
    reason
}

/// The function of a component. `policy!` implements it.
#[doc(hidden)]
pub trait Policy {
    fn judge(question: &Question) -> Answer;
}

/// Exports a function `fn(&Question) -> Answer` as a policy. Use it once per crate, at its root.
#[macro_export]
macro_rules! policy {
    ($judge:expr $(,)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exports;
            impl $crate::policy::Policy for Exports {
                fn judge(question: &$crate::policy::Question) -> $crate::policy::Answer {
                    $judge(question)
                }
            }
    $crate::bindings::policy::export_policy!(Exports with_types_in $crate::bindings::policy);
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_risk_belongs_to_an_answer_that_asks() {
        let asks = Answer::require_approval("why").risk(Risk::High);
        assert_eq!(asks, Answer::RequireApproval { reason: "why".into(), risk: Some(Risk::High) });
        assert_eq!(Answer::Proceed.risk(Risk::High), Answer::Proceed);
        assert_eq!(Answer::deny("no").risk(Risk::Low), Answer::Deny("no".into()));
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(cut("x".repeat(4096)).len(), 4096);
        let long = cut("ü".repeat(4096));
        assert!(long.len() <= 4096 && long.ends_with("ü…"), "{} bytes", long.len());
    }
}
