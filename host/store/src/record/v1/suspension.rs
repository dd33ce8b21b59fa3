//! Version 1 of a stored suspension and of its answer.

use std::sync::Arc;

use domain::{
    CallId, ConversationId, Digest, Json, LinkId, PluginName, PrincipalId, Receipt, SignalName, Span, Standing,
    StandingId, Suspension, SuspensionId, Timestamp, TurnId,
    approvers::{Delegation, Escalate, Need, Vote, Who},
    doubt::{Doubt, DoubtfulRequest, DoubtfulRequests},
    link::LinkRecord,
    nested::{NestedCall, NestedTurn, Parent},
    principal::{Channel, Channels},
    standing::{Pin, StandingBounds, StandingUse},
    suspension::{
        About, ApprovalExpiry, ApprovalRequest, Asked, ClientExec, Decision, Elicitation, ExternalWait, PromptBy,
        Resolution, SuspendedStep, SuspensionBody, SuspensionKind,
    },
    tool::{Editable, OnExpiry, Risk},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    /// A record has the fields of all kinds side by side. Older hosts also wrote fields that have no meaning for a
    /// kind. They are read and dropped.
    form SuspensionV1 {
        id: SuspensionId,
        kind: SuspensionKind,
        prompt: Option<Arc<str>> = "Option::is_none",
        responses: Option<Arc<[String]>> = "Option::is_none",
        response: Option<Json> = "Option::is_none",
        editable: Editable,
        created_at: Timestamp,
        expires_at: Timestamp,
        grace_until: Option<Timestamp> = "Option::is_none",
        on_expiry: OnExpiry,
        digest: Digest,
        step: Option<SuspendedStep> = "Option::is_none",
        in_doubt: Option<u32> = "Option::is_none",
        asked: AskedV1 = "AskedV1::is_plain",
        escalated_at: Option<Timestamp> = "Option::is_none",
        votes: Vec<Vote> = "Vec::is_empty",
        delegations: Vec<Delegation> = "Vec::is_empty",
        signal: Option<SignalName> = "Option::is_none",
        metadata: Option<Json> = "Option::is_none",
        nested: Option<NestedTurn> = "Option::is_none",
        doubtful: Option<Arc<[DoubtfulRequest]>> = "Option::is_none",
    }

    #[derive(Default, PartialEq)]
    form AskedV1 {
        prompt_by: PromptBy,
        defaults: Option<Json> = "Option::is_none",
        title: Option<String> = "Option::is_none",
        by: Option<Arc<str>> = "Option::is_none",
        reason: Option<Arc<str>> = "Option::is_none",
        risk: Option<Risk> = "Option::is_none",
        context_keys: Option<Arc<[String]>> = "Option::is_none",
        needs: Arc<[Need]> = "is_empty",
        standing: Option<StandingBounds> = "Option::is_none",
        policy_failed: bool = "std::ops::Not::not",
    }
}

/// The list of the channels.
impl Field for Channels {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.iter().collect::<Vec<_>>().write(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Channel>::read(deserializer)?.into_iter().collect())
    }
}

impl AskedV1 {
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

fn is_empty(needs: &Arc<[Need]>) -> bool {
    needs.is_empty()
}

impl Field for Suspension {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SuspensionV1::from(self).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SuspensionV1::deserialize(deserializer).map(Self::from)
    }
}

impl From<&Suspension> for SuspensionV1 {
    fn from(suspension: &Suspension) -> Self {
        // Naming every field makes a new one a compile error here.
        let Suspension { id, created_at, expires_at, digest, step, body } = suspension;
        let empty = Self {
            id: *id,
            kind: suspension.kind(),
            prompt: None,
            responses: None,
            response: None,
            editable: Editable::Nothing,
            created_at: *created_at,
            expires_at: *expires_at,
            grace_until: None,
            on_expiry: suspension.on_expiry(),
            digest: *digest,
            step: step.clone(),
            in_doubt: None,
            asked: AskedV1::default(),
            escalated_at: None,
            votes: Vec::new(),
            delegations: Vec::new(),
            signal: None,
            metadata: None,
            nested: None,
            doubtful: None,
        };
        match body.clone() {
            SuspensionBody::Approval(ApprovalRequest {
                asked,
                editable,
                on_expiry: _,
                doubt,
                standing,
                escalated_at,
                votes,
                delegations,
            }) => {
                let (prompt, asked) = stored(asked, standing);
                let (in_doubt, doubtful) = match doubt {
                    Some(Doubt::Run(attempt)) => (Some(attempt), None),
                    Some(Doubt::Requests(requests)) => (None, Some(requests.all().into())),
                    None => (None, None),
                };
                Self { prompt, asked, editable, in_doubt, doubtful, escalated_at, votes, delegations, ..empty }
            }
            SuspensionBody::Elicitation(Elicitation { asked, choices, data_schema, default: _, escalated_at }) => {
                let (prompt, asked) = stored(asked, None);
                Self { prompt, asked, responses: choices, response: data_schema, escalated_at, ..empty }
            }
            SuspensionBody::ClientExec(ClientExec { result_schema, grace_until }) => {
                Self { response: result_schema, grace_until, ..empty }
            }
            SuspensionBody::External(ExternalWait { about, result_schema, signal, metadata }) => {
                let (prompt, asked) = stored(about.into(), None);
                Self { prompt, asked, response: result_schema, signal, metadata, ..empty }
            }
            SuspensionBody::Nested(nested) => Self { nested: Some(nested), ..empty },
            SuspensionBody::Timer | SuspensionBody::RateLimit => empty,
        }
    }
}

impl From<SuspensionV1> for Suspension {
    fn from(record: SuspensionV1) -> Self {
        let SuspensionV1 { id, created_at, expires_at, digest, step, escalated_at, .. } = record;
        let (asked, standing) = asked(record.prompt, record.asked);
        let body = match record.kind {
            SuspensionKind::Approval => SuspensionBody::Approval(ApprovalRequest {
                asked,
                editable: record.editable,
                on_expiry: match record.on_expiry {
                    OnExpiry::Deny => ApprovalExpiry::Deny,
                    OnExpiry::Approve => ApprovalExpiry::Approve,
                    OnExpiry::Error | OnExpiry::Answer(_) => ApprovalExpiry::Expire,
                },
                doubt: match record.doubtful {
                    Some(requests) => Some(Doubt::Requests(DoubtfulRequests::new(requests))),
                    None => record.in_doubt.map(Doubt::Run),
                },
                standing,
                escalated_at,
                votes: record.votes,
                delegations: record.delegations,
            }),
            SuspensionKind::Elicitation => {
                let default = match record.on_expiry {
                    OnExpiry::Answer(answer) => Some(answer),
                    OnExpiry::Error | OnExpiry::Deny | OnExpiry::Approve => None,
                };
                let (choices, data_schema) = (record.responses, record.response);
                SuspensionBody::Elicitation(Elicitation { asked, choices, data_schema, default, escalated_at })
            }
            SuspensionKind::ClientExec => SuspensionBody::ClientExec(ClientExec {
                result_schema: record.response,
                grace_until: record.grace_until,
            }),
            SuspensionKind::External => SuspensionBody::External(ExternalWait {
                about: asked.about,
                result_schema: record.response,
                signal: record.signal,
                metadata: record.metadata,
            }),
            // A record without its turn is damaged. The wait then ends with its expiry, as a timer does.
            SuspensionKind::Nested => record.nested.map_or(SuspensionBody::Timer, SuspensionBody::Nested),
            SuspensionKind::Timer => SuspensionBody::Timer,
            SuspensionKind::RateLimit => SuspensionBody::RateLimit,
        };
        Self { id, created_at, expires_at, digest, step, body }
    }
}

fn stored(asked: Asked, standing: Option<StandingBounds>) -> (Option<Arc<str>>, AskedV1) {
    let Asked { about, defaults, needs, policy_failed } = asked;
    let About { prompt, prompt_by, title, by, reason, risk, context_keys } = about;
    (prompt, AskedV1 { prompt_by, defaults, title, by, reason, risk, context_keys, needs, standing, policy_failed })
}

fn asked(prompt: Option<Arc<str>>, asked: AskedV1) -> (Asked, Option<StandingBounds>) {
    let AskedV1 { prompt_by, defaults, title, by, reason, risk, context_keys, needs, standing, policy_failed } = asked;
    let about = About { prompt, prompt_by, title, by, reason, risk, context_keys };
    (Asked { about, defaults, needs, policy_failed }, standing)
}

records! {
    enum PromptBy "PromptBy" { Plugin, Host }
    enum Risk "Risk" { Low, Medium, High, Critical }

    struct Need "Need" {
        who: Arc<[Who]>,
        quorum: u32,
        escalate: Option<Escalate> = "Option::is_none",
        via: Channels = "Channels::is_any",
    }

    struct Escalate "Escalate" {
        after: Span,
        to: Arc<[Who]>,
    }

    struct Vote "Vote" {
        by: PrincipalId,
        binding: Digest,
        arguments: Option<Json> = "Option::is_none",
        needs: Vec<u16>,
        comment: Option<String> = "Option::is_none",
        link: Option<LinkId> = "Option::is_none",
        channel: Option<Channel> = "Option::is_none",
        at: Timestamp,
    }

    struct Delegation "Delegation" {
        from: PrincipalId,
        to: PrincipalId,
        needs: Vec<u16>,
        comment: Option<String> = "Option::is_none",
        link: Option<LinkId> = "Option::is_none",
        channel: Option<Channel> = "Option::is_none",
        at: Timestamp,
    }

    struct DoubtfulRequest "DoubtfulRequest" {
        entry: u32,
        request: Arc<str>,
        at: Timestamp,
    }

    struct NestedTurn "NestedTurn" {
        turn: TurnId,
        calls: Arc<[NestedCall]>,
    }

    struct NestedCall "NestedCall" {
        tool: Arc<str>,
        arguments: Json,
    }

    struct Parent "Parent" {
        conversation: ConversationId,
        turn: TurnId,
        call: CallId,
        plugin: PluginName,
        tool: Arc<str>,
        depth: u32,
    }

    struct LinkRecord "LinkRecord" {
        id: LinkId,
        to: PrincipalId,
        by: PrincipalId,
        webhook: Option<Arc<str>> = "Option::is_none",
        expires_at: Timestamp,
    }

    struct StandingBounds "StandingBounds" {
        time: Span,
        uses: u32,
    }

    struct Standing "Standing" {
        id: StandingId,
        expires_at: Timestamp,
        uses: u32,
        pin: Pin,
    }

    enum Pin "Pin" { All, Fields(Arc<[String]>) }

    struct StandingUse "StandingUse" {
        id: StandingId,
        by: PrincipalId,
    }

    enum SuspensionKind "SuspensionKind" { Approval, Elicitation, ClientExec, Timer, External, RateLimit, #[serde(rename = "children")] Nested }

    struct SuspendedStep "SuspendedStep" {
        digest: Digest,
        subject: Option<Json> = "Option::is_none",
        receipt: Option<Receipt> = "Option::is_none",
    }

    enum OnExpiry "OnExpiry" { Error, Deny, Answer(Json), Approve }
    enum Editable "Editable" { Nothing, Fields(Arc<[String]>), All }

    struct Resolution "Resolution" {
        decision: Decision,
        data: Option<Json> = "Option::is_none",
        arguments: Option<Json> = "Option::is_none",
        comment: Option<String> = "Option::is_none",
        standing: Option<Standing> = "Option::is_none",
        link: Option<LinkId> = "Option::is_none",
        channel: Option<Channel> = "Option::is_none",
    }

    enum Channel "Channel" { Console, Api, Link, #[serde(rename = "mcp-form")] McpForm }

    enum Decision "Decision" { Approve, Deny, Answer(Arc<str>), Result, Error }
}
