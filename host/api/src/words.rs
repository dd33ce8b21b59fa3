//! The words of the public JSON that come from closed sets, and how each follows from the domain's own.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! words {
    // A token and not a literal: utoipa cannot read one that a macro has parsed, and would describe other words.
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
        /// Nobody has to.
        Auto = domain::Approval::Auto,
        /// Somebody has to.
        RequiresApproval = domain::Approval::RequiresApproval,
    }
}

words! {
    /// What the operator's policy says of a tool.
    Rule "kebab-case" from domain::Rule {
        /// As the tool declares.
        Allow = domain::Rule::Allow,
        /// A person must approve every call.
        Ask = domain::Rule::Ask,
        /// Every call is denied.
        Deny = domain::Rule::Deny,
    }
}

words! {
    /// What is waited for, and so what renders it.
    Kind "snake_case" from domain::Kind {
        /// A yes or no before the call goes on.
        Approval = domain::Kind::Approval,
        /// A person's answer, which is the result.
        Elicitation = domain::Kind::Elicitation,
        /// The result of an attached client.
        ClientExec = domain::Kind::ClientExec,
    }
}

words! {
    /// Whose words a prompt is.
    PromptBy "snake_case" from domain::PromptBy {
        /// The plugin's, over what the model wrote.
        Plugin = domain::PromptBy::Plugin,
        /// The host's.
        Host = domain::PromptBy::Host,
    }
}

words! {
    /// How bad it would be if a call went wrong.
    Risk "snake_case" from domain::Risk {
        /// Nothing to speak of.
        Low = domain::Risk::Low,
        /// It can be put right.
        Medium = domain::Risk::Medium,
        /// It can hardly be put right.
        High = domain::Risk::High,
        /// It must not go wrong.
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
    /// How far a call has come.
    Status "snake_case" from domain::Status {
        /// The guest runs.
        Running = domain::Status::Running,
        /// It waits for the outside.
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
        /// It was tried and failed, or the call itself was wrong.
        Failed = domain::Outcome::Failed(_),
        /// A person or a rule said no.
        Denied = domain::Outcome::Denied(_),
        /// Nobody answered in time.
        Expired = domain::Outcome::Expired,
        /// The turn was cancelled.
        Cancelled = domain::Outcome::Cancelled,
        /// Another call of the turn was denied.
        CancelledBySibling = domain::Outcome::CancelledBySibling,
        /// No client was attached.
        Unavailable = domain::Outcome::Unavailable,
        /// What was approved no longer exists.
        Invalidated = domain::Outcome::Invalidated,
        /// The host was killed while it ran, and nobody can say whether it happened.
        InDoubt = domain::Outcome::InDoubt,
    }
}

words! {
    /// Whether a turn goes on, or how it ended.
    TurnState "snake_case" from domain::TurnState {
        /// Calls of it have no outcome yet.
        Open = domain::TurnState::Open,
        /// Every call has its outcome.
        Settled = domain::TurnState::Ended(domain::TurnEnd::Settled, _),
        /// A denial ended it, as the turn asked; the model is not to be called.
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
    /// What a denial does to the other calls of its turn.
    Rejection "snake_case" from domain::Rejection {
        /// Nothing.
        ContinueSiblings = domain::Rejection::ContinueSiblings,
        /// They end `cancelled_by_sibling`.
        CancelSiblings = domain::Rejection::CancelSiblings,
        /// They end so too, and the turn ends `aborted`.
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
