//! Version 1 of what is beside the logs: rows of suspensions and standing approvals, changes of plugins, starts of
//! hosts.

use std::sync::Arc;

use dispatch::ports::SuspensionRow;
use domain::{
    CallIndex, ConversationId, Digest, Json, OwnerId, PluginName, PrincipalId, SignalName, Standing, StandingId,
    SuspensionId, Timestamp, ToolName, TurnId,
    event::{HostStarted, PluginChange, PluginEvent},
    standing::{StandingRevoked, StandingRow},
    suspension::{Decision, SuspensionEnd, SuspensionKind, SuspensionState},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records;
use crate::record::field::{self, Field};

records! {
    form SuspensionRowV1 {
        id: SuspensionId,
        turn: TurnId,
        call: CallIndex,
        conversation: ConversationId,
        caller: PrincipalId,
        tool: String,
        kind: SuspensionKind,
        state: String,
        ended_by: Vec<PrincipalId> = "Vec::is_empty",
        signal: Option<SignalName> = "Option::is_none",
    }
}

impl Field for SuspensionRow {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, turn, call, conversation, caller, tool, kind, state, ended_by, signal } = self.clone();
        let state = stored_state(&state).to_owned();
        SuspensionRowV1 { id, turn, call, conversation, caller, tool, kind, state, ended_by, signal }
            .serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SuspensionRowV1 { id, turn, call, conversation, caller, tool, kind, state, ended_by, signal } =
            SuspensionRowV1::deserialize(deserializer)?;
        let state = read(kind, &state);
        Ok(Self { id, turn, call, conversation, caller, tool, kind, state, ended_by, signal })
    }
}

/// The text of a state. A choice that has the name of another state is written as `answer`, so that an answered
/// question is not read as open. The log has the choice.
pub(crate) fn stored_state(state: &SuspensionState) -> &str {
    match state {
        SuspensionState::Ended(SuspensionEnd::Decided(Decision::Answer(choice)))
            if SuspensionState::RESERVED.contains(&choice.as_ref()) =>
        {
            "answer"
        }
        state => state.as_str(),
    }
}

fn read(kind: SuspensionKind, text: &str) -> SuspensionState {
    match (SuspensionState::from(text), kind) {
        // A choice may have the name of another decision.
        (SuspensionState::Ended(SuspensionEnd::Decided(_)), SuspensionKind::Elicitation) => {
            SuspensionState::Ended(SuspensionEnd::Decided(Decision::Answer(text.into())))
        }
        (state, _) => state,
    }
}

records! {
    /// A standing approval as it was given. Its uses and its revocation are stored beside it.
    struct StandingRow "StandingRow" {
        standing: Standing,
        by: PrincipalId,
        created_at: Timestamp,
        suspension: SuspensionId,
        conversation: ConversationId,
        caller: PrincipalId,
        tool: Arc<str>,
        plugin: PluginName,
        component: Digest,
        declaration: Digest,
        #[serde(rename = "ground")]
        fingerprint: Digest,
        arguments: Json,
        #[serde(skip)]
        used: u32,
        #[serde(skip)]
        revoked: Option<(PrincipalId, Timestamp)>,
    }

    struct StandingRevoked "StandingRevoked" {
        id: StandingId,
        by: PrincipalId,
        at: Timestamp,
    }

    struct PluginEvent "PluginEvent" {
        plugin: PluginName,
        component: Digest,
        change: PluginChange,
        at: Timestamp,
        by: Option<PrincipalId> = "Option::is_none",
        grants: Vec<String> = "Vec::is_empty",
    }

    struct HostStarted "HostStarted" {
        owner: OwnerId,
        version: String,
        grants: Vec<String> = "Vec::is_empty",
        added: Vec<String> = "Vec::is_empty",
        removed: Vec<String> = "Vec::is_empty",
        at: Timestamp,
    }

    enum PluginChange "PluginChange" { Loaded { tools: Vec<ToolName> }, Rejected { findings: Vec<String> }, Unloaded }
}
