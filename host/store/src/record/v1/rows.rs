//! Version 1 of what is beside the logs: the rows of suspensions, what became of plugins, the starts of hosts.

use std::sync::Arc;

use dispatch::ports::SuspensionRow;
use domain::{
    CallIndex, ConversationId, Digest, HostStarted, Json, Kind, OwnerId, PluginChange, PluginEvent, PluginName,
    PrincipalId, Standing, StandingId, StandingRevoked, StandingRow, SuspensionId, Timestamp, ToolName, TurnId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    SuspensionRow as SuspensionRowV1,
    PluginEvent as PluginEventV1,
    HostStarted as HostStartedV1,
    PluginChange as PluginChangeV1,
    StandingRow as StandingRowV1,
    StandingRevoked as StandingRevokedV1,
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

/// As it was given: how far it is used and whether it was taken back is kept beside it, and both are absent here.
#[derive(Serialize, Deserialize)]
#[serde(remote = "StandingRow", deny_unknown_fields)]
struct StandingRowV1 {
    #[serde(with = "field")]
    standing: Standing,
    #[serde(with = "field")]
    by: PrincipalId,
    #[serde(with = "field")]
    created_at: Timestamp,
    #[serde(with = "field")]
    suspension: SuspensionId,
    #[serde(with = "field")]
    conversation: ConversationId,
    #[serde(with = "field")]
    caller: PrincipalId,
    tool: Arc<str>,
    #[serde(with = "field")]
    plugin: PluginName,
    #[serde(with = "field")]
    component: Digest,
    #[serde(with = "field")]
    declaration: Digest,
    #[serde(with = "field")]
    ground: Digest,
    #[serde(with = "field")]
    arguments: Json,
    #[serde(skip)]
    used: u32,
    #[serde(skip)]
    revoked: Option<(PrincipalId, Timestamp)>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "StandingRevoked", deny_unknown_fields)]
struct StandingRevokedV1 {
    #[serde(with = "field")]
    id: StandingId,
    #[serde(with = "field")]
    by: PrincipalId,
    #[serde(with = "field")]
    at: Timestamp,
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
