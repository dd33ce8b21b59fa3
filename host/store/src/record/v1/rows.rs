//! Version 1 of the rows beside the logs: suspensions, the audit, and what became of plugins.

use dispatch::ports::{AuditEntry, SuspensionRow};
use domain::{
    CallId, CallIndex, ConversationId, Digest, Json, Kind, PluginChange, PluginEvent, PluginName, PrincipalId,
    SuspensionId, Timestamp, ToolName, TurnId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    SuspensionRow as SuspensionRowV1,
    AuditEntry as AuditEntryV1,
    PluginEvent as PluginEventV1,
    PluginChange as PluginChangeV1,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SuspensionRow", deny_unknown_fields)]
struct SuspensionRowV1 {
    #[serde(with = "field")]
    id: SuspensionId,
    #[serde(with = "field")]
    turn: TurnId,
    #[serde(with = "field")]
    call: CallIndex,
    #[serde(with = "field")]
    conversation: ConversationId,
    #[serde(with = "field")]
    caller: PrincipalId,
    tool: String,
    #[serde(with = "field")]
    kind: Kind,
    state: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AuditEntry", deny_unknown_fields)]
struct AuditEntryV1 {
    #[serde(with = "field")]
    at: Timestamp,
    #[serde(with = "field")]
    by: PrincipalId,
    action: String,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    suspension: Option<SuspensionId>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    edited: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PluginEvent", deny_unknown_fields)]
struct PluginEventV1 {
    #[serde(with = "field")]
    plugin: PluginName,
    #[serde(with = "field")]
    component: Digest,
    #[serde(with = "field")]
    change: PluginChange,
    #[serde(with = "field")]
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PluginChange", rename_all = "snake_case", deny_unknown_fields)]
enum PluginChangeV1 {
    Loaded {
        #[serde(with = "field")]
        tools: Vec<ToolName>,
    },
    Rejected {
        findings: Vec<String>,
    },
    Unloaded,
}
