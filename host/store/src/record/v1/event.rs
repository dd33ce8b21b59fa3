//! Version 1 of a turn's events. A record names each event of a call beside the events of the turn, with the call's
//! position inside it. In the domain, the position is outside: [`Event::Call`].

use std::sync::Arc;

use domain::{
    CallEvent, CallId, CallIndex, ConversationId, Delegation, Digest, Event, Json, Link, LinkId, Outcome, Pinned,
    PrincipalId, Receipt, Rejection, Resolution, Running, StandingUse, Suspension, SuspensionId, Timestamp, TurnEnd,
    TurnId, Vote,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::field::{self, Field};

/// Makes the stored form, and the conversions to it and from it. The compiler compares the variants and their fields
/// with those of the domain.
macro_rules! events {
    (
        turn { $($turn:ident { $($(#[$turn_attribute:meta])* $turn_field:ident: $turn_type:ty),* $(,)? })* }
        call { $($name:ident is $call:ident { $($(#[$attribute:meta])* $field:ident: $type:ty),* $(,)? })* }
    ) => {
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        enum EventV1 {
            $($turn { $($(#[$turn_attribute])* $turn_field: $turn_type),* },)*
            $($name { #[serde(with = "field")] call: CallIndex, $($(#[$attribute])* $field: $type),* },)*
        }

        impl From<&Event> for EventV1 {
            fn from(event: &Event) -> Self {
                match event {
                    $(Event::$turn { $($turn_field),* } => Self::$turn { $($turn_field: $turn_field.clone()),* },)*
                    Event::Call { call, event } => match event {
                        $(CallEvent::$call { $($field),* } => Self::$name { call: *call, $($field: $field.clone()),* },)*
                    },
                }
            }
        }

        impl From<EventV1> for Event {
            fn from(event: EventV1) -> Self {
                match event {
                    $(EventV1::$turn { $($turn_field),* } => Self::$turn { $($turn_field),* },)*
                    $(EventV1::$name { call, $($field),* } => Self::Call { call, event: CallEvent::$call { $($field),* } },)*
                }
            }
        }
    };
}

impl Field for Event {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EventV1::from(self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        EventV1::deserialize(deserializer).map(Self::from)
    }
}

events! {
    turn {
        TurnStarted {
            #[serde(with = "field")]
            turn: TurnId,
            #[serde(with = "field")]
            conversation: ConversationId,
            #[serde(with = "field")]
            caller: PrincipalId,
            #[serde(with = "field")]
            rejection: Rejection,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            context: Option<Json>,
            #[serde(with = "field")]
            at: Timestamp,
        }
        TurnCancelled {
            #[serde(with = "field")]
            by: PrincipalId,
            #[serde(with = "field")]
            at: Timestamp,
        }
        TurnSettled {
            #[serde(with = "field")]
            end: TurnEnd,
            #[serde(with = "field")]
            at: Timestamp,
        }
    }
    call {
        CallRequested is Requested {
            #[serde(with = "field")]
            id: CallId,
            tool: Arc<str>,
            #[serde(with = "field")]
            arguments: Json,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            pinned: Option<Arc<Pinned>>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            ruled_by: Option<Arc<str>>,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            origin: Option<Json>,
        }
        CallApproved is Approved {
            #[serde(with = "field")]
            standing: StandingUse,
            #[serde(with = "field")]
            approved: Digest,
            #[serde(with = "field")]
            at: Timestamp,
        }
        CallVoted is Voted {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            vote: Box<Vote>,
        }
        SuspensionDelegated is Delegated {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            delegation: Box<Delegation>,
        }
        LinkMade is LinkMade {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            link: Box<Link>,
            #[serde(with = "field")]
            at: Timestamp,
        }
        LinkUsed is LinkUsed {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            link: LinkId,
            #[serde(with = "field")]
            by: PrincipalId,
            #[serde(with = "field")]
            at: Timestamp,
        }
        SuspensionEscalated is Escalated {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            at: Timestamp,
        }
        CallSuspended is Suspended {
            #[serde(with = "field")]
            suspension: Box<Suspension>,
        }
        ClientAwaited is ClientAwaited {
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            grace_until: Option<Timestamp>,
        }
        CallResolved is Resolved {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field")]
            resolution: Box<Resolution>,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            approved: Option<Digest>,
            #[serde(with = "field")]
            by: PrincipalId,
            #[serde(with = "field")]
            at: Timestamp,
        }
        SuspensionExpired is Expired {
            #[serde(with = "field")]
            suspension: SuspensionId,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            approved: Option<Digest>,
            #[serde(with = "field")]
            at: Timestamp,
        }
        CallStarted is Started {
            #[serde(with = "field")]
            running: Running,
            #[serde(with = "field")]
            at: Timestamp,
        }
        LeaseExtended is LeaseExtended {
            #[serde(with = "field")]
            lease_end: Timestamp,
        }
        CallSettled is Settled {
            #[serde(with = "field")]
            outcome: Outcome,
            #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
            receipt: Option<Receipt>,
            #[serde(with = "field")]
            at: Timestamp,
        }
    }
}
