//! The enums of the public JSON and their conversions from the domain's enums.

use std::borrow::Cow;
use std::fmt;

use dispatch::ports::Occasion;
use domain::{event::TurnEnd, outcome::OutcomeKind};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

macro_rules! enum_copy {
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

/// A value that is written as a text, and read from any text: plugins choose some of them.
macro_rules! open_text {
    ($(#[$meta:meta])* $name:ident is $same:ty) => {
        open_text! { $(#[$meta])* $name is $same, |text| Some(text.into()), &[] }
    };
    // The function that reads a text, and the expected texts.
    ($(#[$meta:meta])* $name:ident is $same:ty, $read:expr, $expected:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name(pub $same);

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                let read: fn(&str) -> Option<$same> = $read;
                read(&text).map(Self).ok_or_else(|| de::Error::unknown_variant(&text, $expected))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.0.as_str())
            }
        }
    };
}

/// A newtype that reads and writes an enum of the domain by name.
macro_rules! enum_by_name {
    (#[doc = $doc:literal] $name:ident is $same:ty) => {
        open_text! {
            #[doc = $doc]
            #[derive(Copy)]
            $name is $same, <$same>::named, &<$same>::NAMES
        }

        impl From<&$same> for $name {
            fn from(value: &$same) -> Self {
                Self(*value)
            }
        }

        impl From<$name> for $same {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let schema = ObjectBuilder::new().schema_type(Type::String).description(Some($doc.trim()));
                schema.enum_values(Some(<$same>::NAMES)).into()
            }
        }

        impl ToSchema for $name {}
    };
}

open_text! {
    /// A decision, or the choice of a question.
    Decision is domain::suspension::Decision
}

open_text! {
    /// `open`, or how a suspension ended: the decision, `expired` or `withdrawn`.
    SuspensionState is domain::suspension::SuspensionState
}

open_text! {
    /// How a suspension ended: the decision, `expired` or `withdrawn`.
    SuspensionEnd is domain::suspension::SuspensionEnd
}

/// Why a suspension takes no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotOpen {
    /// It does not exist, or this principal may not see it.
    Unknown,
    /// It has ended.
    Ended(domain::suspension::SuspensionEnd),
}

impl NotOpen {
    fn as_str(&self) -> &str {
        match self {
            Self::Unknown => "unknown",
            Self::Ended(ended) => ended.as_str(),
        }
    }
}

impl From<&str> for NotOpen {
    fn from(text: &str) -> Self {
        if text == "unknown" { Self::Unknown } else { Self::Ended(text.into()) }
    }
}

open_text! {
    /// Why a suspension takes no answer: `unknown`, or how it ended.
    StaleState is NotOpen
}

enum_copy! {
    /// Something that a request names.
    Resource "snake_case" from dispatch::Resource {
        /// A conversation.
        Conversation = dispatch::Resource::Conversation,
        /// A turn.
        Turn = dispatch::Resource::Turn,
        /// A call.
        Call = dispatch::Resource::Call,
        /// A suspension.
        Suspension = dispatch::Resource::Suspension,
        /// A standing approval.
        StandingApproval = dispatch::Resource::StandingApproval,
        /// A wait for a signal.
        Signal = dispatch::Resource::Signal,
    }
}

enum_by_name! {
    /// The action of an entry of the audit.
    Action is dispatch::Action
}

enum_by_name! {
    /// How a call ended.
    Outcome is domain::outcome::OutcomeKind
}

enum_by_name! {
    /// A rule that a plugin must meet to be loaded.
    LoadRule is domain::LoadRule
}

enum_by_name! {
    /// Why a call failed.
    FailureCode is domain::outcome::FailureCode
}

enum_copy! {
    /// How a call or a turn ended.
    Ended "snake_case" from dispatch::Ended {
        /// The call has a result.
        Ok = dispatch::Ended::Call(OutcomeKind::Ok),
        /// The call failed.
        Failed = dispatch::Ended::Call(OutcomeKind::Failed),
        /// The call was denied.
        Denied = dispatch::Ended::Call(OutcomeKind::Denied),
        /// Nobody answered in time.
        Expired = dispatch::Ended::Call(OutcomeKind::Expired),
        /// Somebody cancelled the turn.
        Cancelled = dispatch::Ended::Call(OutcomeKind::Cancelled) | dispatch::Ended::Turn(TurnEnd::Cancelled),
        /// Another call of the turn was denied.
        CancelledBySibling = dispatch::Ended::Call(OutcomeKind::CancelledBySibling),
        /// No client was attached.
        Unavailable = dispatch::Ended::Call(OutcomeKind::Unavailable),
        /// The approved component or declaration no longer exists.
        Invalidated = dispatch::Ended::Call(OutcomeKind::Invalidated),
        /// The host was killed while the call ran.
        InDoubt = dispatch::Ended::Call(OutcomeKind::InDoubt),
        /// Every call of the turn has its outcome.
        Settled = dispatch::Ended::Turn(TurnEnd::Settled),
        /// A denial ended the turn.
        Aborted = dispatch::Ended::Turn(TurnEnd::Aborted),
    }
}

enum_copy! {
    /// An event that a webhook message reports.
    DeliveryEvent "snake_case" from dispatch::ports::Report {
        /// The suspension was opened.
        Opened = dispatch::ports::Report::Suspension(_, Occasion::Opened),
        /// More people may answer the suspension.
        Escalated = dispatch::ports::Report::Suspension(_, Occasion::Escalated { .. }),
        /// The suspension was closed.
        Closed = dispatch::ports::Report::Suspension(_, Occasion::Closed),
        /// The turn settled.
        Settled = dispatch::ports::Report::TurnSettled(_),
    }
}

enum_copy! {
    /// Whether a webhook has received a message.
    DeliveryState "snake_case" from dispatch::ports::DeliveryState {
        /// There is another attempt.
        Pending = dispatch::ports::DeliveryState::Pending { .. },
        /// The webhook has received it.
        Delivered = dispatch::ports::DeliveryState::Delivered,
        /// The last attempt failed.
        Failed = dispatch::ports::DeliveryState::Failed,
    }
}

enum_by_name! {
    /// A kind of step of a durable call.
    StepKind is domain::step::StepKind
}

enum_by_name! {
    /// A role of a principal.
    Role is domain::principal::Role
}

enum_by_name! {
    /// The level of a line of a guest's log.
    Level is domain::call::Level
}

enum_by_name! {
    /// The channel that the principal used: a session of the console, a token, a one-time link, or a form of an MCP client.
    Via is domain::principal::Channel
}

enum_by_name! {
    /// Whether a standing approval can still be used.
    StandingState is domain::standing::StandingState
}

enum_by_name! {
    /// Who produces the result of a call.
    Executor is domain::tool::Executor
}

enum_by_name! {
    /// Whether a person must approve first.
    Approval is domain::tool::Approval
}

enum_by_name! {
    /// The decision of the operator's policy about a tool.
    Rule is domain::gate::RuleEffect
}

enum_by_name! {
    /// The kind of answer that a suspension waits for.
    Kind is domain::suspension::SuspensionKind
}

enum_by_name! {
    /// The author of a prompt.
    PromptBy is domain::suspension::PromptBy
}

enum_by_name! {
    /// The damage that a wrong call could do.
    Risk is domain::tool::Risk
}

enum_by_name! {
    /// The progress of a call.
    Status is domain::outcome::Status
}

enum_copy! {
    /// Whether a turn is open, or how it ended.
    TurnState "snake_case" from domain::turn::TurnState {
        /// At least one call has no outcome yet.
        Open = domain::turn::TurnState::Open,
        /// Every call has its outcome.
        Settled = domain::turn::TurnState::Ended(TurnEnd::Settled, _),
        /// A denial ended it, because it was submitted with `abort_turn`. The model must not be called.
        Aborted = domain::turn::TurnState::Ended(TurnEnd::Aborted, _),
        /// Somebody cancelled it.
        Cancelled = domain::turn::TurnState::Ended(TurnEnd::Cancelled, _),
    }
}

enum_by_name! {
    /// The effect of a denial on the other calls of its turn.
    Rejection is domain::event::Rejection
}

/// The value of `sandboxed` in responses of older hosts.
pub(crate) const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_hosts_enums() {
        for action in dispatch::Action::ALL {
            let written = serde_json::to_string(&Action(action)).unwrap();
            assert_eq!(written, format!("\"{}\"", action.as_str()));
            assert_eq!(serde_json::from_str::<Action>(&written).unwrap(), Action(action));
        }
        for kind in OutcomeKind::ALL {
            assert_eq!(Ended::from(&dispatch::Ended::Call(kind)).to_string(), kind.as_str());
        }
        for role in domain::principal::Role::ALL {
            assert_eq!(Role::from(&role).to_string(), role.as_str());
        }
        let unknown = serde_json::from_str::<Action>("\"sneeze\"").unwrap_err().to_string();
        assert!(unknown.starts_with("unknown variant `sneeze`"), "{unknown}");
    }
}
