//! Version 1 of what is stored of a wait: the question, and the answer to it.

use std::sync::Arc;

use domain::{Decision, Digest, Editable, Json, Kind, OnExpiry, Resolution, Suspension, SuspensionId, Timestamp};
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
