//! One wait of a call, and the reasons why it has no answer.

#[cfg(target_family = "wasm")]
pub(crate) mod host;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// One wait of a call, as a native test sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Wait {
    /// A question, as the interface defines it.
    Ask(Value),
    /// A decision about the `subject` of the question.
    Approve(Value),
    /// A wait for an external system, as the interface defines it.
    External(Value),
    /// Calls of other tools, as the interface defines the request.
    Calls(Value),
    /// Time.
    Sleep(Duration),
}

/// Why a wait has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitError {
    /// Somebody denied it, with this comment.
    Denied(Option<String>),
    /// Nobody answered in time.
    Expired,
    /// The call is being cancelled.
    Cancelled,
    /// The call may not wait. The text is for the author of the plugin.
    NotGranted(String),
    /// The answer fits its schema, but is not a value of the type.
    Malformed(String),
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(None) => f.write_str("a person denied it"),
            Self::Denied(Some(comment)) => write!(f, "a person denied it: {comment}"),
            Self::Expired => f.write_str("nobody answered in time"),
            Self::Cancelled => f.write_str("the call is being cancelled"),
            Self::NotGranted(why) => f.write_str(why),
            Self::Malformed(why) => write!(f, "the answer cannot be read: {why}"),
        }
    }
}

impl std::error::Error for WaitError {}
