//! How a call ended. Denial, expiry, cancellation and a missing client are different outcomes.

use crate::Json;

/// How a call ended: exactly one for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has a result.
    Ok {
        /// The result.
        value: Json,
        /// False for results of clients and providers, which the host does not control.
        trusted: bool,
    },
    /// It ran and failed, or the call itself was wrong.
    Failed(Failure),
    /// A person or a rule denied it, for this reason.
    Denied(Option<String>),
    /// Nobody answered in time.
    Expired,
    /// Somebody cancelled the turn.
    Cancelled,
    /// Another call of the turn was denied, and the turn asked for its siblings to end with it.
    CancelledBySibling,
    /// No client was attached that could carry it out.
    Unavailable,
    /// The component that was approved no longer exists.
    Invalidated,
    /// The host was killed while it ran. It may have had effects.
    InDoubt,
}

/// An [`Outcome`] without its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    Ok,
    Failed,
    Denied,
    Expired,
    Cancelled,
    CancelledBySibling,
    Unavailable,
    Invalidated,
    InDoubt,
}

impl OutcomeKind {
    /// Every kind with its name in JSON.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Ok, "ok"),
        (Self::Failed, "failed"),
        (Self::Denied, "denied"),
        (Self::Expired, "expired"),
        (Self::Cancelled, "cancelled"),
        (Self::CancelledBySibling, "cancelled_by_sibling"),
        (Self::Unavailable, "unavailable"),
        (Self::Invalidated, "invalidated"),
        (Self::InDoubt, "in_doubt"),
    ];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("in_doubt", |(_, name)| name)
    }
}

/// What went wrong in a call, in words that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub code: FailureCode,
    /// What was wrong, where, and what would be right.
    pub message: String,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCode {
    /// No live tool has this name.
    UnknownTool,
    /// The arguments break the tool's schema, or the tool refused them.
    InvalidArguments,
    /// The tool ran and said that it failed.
    ToolFailed,
    /// The tool said that something it needs cannot be reached now.
    ToolUnavailable,
    /// The guest trapped.
    Trapped,
    /// The guest did not return in time.
    OutOfTime,
    /// The guest wanted more memory than it may have.
    OutOfMemory,
    /// The guest exceeded another limit; the message names it.
    LimitExceeded,
    /// The result is not JSON or breaks the tool's result schema.
    InvalidResult,
    /// The host had no room for the call.
    Busy,
    /// The host failed, not the tool.
    HostFault,
}

impl FailureCode {
    /// Every code with its name in JSON.
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::UnknownTool, "unknown_tool"),
        (Self::InvalidArguments, "invalid_arguments"),
        (Self::ToolFailed, "tool_failed"),
        (Self::ToolUnavailable, "tool_unavailable"),
        (Self::Trapped, "trapped"),
        (Self::OutOfTime, "out_of_time"),
        (Self::OutOfMemory, "out_of_memory"),
        (Self::LimitExceeded, "limit_exceeded"),
        (Self::InvalidResult, "invalid_result"),
        (Self::Busy, "busy"),
        (Self::HostFault, "host_fault"),
    ];

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(code, _)| *code == self).map_or("host_fault", |(_, name)| name)
    }
}

impl Failure {
    /// A failure of this kind.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// What a caller sees of a call's progress, coarser than its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The guest runs.
    Running,
    /// The call waits for the outside.
    Awaiting,
    /// It ended with a result.
    Resolved,
    /// It ended without one.
    Errored,
}

impl Outcome {
    #[must_use]
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Ok { .. } => OutcomeKind::Ok,
            Self::Failed(_) => OutcomeKind::Failed,
            Self::Denied(_) => OutcomeKind::Denied,
            Self::Expired => OutcomeKind::Expired,
            Self::Cancelled => OutcomeKind::Cancelled,
            Self::CancelledBySibling => OutcomeKind::CancelledBySibling,
            Self::Unavailable => OutcomeKind::Unavailable,
            Self::Invalidated => OutcomeKind::Invalidated,
            Self::InDoubt => OutcomeKind::InDoubt,
        }
    }

    /// The name in JSON; all nine are distinct.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The error code and the sentence that the model reads, where there is no result.
    #[must_use]
    pub fn error(&self) -> Option<(&'static str, String)> {
        let message = match self {
            Self::Ok { .. } => return None,
            Self::Failed(failure) => return Some((failure.code.as_str(), failure.message.clone())),
            Self::Denied(None) => "This call was denied. Do not repeat it; choose a different approach.".into(),
            Self::Denied(Some(reason)) => format!("This call was denied: {reason}. Choose a different approach."),
            Self::Expired => "Nobody responded in time. The call was not carried out.".into(),
            Self::Cancelled => "The turn was cancelled before this call ended.".into(),
            Self::CancelledBySibling => {
                "Another call of this turn was denied, and this one was cancelled with it.".into()
            }
            Self::Unavailable => "No client that can carry this out is connected.".into(),
            Self::Invalidated => {
                "The component that this call was approved for no longer exists, so the call was not carried out."
                    .into()
            }
            Self::InDoubt => {
                "The host stopped while this call ran. It may or may not have taken effect; check before repeating it."
                    .into()
            }
        };
        Some((self.as_str(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_name_and_a_result_or_a_reason() {
        let failure = Failure::new(FailureCode::ToolFailed, "no");
        let all = [
            Outcome::Ok { value: Json::new("1"), trusted: true },
            Outcome::Failed(failure),
            Outcome::Denied(None),
            Outcome::Expired,
            Outcome::Cancelled,
            Outcome::CancelledBySibling,
            Outcome::Unavailable,
            Outcome::Invalidated,
            Outcome::InDoubt,
        ];
        let names: std::collections::BTreeSet<_> = all.iter().map(Outcome::as_str).collect();
        assert_eq!(names.len(), all.len());
        let messages: std::collections::BTreeSet<_> = all.iter().filter_map(Outcome::error).collect();
        assert_eq!(messages.len(), all.len() - 1);
    }
}
