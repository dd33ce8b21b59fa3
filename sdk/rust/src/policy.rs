//! Policies in Rust: a function that judges calls, as a component that a host asks before they go on.
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
//! A policy only tightens: `Proceed` leaves in place what the tool declares and what every other rule asks for. One that
//! panics, takes too long or needs too much has a person asked, so when in doubt, panic.
//!
//! Arguments come from a model, and the context from the caller: neither is to be trusted, and what has another form than
//! expected is a reason to ask.

use serde_json::{Map, Value};

use crate::Level;

/// A call that is to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The name of the tool.
    pub tool: String,
    /// The plugin that it belongs to.
    pub plugin: String,
    /// Who submitted the call, as the host authenticated it.
    pub caller: String,
    /// The conversation that it belongs to. The caller chooses its name.
    pub conversation: String,
    /// Its arguments, an object that fits the tool's schema. A number that no `f64`, `i64` or `u64` holds is rounded.
    pub arguments: Value,
    /// What the caller passed along with the turn; `null` where it passed nothing.
    pub context: Value,
    /// Who produces the result.
    pub executor: Executor,
    /// Whether the tool itself declares that a person must approve.
    pub requires_approval: bool,
    /// What the operator wrote for this policy in the configuration; an object.
    pub settings: Value,
    /// Everything else that the host says of the call; an object. More may come.
    pub facts: Map<String, Value>,
}

impl Question {
    /// A call of a server tool with these arguments, for tests. Everything else can be set afterwards.
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

/// Who produces the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// The plugin.
    Server,
    /// A person. Only [`Answer::Deny`] counts for such a call, because a person is asked anyway.
    Human,
    /// The program at the user's end.
    Client,
}

/// How much is at stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Easily undone.
    Low,
    /// Undone with some effort.
    Medium,
    /// Hard to undo.
    High,
    /// Cannot be undone, or reaches far.
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

/// What the policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// It has nothing against it.
    Proceed,
    /// A person must approve it first.
    RequireApproval {
        /// Why, for that person. Cut at 4096 bytes.
        reason: String,
        /// How much is at stake.
        risk: Option<Risk>,
    },
    /// It ends denied. The text says why, to the model and in the audit. Cut at 4096 bytes.
    Deny(String),
}

impl Answer {
    /// A person must approve it first, for this reason.
    pub fn require_approval(reason: impl Into<String>) -> Self {
        Self::RequireApproval { reason: reason.into(), risk: None }
    }

    /// It ends denied, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(reason.into())
    }

    /// With so much at stake. Says nothing of an answer that asks nobody.
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
    crate::guest::policy::log(level, message);
    #[cfg(not(target_family = "wasm"))]
    let _ = (level, message);
}

/// The longest reason that a host takes, in bytes.
#[cfg(any(target_family = "wasm", test))]
const MAX_REASON: usize = 4096;

/// A reason that the host takes, however long it was.
#[cfg(any(target_family = "wasm", test))]
pub(crate) fn cut(mut reason: String) -> String {
    if reason.len() > MAX_REASON {
        let marked = MAX_REASON - "…".len();
        reason.truncate(reason.floor_char_boundary(marked));
        reason.push('…');
    }
    reason
}

/// What a component is made of; `policy!` implements it.
#[doc(hidden)]
pub trait Policy {
    fn judge(question: &Question) -> Answer;
}

/// Exports a function `fn(&Question) -> Answer` as a policy. Once per crate, at its root.
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
    $crate::guest::policy::bindings::export_policy!(Exports with_types_in $crate::guest::policy::bindings);
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
