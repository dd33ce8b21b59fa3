//! The words of the public JSON that come from closed sets, and how each follows from the domain's own.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! words {
    // Both types have the same words.
    ($(#[$doc:meta])* $name:ident $case:tt is $same:ty { $($(#[$word_doc:meta])* $word:ident),+ $(,)? }) => {
        words! { $(#[$doc])* $name $case from $same { $($(#[$word_doc])* $word = <$same>::$word),+ } }

        impl From<$name> for $same {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$word => Self::$word),+
                }
            }
        }
    };
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

        /// The word in JSON.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.serialize(f)
            }
        }
    };
}

words! {
    /// Who produces the result of a call.
    Executor "kebab-case" is domain::Executor {
        /// The plugin's code, in the sandbox.
        Server,
        /// A person.
        Human,
        /// The attached client.
        Client,
        /// The model's provider, in its own stream.
        Provider,
    }
}

words! {
    /// Whether a person must approve first.
    Approval "kebab-case" is domain::Approval {
        /// Nobody has to.
        Auto,
        /// Somebody has to.
        RequiresApproval,
    }
}

words! {
    /// What the operator's policy says of a tool.
    Rule "kebab-case" is domain::Rule {
        /// As the tool declares.
        Allow,
        /// A person must approve every call.
        Ask,
        /// Every call is denied.
        Deny,
    }
}

words! {
    /// What is waited for, and so what renders it.
    Kind "snake_case" is domain::Kind {
        /// A yes or no before the call goes on.
        Approval,
        /// A person's answer, which is the result.
        Elicitation,
        /// The result of an attached client.
        ClientExec,
    }
}

words! {
    /// Whose words a prompt is.
    PromptBy "snake_case" is domain::PromptBy {
        /// The plugin's, over what the model wrote.
        Plugin,
        /// The host's.
        Host,
    }
}

words! {
    /// How bad it would be if a call went wrong.
    Risk "snake_case" is domain::Risk {
        /// Nothing to speak of.
        Low,
        /// It can be put right.
        Medium,
        /// It can hardly be put right.
        High,
        /// It must not go wrong.
        Critical,
    }
}

words! {
    /// How far a call has come.
    Status "snake_case" is domain::Status {
        /// The guest runs.
        Running,
        /// It waits for the outside.
        Awaiting,
        /// It ended with a result.
        Resolved,
        /// It ended without one.
        Errored,
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

words! {
    /// What a denial does to the other calls of its turn.
    Rejection "snake_case" is domain::Rejection {
        /// Nothing.
        ContinueSiblings,
        /// They end `cancelled_by_sibling`.
        CancelSiblings,
        /// They end so too, and the turn ends `aborted`.
        AbortTurn,
    }
}
