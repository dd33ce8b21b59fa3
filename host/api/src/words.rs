//! The enums of the public JSON and their conversions from the domain's enums.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! words {
    // A token and not a literal: utoipa cannot read a literal that a macro has parsed, and would document other words.
    ($(#[$doc:meta])* $name:ident $case:tt from $from:ty {
        $($(#[$word_doc:meta])* $word:ident = $pattern:pat),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = $case)]
        pub enum $name {
            $($(#[$word_doc])* $word),+
        }

        impl From<&$from> for $name {
            fn from(value: &$from) -> Self {
                match value {
                    $($pattern => Self::$word),+
                }
            }
        }
    };
}

words! {
    /// Who produces the result of a call.
    Executor "kebab-case" from domain::Executor {
        /// The plugin's code, in the sandbox.
        Server = domain::Executor::Server,
        /// A person.
        Human = domain::Executor::Human,
        /// The attached client.
        Client = domain::Executor::Client,
        /// The model's provider, in its own stream.
        Provider = domain::Executor::Provider,
    }
}

words! {
    /// Whether a person must approve first.
    Approval "kebab-case" from domain::Approval {
        /// No approval is needed.
        Auto = domain::Approval::Auto,
        /// An approval is needed.
        RequiresApproval = domain::Approval::RequiresApproval,
    }
}

words! {
    /// The decision of the operator's policy about a tool.
    Rule "kebab-case" from domain::Rule {
        /// The tool's declaration applies.
        Allow = domain::Rule::Allow,
        /// A person must approve every call.
        Ask = domain::Rule::Ask,
        /// Every call is denied.
        Deny = domain::Rule::Deny,
    }
}

words! {
    /// The kind of answer that a suspension waits for.
    Kind "snake_case" from domain::Kind {
        /// A yes or no before the call continues.
        Approval = domain::Kind::Approval,
        /// A person's answer, which is the result.
        Elicitation = domain::Kind::Elicitation,
        /// The result of an attached client.
        ClientExec = domain::Kind::ClientExec,
    }
}

words! {
    /// The author of a prompt.
    PromptBy "snake_case" from domain::PromptBy {
        /// The plugin. The text can contain what the model wrote.
        Plugin = domain::PromptBy::Plugin,
        /// The host.
        Host = domain::PromptBy::Host,
    }
}

words! {
    /// The damage that a wrong call could do.
    Risk "snake_case" from domain::Risk {
        /// Negligible.
        Low = domain::Risk::Low,
        /// Easy to repair.
        Medium = domain::Risk::Medium,
        /// Hard to repair.
        High = domain::Risk::High,
        /// Unacceptable.
        Critical = domain::Risk::Critical,
    }
}

impl From<Kind> for domain::Kind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Approval => Self::Approval,
            Kind::Elicitation => Self::Elicitation,
            Kind::ClientExec => Self::ClientExec,
        }
    }
}

words! {
    /// The progress of a call.
    Status "snake_case" from domain::Status {
        /// The guest runs.
        Running = domain::Status::Running,
        /// It waits for a person or a client.
        Awaiting = domain::Status::Awaiting,
        /// It ended with a result.
        Resolved = domain::Status::Resolved,
        /// It ended without one.
        Errored = domain::Status::Errored,
    }
}

words! {
    /// How a call ended.
    Outcome "snake_case" from domain::Outcome {
        /// With a result.
        Ok = domain::Outcome::Ok { .. },
        /// It failed while it ran, or the call was invalid.
        Failed = domain::Outcome::Failed(_),
        /// A person or a rule denied it.
        Denied = domain::Outcome::Denied(_),
        /// Nobody answered in time.
        Expired = domain::Outcome::Expired,
        /// The turn was cancelled.
        Cancelled = domain::Outcome::Cancelled,
        /// Another call of the turn was denied.
        CancelledBySibling = domain::Outcome::CancelledBySibling,
        /// No client was attached.
        Unavailable = domain::Outcome::Unavailable,
        /// The approved component or declaration no longer exists.
        Invalidated = domain::Outcome::Invalidated,
        /// The host was killed while it ran. Its effects are unknown.
        InDoubt = domain::Outcome::InDoubt,
    }
}

words! {
    /// Whether a turn is open, or how it ended.
    TurnState "snake_case" from domain::TurnState {
        /// At least one call has no outcome yet.
        Open = domain::TurnState::Open,
        /// Every call has its outcome.
        Settled = domain::TurnState::Ended(domain::TurnEnd::Settled, _),
        /// A denial ended it, because it was submitted with `abort_turn`. The model must not be called.
        Aborted = domain::TurnState::Ended(domain::TurnEnd::Aborted, _),
        /// Somebody cancelled it.
        Cancelled = domain::TurnState::Ended(domain::TurnEnd::Cancelled, _),
    }
}

impl TurnState {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Settled => "settled",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
        }
    }
}

words! {
    /// The effect of a denial on the other calls of its turn.
    Rejection "snake_case" from domain::Rejection {
        /// Nothing.
        ContinueSiblings = domain::Rejection::ContinueSiblings,
        /// They end `cancelled_by_sibling`.
        CancelSiblings = domain::Rejection::CancelSiblings,
        /// They end `cancelled_by_sibling`, and the turn ends `aborted`.
        AbortTurn = domain::Rejection::AbortTurn,
    }
}

impl From<Rejection> for domain::Rejection {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::ContinueSiblings => Self::ContinueSiblings,
            Rejection::CancelSiblings => Self::CancelSiblings,
            Rejection::AbortTurn => Self::AbortTurn,
        }
    }
}
