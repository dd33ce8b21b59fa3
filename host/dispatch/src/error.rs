//! Why a request to the host failed, and whose fault that is.

use std::sync::Arc;

use domain::{CallId, Refusal, Timestamp, principal::Role, retention::RemovalRule};

use crate::ports::StoreFault;
use crate::quota::Busy;

/// Why a principal may not make requests of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    #[error("only a principal with the role caller submits turns")]
    Submit,
    #[error(
        "a conversation whose name begins with `~` has the nested turns of another one, and only the host submits to it"
    )]
    Nested,
    #[error("only a principal with the role client attaches as one")]
    Attach,
    #[error("only a principal with the role admin may do this")]
    Admin,
    #[error("only the approver who gave a standing approval, or an admin, can revoke it")]
    Revoke,
}

impl Forbidden {
    /// The role that the principal lacks.
    #[must_use]
    pub const fn role(self) -> Option<Role> {
        match self {
            Self::Submit => Some(Role::Caller),
            Self::Attach => Some(Role::Client),
            Self::Admin => Some(Role::Admin),
            Self::Nested | Self::Revoke => None,
        }
    }
}

/// A request that failed. It changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or this principal may not see it.
    #[error("there is no such {}, or you may not see it", .0.as_str())]
    NotFound(Resource),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The turn ended, and retention removed it.
    #[error("the turn was removed by retention at {}: {rule}", domain::rfc3339(*.at))]
    Removed { at: Timestamp, rule: RemovalRule },
    /// The call id belongs to a turn that retention removed. The call never runs again.
    #[error(
        "call id {call} belongs to a turn that was removed by retention at {}: {rule}; the call is not run again, and a \
         new call needs a new id",
        domain::rfc3339(*.at)
    )]
    CallRemoved { call: CallId, at: Timestamp, rule: RemovalRule },
    /// The call id was submitted before with other arguments, another tool, or among other calls.
    #[error("call id {call} was submitted before, {}", .difference.as_str())]
    CallIdTaken {
        /// The id that was submitted before.
        call: CallId,
        difference: Difference,
    },
    /// Part of the request is too large.
    #[error("the size of {} is {size} bytes; at most {limit} are allowed{}", .part.as_str(), .part.named_key())]
    TooLarge { part: RequestPart, size: usize, limit: usize },
    /// The principal's quota is used up. The same request may be tried again later.
    #[error("{0}")]
    Busy(Busy),
    /// The disk has less free space than [`Bounds::disk_reserve`](crate::Bounds::disk_reserve).
    #[error(
        "the disk of the host is almost full, so the host takes no new turns until there is more space; answers, \
         cancellations and reads go on"
    )]
    DiskLow,
    /// The host ends soon.
    #[error(
        "the host ends soon and takes no new turns and answers: nothing was recorded, so send the request again, to another host or \
         after the restart"
    )]
    Draining,
    /// A call names a tool that is not live, and plugins are being loaded that may have it.
    #[error(
        "{}, and the host is still loading plugins ({plugins} left): nothing was recorded, so submit the same calls again in \
         a moment",
        no_tool(.tool)
    )]
    Loading { tool: Arc<str>, plugins: usize },
    /// A nested turn would have more calls than are allowed below one call of a caller.
    #[error("at most {limit} calls of other tools are allowed below one call of a caller (`nested_calls`)")]
    TooManyNested { limit: usize },
    /// The domain refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The host failed.
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

impl Error {
    /// Whether it failed because a stored record is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Fault(fault) if fault.is_damage())
    }
}

/// A name that a model made up may have any length and content. The sentence quotes only its beginning.
pub(crate) fn no_tool(asked: &str) -> String {
    format!("there is no tool {}", escape::quoted(asked, 64))
}

domain::names! {
    /// A kind of thing that a request can name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Resource {
        Conversation = "conversation",
        Turn = "turn",
        Call = "call",
        Suspension = "suspension",
        StandingApproval = "standing approval",
        Signal = "wait for a signal",
    }
}

domain::names! {
    /// How a submission differs from the recorded turn that has one of its call ids, and what to do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Difference {
        Calls = "among other calls; submit each answer of the model as it came, and use a new id for a new call",
        Tool = "of another tool; use a new id for a new call",
        Arguments = "with other arguments; use a new id for a new call",
        Origin = "from another origin; use a new id for a new call",
    }
}

domain::names! {
    /// A part of a request whose size is limited.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RequestPart {
        /// Everything that a turn stores.
        Turn = "the turn",
        TurnContext = "the context",
        ToolName = "a tool's name",
        CallArguments = "the arguments of a call",
        CallResult = "a submitted result",
        CallOrigin = "the origin of a call",
        AnswerData = "the data",
        AnswerArguments = "the arguments",
        AnswerComment = "the comment",
        Progress = "the report of progress",
    }
}

impl RequestPart {
    /// The key of the configuration that sets its limit. The other limits are fixed.
    const fn key(self) -> Option<&'static str> {
        match self {
            Self::Turn => Some("quota.open_bytes"),
            Self::CallArguments | Self::CallResult | Self::AnswerArguments => Some("limits.arguments_bytes"),
            Self::Progress => Some("limits.progress_bytes"),
            Self::TurnContext | Self::ToolName | Self::CallOrigin | Self::AnswerData | Self::AnswerComment => None,
        }
    }

    fn named_key(self) -> String {
        self.key().map_or_else(|| " (a fixed limit)".to_owned(), |key| format!(" (limit `{key}`)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_part_of_the_request() {
        let call = CallId::new("c").unwrap();
        for (error, expected) in [
            (Error::NotFound(Resource::StandingApproval), "there is no such standing approval, or you may not see it"),
            (
                Error::CallIdTaken { call, difference: Difference::Arguments },
                "call id c was submitted before, with other arguments; use a new id for a new call",
            ),
            (
                Error::TooLarge { part: RequestPart::ToolName, size: 300, limit: 256 },
                "the size of a tool's name is 300 bytes; at most 256 are allowed (a fixed limit)",
            ),
            (
                Error::TooLarge { part: RequestPart::CallArguments, size: 39, limit: 20 },
                "the size of the arguments of a call is 39 bytes; at most 20 are allowed (limit `limits.arguments_bytes`)",
            ),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
