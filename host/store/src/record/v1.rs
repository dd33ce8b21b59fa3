//! Version 1 of the stored form, type by type. Each definition mirrors one type of the domain and the compiler compares
//! the two, so that a field cannot be forgotten; what is absent or false is left out of the text.
//!
//! Unknown members are refused: inside one version they can only be damage, or a release that broke its promise.

mod delivery;
mod event;
mod rows;
mod suspension;

use std::sync::Arc;

use domain::{
    Approval, CallIndex, Digest, Executor, Failure, FailureCode, Json, Outcome, OwnerId, Pinned, PluginName, Receipt,
    Recovery, Rejection, Running, Span, Timestamp, TurnEnd, Wait,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::field::{self, Field};

/// Makes a type of the domain a field, written as a definition says.
macro_rules! described {
    ($($type:ty as $definition:ident),* $(,)?) => {$(
        impl Field for $type {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $definition::serialize(self, serializer)
            }

            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $definition::deserialize(deserializer)
            }
        }
    )*};
}

use described;

described! {
    CallIndex as CallIndexV1,
    Rejection as RejectionV1,
    TurnEnd as TurnEndV1,
    Pinned as PinnedV1,
    Wait as WaitV1,
    Executor as ExecutorV1,
    Approval as ApprovalV1,
    Recovery as RecoveryV1,
    Running as RunningV1,
    Outcome as OutcomeV1,
    Failure as FailureV1,
    Receipt as ReceiptV1,
    FailureCode as FailureCodeV1,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallIndex")]
struct CallIndexV1(u16);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rejection", rename_all = "snake_case")]
enum RejectionV1 {
    ContinueSiblings,
    CancelSiblings,
    AbortTurn,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TurnEnd", rename_all = "snake_case")]
enum TurnEndV1 {
    Settled,
    Aborted,
    Cancelled,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Pinned", deny_unknown_fields)]
struct PinnedV1 {
    #[serde(with = "field")]
    plugin: PluginName,
    #[serde(with = "field")]
    component: Digest,
    #[serde(with = "field")]
    declaration: Digest,
    #[serde(with = "field")]
    executor: Executor,
    #[serde(with = "field")]
    approval: Approval,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    streaming: bool,
    #[serde(with = "field")]
    timeout: Span,
    #[serde(with = "field")]
    recovery: Recovery,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    wait: Option<Wait>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Wait", deny_unknown_fields)]
struct WaitV1 {
    #[serde(with = "field")]
    expires: Span,
    #[serde(with = "field")]
    on_expiry: domain::OnExpiry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    responses: Option<Arc<[String]>>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    response: Option<Json>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(with = "field")]
    editable: domain::Editable,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Executor", rename_all = "kebab-case")]
enum ExecutorV1 {
    Server,
    Human,
    Client,
    Provider,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Approval", rename_all = "kebab-case")]
enum ApprovalV1 {
    Auto,
    RequiresApproval,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Recovery", rename_all = "kebab-case")]
enum RecoveryV1 {
    Retry,
    Ask,
    Fail,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Running", deny_unknown_fields)]
struct RunningV1 {
    attempt: u32,
    #[serde(with = "field")]
    owner: OwnerId,
    #[serde(with = "field")]
    lease_end: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", rename_all = "snake_case", deny_unknown_fields)]
enum OutcomeV1 {
    Ok {
        #[serde(with = "field")]
        value: Json,
        trusted: bool,
    },
    Failed(#[serde(with = "field")] Failure),
    Denied(Option<String>),
    Expired,
    Cancelled,
    CancelledBySibling,
    Unavailable,
    Invalidated,
    InDoubt,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Receipt", deny_unknown_fields)]
struct ReceiptV1 {
    micros: u64,
    peak_memory: u64,
    peak_host_bytes: u64,
    host_calls: u64,
    bytes_in: u64,
    bytes_out: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Failure", deny_unknown_fields)]
struct FailureV1 {
    #[serde(with = "field")]
    code: FailureCode,
    message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FailureCode", rename_all = "snake_case")]
enum FailureCodeV1 {
    UnknownTool,
    InvalidArguments,
    ToolFailed,
    ToolUnavailable,
    Trapped,
    OutOfTime,
    OutOfMemory,
    LimitExceeded,
    InvalidResult,
    Busy,
    HostFault,
}
