//! Version 1 of what is stored of a wait: the question, and the answer to it.

use std::sync::Arc;

use domain::{
    Asked, Decision, Delegation, Digest, Editable, Escalate, Json, Kind, Link, LinkId, Need, OnExpiry, Pin,
    PrincipalId, PromptBy, Resolution, Risk, Span, Standing, StandingBounds, StandingId, StandingUse, Suspension,
    SuspensionId, Timestamp, Vote, Who,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    Suspension as SuspensionV1,
    Kind as KindV1,
    OnExpiry as OnExpiryV1,
    Editable as EditableV1,
    Resolution as ResolutionV1,
    Decision as DecisionV1,
    Asked as AskedV1,
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

#[derive(Serialize, Deserialize)]
#[serde(remote = "Suspension", deny_unknown_fields)]
struct SuspensionV1 {
    #[serde(with = "field")]
    id: SuspensionId,
    #[serde(with = "field")]
    kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
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
    #[serde(with = "field", default, skip_serializing_if = "Asked::is_plain")]
    asked: Asked,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    escalated_at: Option<Timestamp>,
    #[serde(with = "field", default, skip_serializing_if = "Vec::is_empty")]
    votes: Vec<Vote>,
    #[serde(with = "field", default, skip_serializing_if = "Vec::is_empty")]
    delegations: Vec<Delegation>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Asked", deny_unknown_fields)]
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
    #[serde(with = "field", default = "none", skip_serializing_if = "is_empty")]
    needs: Arc<[Need]>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    standing: Option<StandingBounds>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    policy_failed: bool,
}

fn none() -> Arc<[Need]> {
    Arc::new([])
}

fn is_empty(needs: &Arc<[Need]>) -> bool {
    needs.is_empty()
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
