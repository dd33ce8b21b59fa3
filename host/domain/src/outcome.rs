//! The outcome of a call. Denial, expiry, cancellation and a missing client are different outcomes.

use crate::Json;

/// The outcome of a call. Each call ends with exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Ok {
        value: Json,
        /// False for results of clients and providers, because the host does not control them.
        trusted: bool,
    },
    /// The call failed, or was invalid.
    Failed(Failure),
    /// A person or a rule denied the call, for this reason.
    Denied(Option<String>),
    /// Nobody answered in time.
    Expired,
    /// Somebody cancelled the turn.
    Cancelled,
    /// Another call of the turn was denied, and the turn's settings cancel the other calls in that case.
    CancelledBySibling,
    /// No client that can run the call was connected. One that left before may have run it.
    Unavailable,
    /// The approved component no longer exists.
    Invalidated,
    /// The host was killed while the call ran. The call may have had effects.
    InDoubt,
}

crate::names! {
    /// An [`Outcome`] without its values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum OutcomeKind {
        Ok = "ok",
        Failed = "failed",
        Denied = "denied",
        Expired = "expired",
        Cancelled = "cancelled",
        CancelledBySibling = "cancelled_by_sibling",
        Unavailable = "unavailable",
        Invalidated = "invalidated",
        InDoubt = "in_doubt",
    }
}

/// The failure of a call, described so that a model can act on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: FailureCode,
    /// Describes the problem, its place and its solution.
    pub message: String,
}

crate::names! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum FailureCode {
        /// No live tool has this name.
        UnknownTool = "unknown_tool",
        /// The arguments do not match the tool's schema, or the tool refused them.
        InvalidArguments = "invalid_arguments",
        /// The tool ran and reported a failure.
        ToolFailed = "tool_failed",
        /// The tool reported that a service that it needs is unavailable.
        ToolUnavailable = "tool_unavailable",
        /// The guest trapped.
        Trapped = "trapped",
        /// The guest did not return in time.
        OutOfTime = "out_of_time",
        /// The guest requested more memory than its limit.
        OutOfMemory = "out_of_memory",
        /// The guest exceeded another limit. The message names it.
        LimitExceeded = "limit_exceeded",
        /// The result is not JSON, or does not match the tool's result schema.
        InvalidResult = "invalid_result",
        /// The host or the plugin already ran as many calls as it can.
        Busy = "busy",
        /// The host failed. The tool did not.
        HostFault = "host_fault",
    }
}

impl Failure {
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

crate::names! {
    /// The status of a call for its caller. It has less detail than the call's state.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Status {
        Running = "running",
        /// The call waits for a person or a client.
        Awaiting = "awaiting",
        /// The call ended with a result.
        Resolved = "resolved",
        /// The call ended without a result.
        Errored = "errored",
    }
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

    /// The name in JSON.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The bytes of the result.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Ok { value, .. } => value.size(),
            Self::Failed(_)
            | Self::Denied(_)
            | Self::Expired
            | Self::Cancelled
            | Self::CancelledBySibling
            | Self::Unavailable
            | Self::Invalidated
            | Self::InDoubt => 0,
        }
    }

    /// Whether the call was ended before it had a result. It may have taken effect if it had started.
    #[must_use]
    pub const fn is_interrupted(&self) -> bool {
        matches!(self, Self::Cancelled | Self::CancelledBySibling | Self::Expired | Self::Unavailable)
    }

    /// The error code and the message for the model. `None` for [`Outcome::Ok`]. `started`: [`Call::has_started`].
    ///
    /// [`Call::has_started`]: crate::Call::has_started
    #[must_use]
    pub fn error(&self, started: bool) -> Option<(&'static str, String)> {
        let effect = if started {
            "This call had started and may have taken effect; check before repeating it."
        } else {
            "This call had not started, so it has no effect."
        };
        let message = match self {
            Self::Ok { .. } => return None,
            Self::Failed(failure) => return Some((failure.code.as_str(), failure.message.clone())),
            Self::Denied(None) => "This call was denied. Do not repeat it; choose a different approach.".into(),
            Self::Denied(Some(reason)) => format!("This call was denied: {reason}. Choose a different approach."),
            Self::Expired => format!("Nobody responded in time. {effect}"),
            Self::Cancelled => format!("The turn was cancelled. {effect}"),
            Self::CancelledBySibling => {
                format!("Another call of this turn was denied, and this one was cancelled with it. {effect}")
            }
            Self::Unavailable => format!("No client has reported a result. {effect}"),
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
            Outcome::Ok { value: Json::unchecked("1"), trusted: true },
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
        let started = [true, false];
        let messages = started.iter().flat_map(|started| all.iter().filter_map(|outcome| outcome.error(*started)));
        let messages: std::collections::BTreeSet<_> = messages.collect();
        let interrupted = all.iter().filter(|outcome| outcome.is_interrupted()).count();
        assert_eq!(interrupted, 4);
        assert_eq!(messages.len(), all.len() - 1 + interrupted, "these say whether the call had started");
    }
}
