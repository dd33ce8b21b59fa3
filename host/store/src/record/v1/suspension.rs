//! Version 1 of a stored suspension and of its answer.

use std::sync::Arc;

use domain::{
    ApprovalRequest, ApprovalTimeout, Ask, Asked, ClientExec, Decision, Delegation, Digest, Editable, Elicitation,
    Escalate, Json, Kind, Link, LinkId, Need, OnExpiry, Pin, PrincipalId, PromptBy, Resolution, Risk, Span, Standing,
    StandingBounds, StandingId, StandingUse, Suspension, SuspensionId, Timestamp, Vote, Who,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    Kind as KindV1,
    OnExpiry as OnExpiryV1,
    Editable as EditableV1,
    Resolution as ResolutionV1,
    Decision as DecisionV1,
    PromptBy as PromptByV1,
    Risk as RiskV1,
    Need as NeedV1,
    Escalate as EscalateV1,
    Vote as VoteV1,
    Delegation as DelegationV1,
    Link as LinkV1,
    StandingBounds as StandingBoundsV1,
    Standing as StandingV1,
    StandingUse as StandingUseV1,
    Pin as PinV1,
}

/// A record has the fields of all kinds side by side. Older hosts also wrote fields that have no meaning for a kind.
/// They are read and dropped.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspensionV1 {
    #[serde(with = "field")]
    id: SuspensionId,
    #[serde(with = "field")]
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    responses: Option<Arc<[String]>>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    response: Option<Json>,
    #[serde(with = "field")]
    editable: Editable,
    #[serde(with = "field")]
    created_at: Timestamp,
    #[serde(with = "field")]
    expires_at: Timestamp,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    grace_until: Option<Timestamp>,
    #[serde(with = "field")]
    on_expiry: OnExpiry,
    #[serde(with = "field")]
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_doubt: Option<u32>,
    #[serde(default, skip_serializing_if = "AskedV1::is_plain")]
    asked: AskedV1,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    escalated_at: Option<Timestamp>,
    #[serde(with = "field", default, skip_serializing_if = "Vec::is_empty")]
    votes: Vec<Vote>,
    #[serde(with = "field", default, skip_serializing_if = "Vec::is_empty")]
    delegations: Vec<Delegation>,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(deny_unknown_fields)]
struct AskedV1 {
    #[serde(with = "field")]
    prompt_by: PromptBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_keys: Option<Arc<[String]>>,
    #[serde(with = "field", default, skip_serializing_if = "is_empty")]
    needs: Arc<[Need]>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    standing: Option<StandingBounds>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    policy_failed: bool,
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
        let Suspension { id, created_at, expires_at, digest, ask } = suspension;
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
            in_doubt: None,
            asked: AskedV1::default(),
            escalated_at: None,
            votes: Vec::new(),
            delegations: Vec::new(),
        };
        match ask.clone() {
            Ask::Approval(ApprovalRequest {
                asked,
                editable,
                on_expiry: _,
                in_doubt,
                standing,
                escalated_at,
                votes,
                delegations,
            }) => {
                let (prompt, asked) = stored(asked, standing);
                Self { prompt, asked, editable, in_doubt, escalated_at, votes, delegations, ..empty }
            }
            Ask::Elicitation(Elicitation { asked, responses, response, default: _, escalated_at }) => {
                let (prompt, asked) = stored(asked, None);
                Self { prompt, asked, responses, response, escalated_at, ..empty }
            }
            Ask::ClientExec(ClientExec { result, grace_until }) => Self { response: result, grace_until, ..empty },
        }
    }
}

impl From<SuspensionV1> for Suspension {
    fn from(record: SuspensionV1) -> Self {
        let SuspensionV1 { id, created_at, expires_at, digest, escalated_at, .. } = record;
        let (asked, standing) = asked(record.prompt, record.asked);
        let ask = match record.kind {
            Kind::Approval => Ask::Approval(ApprovalRequest {
                asked,
                editable: record.editable,
                on_expiry: match record.on_expiry {
                    OnExpiry::Deny => ApprovalTimeout::Deny,
                    OnExpiry::Approve => ApprovalTimeout::Approve,
                    OnExpiry::Error | OnExpiry::Answer(_) => ApprovalTimeout::Expire,
                },
                in_doubt: record.in_doubt,
                standing,
                escalated_at,
                votes: record.votes,
                delegations: record.delegations,
            }),
            Kind::Elicitation => {
                let default = match record.on_expiry {
                    OnExpiry::Answer(answer) => Some(answer),
                    OnExpiry::Error | OnExpiry::Deny | OnExpiry::Approve => None,
                };
                let (responses, response) = (record.responses, record.response);
                Ask::Elicitation(Elicitation { asked, responses, response, default, escalated_at })
            }
            Kind::ClientExec => {
                Ask::ClientExec(ClientExec { result: record.response, grace_until: record.grace_until })
            }
        };
        Self { id, created_at, expires_at, digest, ask }
    }
}

fn stored(asked: Asked, standing: Option<StandingBounds>) -> (Option<Arc<str>>, AskedV1) {
    let Asked { prompt, prompt_by, title, by, reason, risk, context_keys, needs, policy_failed } = asked;
    (prompt, AskedV1 { prompt_by, title, by, reason, risk, context_keys, needs, standing, policy_failed })
}

fn asked(prompt: Option<Arc<str>>, asked: AskedV1) -> (Asked, Option<StandingBounds>) {
    let AskedV1 { prompt_by, title, by, reason, risk, context_keys, needs, standing, policy_failed } = asked;
    (Asked { prompt, prompt_by, title, by, reason, risk, context_keys, needs, policy_failed }, standing)
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PromptBy", rename_all = "snake_case")]
enum PromptByV1 {
    Plugin,
    Host,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Risk", rename_all = "snake_case")]
enum RiskV1 {
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Need", deny_unknown_fields)]
struct NeedV1 {
    #[serde(with = "field")]
    who: Arc<[Who]>,
    quorum: u32,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    escalate: Option<Escalate>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Escalate", deny_unknown_fields)]
struct EscalateV1 {
    #[serde(with = "field")]
    after: Span,
    #[serde(with = "field")]
    to: Arc<[Who]>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Vote", deny_unknown_fields)]
struct VoteV1 {
    #[serde(with = "field")]
    by: PrincipalId,
    #[serde(with = "field")]
    binding: Digest,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Json>,
    needs: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    link: Option<LinkId>,
    #[serde(with = "field")]
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Delegation", deny_unknown_fields)]
struct DelegationV1 {
    #[serde(with = "field")]
    from: PrincipalId,
    #[serde(with = "field")]
    to: PrincipalId,
    needs: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    link: Option<LinkId>,
    #[serde(with = "field")]
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Link", deny_unknown_fields)]
struct LinkV1 {
    #[serde(with = "field")]
    id: LinkId,
    #[serde(with = "field")]
    to: PrincipalId,
    #[serde(with = "field")]
    by: PrincipalId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    webhook: Option<Arc<str>>,
    #[serde(with = "field")]
    expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StandingBounds", deny_unknown_fields)]
struct StandingBoundsV1 {
    #[serde(with = "field")]
    time: Span,
    uses: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Standing", deny_unknown_fields)]
struct StandingV1 {
    #[serde(with = "field")]
    id: StandingId,
    #[serde(with = "field")]
    expires_at: Timestamp,
    uses: u32,
    #[serde(with = "field")]
    pin: Pin,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Pin", rename_all = "snake_case")]
enum PinV1 {
    All,
    Fields(Arc<[String]>),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StandingUse", deny_unknown_fields)]
struct StandingUseV1 {
    #[serde(with = "field")]
    id: StandingId,
    #[serde(with = "field")]
    by: PrincipalId,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Kind", rename_all = "snake_case")]
enum KindV1 {
    Approval,
    Elicitation,
    ClientExec,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "OnExpiry", rename_all = "snake_case")]
enum OnExpiryV1 {
    Error,
    Deny,
    Answer(#[serde(with = "field")] Json),
    Approve,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Editable", rename_all = "snake_case")]
enum EditableV1 {
    Nothing,
    Fields(Arc<[String]>),
    All,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Resolution", deny_unknown_fields)]
struct ResolutionV1 {
    #[serde(with = "field")]
    decision: Decision,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    data: Option<Json>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    arguments: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    link: Option<LinkId>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Decision", rename_all = "snake_case")]
enum DecisionV1 {
    Approve,
    Deny,
    Answer(Arc<str>),
    Result,
    Error,
}
