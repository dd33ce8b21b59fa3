//! Version 1 of what is beside the logs: the rows of suspensions, what became of plugins, the starts of hosts.

use dispatch::ports::SuspensionRow;
use domain::{
    CallIndex, ConversationId, Digest, HostStarted, Kind, OwnerId, PluginChange, PluginEvent, PluginName, PrincipalId,
    SuspensionId, Timestamp, ToolName, TurnId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    SuspensionRow as SuspensionRowV1,
    PluginEvent as PluginEventV1,
    HostStarted as HostStartedV1,
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
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    by: Option<PrincipalId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HostStarted", deny_unknown_fields)]
struct HostStartedV1 {
    #[serde(with = "field")]
    owner: OwnerId,
    version: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    added: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
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
