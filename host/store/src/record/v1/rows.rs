//! Version 1 of what is beside the logs: rows of suspensions and standing approvals, changes of plugins, starts of
//! hosts.

use std::sync::Arc;

use dispatch::ports::SuspensionRow;
use domain::{
    CallIndex, ConversationId, Decision, Digest, Ended, HostStarted, Json, Kind, OwnerId, PluginChange, PluginEvent,
    PluginName, PrincipalId, Standing, StandingId, StandingRevoked, StandingRow, SuspensionId, SuspensionState,
    Timestamp, ToolName, TurnId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::described;
use crate::record::field::{self, Field};

described! {
    PluginEvent as PluginEventV1,
    HostStarted as HostStartedV1,
    PluginChange as PluginChangeV1,
    StandingRow as StandingRowV1,
    StandingRevoked as StandingRevokedV1,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Field for SuspensionRow {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, turn, call, conversation, caller, tool, kind, state } = self.clone();
        let state = stored(&state);
        SuspensionRowV1 { id, turn, call, conversation, caller, tool, kind, state }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SuspensionRowV1 { id, turn, call, conversation, caller, tool, kind, state } =
            SuspensionRowV1::deserialize(deserializer)?;
        let state = read(kind, &state);
        Ok(Self { id, turn, call, conversation, caller, tool, kind, state })
    }
}

/// The text of a state. A choice that has the name of another state is written as `answer`, so that an answered
/// question is not read as open. The log has the choice.
fn stored(state: &SuspensionState) -> String {
    match state {
        SuspensionState::Ended(Ended::Decided(Decision::Answer(choice)))
            if matches!(choice.as_ref(), "open" | "expired" | "withdrawn") =>
        {
            "answer".to_owned()
        }
        state => state.as_str().to_owned(),
    }
}

fn read(kind: Kind, text: &str) -> SuspensionState {
    match (text, kind) {
        ("open", _) => SuspensionState::Open,
        ("expired", _) => SuspensionState::Ended(Ended::Expired),
        ("withdrawn", _) => SuspensionState::Ended(Ended::Withdrawn),
        (choice, Kind::Elicitation) => SuspensionState::Ended(Ended::Decided(Decision::Answer(choice.into()))),
        (decision, Kind::Approval | Kind::ClientExec) => SuspensionState::Ended(Ended::Decided(decision.into())),
    }
}

/// A standing approval as it was given. Its uses and its revocation are stored beside it.
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
    #[serde(with = "field", rename = "ground")]
    fingerprint: Digest,
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
