//! The enums of the public JSON and their conversions from the domain's enums.

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
    Executor "kebab-case" is domain::tool::Executor {
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
    Approval "kebab-case" is domain::tool::Approval {
        /// No approval is needed.
        Auto,
        /// An approval is needed.
        RequiresApproval,
    }
}

words! {
    /// The decision of the operator's policy about a tool.
    Rule "kebab-case" is domain::gate::Rule {
        /// The tool's declaration applies.
        Allow,
        /// A person must approve every call.
        Ask,
        /// Every call is denied.
        Deny,
    }
}

words! {
    /// The kind of answer that a suspension waits for.
    Kind "snake_case" is domain::suspension::Kind {
        /// A yes or no before the call continues.
        Approval,
        /// A person's answer, which is the result.
        Elicitation,
        /// The result of an attached client.
        ClientExec,
    }
}

words! {
    /// The author of a prompt.
    PromptBy "snake_case" is domain::suspension::PromptBy {
        /// The plugin. The text can contain what the model wrote.
        Plugin,
        /// The host.
        Host,
    }
}

words! {
    /// The damage that a wrong call could do.
    Risk "snake_case" is domain::tool::Risk {
        /// Negligible.
        Low,
        /// Easy to repair.
        Medium,
        /// Hard to repair.
        High,
        /// Unacceptable.
        Critical,
    }
}

words! {
    /// The progress of a call.
    Status "snake_case" is domain::outcome::Status {
        /// The guest runs.
        Running,
        /// It waits for a person or a client.
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
    TurnState "snake_case" from domain::turn::TurnState {
        /// At least one call has no outcome yet.
        Open = domain::turn::TurnState::Open,
        /// Every call has its outcome.
        Settled = domain::turn::TurnState::Ended(domain::event::TurnEnd::Settled, _),
        /// A denial ended it, because it was submitted with `abort_turn`. The model must not be called.
        Aborted = domain::turn::TurnState::Ended(domain::event::TurnEnd::Aborted, _),
        /// Somebody cancelled it.
        Cancelled = domain::turn::TurnState::Ended(domain::event::TurnEnd::Cancelled, _),
    }
}

words! {
    /// The effect of a denial on the other calls of its turn.
    Rejection "snake_case" is domain::event::Rejection {
        /// Nothing.
        ContinueSiblings,
        /// They end `cancelled_by_sibling`.
        CancelSiblings,
        /// They end `cancelled_by_sibling`, and the turn ends `aborted`.
        AbortTurn,
    }
}
