//! Version 1 of a turn's events. A record names each event of a call beside the events of the turn, with the call's
//! position inside it. In the domain, the position is outside: [`Event::Call`].

use std::sync::Arc;

use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, Json, LinkId, Outcome, PrincipalId, Receipt, Suspension,
    SuspensionId, Timestamp, TurnId,
    approvers::{Delegation, Vote},
    call::{Pinned, Running},
    event::{CallEvent, Rejection, TurnEnd},
    link::LinkRecord,
    nested::Parent,
    standing::StandingUse,
    suspension::Resolution,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::field::{self, Field};

/// Makes the stored form, and the conversions to it and from it. The compiler compares the variants and their fields
/// with those of the domain. A field is one line, as in `records!`.
macro_rules! events {
    (
        turn { $($turn:ident { $($turn_field:ident: $turn_type:ty $(= $turn_absent:literal)?),* $(,)? })* }
        call { $($name:ident is $call:ident { $($field:ident: $type:ty $(= $absent:literal)?),* $(,)? })* }
    ) => {
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        enum EventV1 {
            $($turn {
                $(#[serde(with = "field" $(, default, skip_serializing_if = $turn_absent)?)] $turn_field: $turn_type),*
            },)*
            $($name {
                #[serde(with = "field")]
                call: CallIndex,
                $(#[serde(with = "field" $(, default, skip_serializing_if = $absent)?)] $field: $type),*
            },)*
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
            turn: TurnId,
            conversation: ConversationId,
            caller: PrincipalId,
            rejection: Rejection,
            context: Option<Json> = "Option::is_none",
            parent: Option<Box<Parent>> = "Option::is_none",
            at: Timestamp,
        }
        TurnCancelled { by: PrincipalId, at: Timestamp }
        TurnSettled { end: TurnEnd, at: Timestamp }
    }
    call {
        CallRequested is Requested {
            id: CallId,
            tool: Arc<str>,
            arguments: Json,
            pinned: Option<Arc<Pinned>> = "Option::is_none",
            ruled_by: Option<Arc<str>> = "Option::is_none",
            origin: Option<Json> = "Option::is_none",
        }
        CallApproved is Covered { standing: StandingUse, approved: Digest, at: Timestamp }
        CallVoted is Voted { suspension: SuspensionId, vote: Box<Vote> }
        SuspensionDelegated is Delegated { suspension: SuspensionId, delegation: Box<Delegation> }
        AuthorityRevoked is AuthorityRevoked { suspension: SuspensionId, principal: PrincipalId, at: Timestamp }
        LinkMade is LinkMade { suspension: SuspensionId, link: Box<LinkRecord>, at: Timestamp }
        LinkUsed is LinkUsed { suspension: SuspensionId, link: LinkId, by: PrincipalId, at: Timestamp }
        SuspensionEscalated is Escalated { suspension: SuspensionId, at: Timestamp }
        CallSuspended is Suspended { suspension: Box<Suspension> }
        ClientAwaited is ClientAwaited { grace_until: Option<Timestamp> = "Option::is_none" }
        CallResolved is Resolved {
            suspension: SuspensionId,
            resolution: Box<Resolution>,
            approved: Option<Digest> = "Option::is_none",
            by: PrincipalId,
            at: Timestamp,
        }
        SuspensionExpired is Expired {
            suspension: SuspensionId,
            approved: Option<Digest> = "Option::is_none",
            at: Timestamp,
        }
        CallStarted is Started { running: Running, at: Timestamp }
        CallResumed is Resumed { running: Running, at: Timestamp }
        LeaseExtended is LeaseExtended { lease_end: Timestamp }
        CallSettled is Settled {
            outcome: Outcome,
            receipt: Option<Receipt> = "Option::is_none",
            at: Timestamp,
        }
    }
}
