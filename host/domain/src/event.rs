//! Every fact that is ever stored. The order of a turn's events is the order in which they became true.

mod call;

pub use call::CallEvent;

use crate::{
    CallIndex, ConversationId, Digest, Json, OwnerId, PluginName, PrincipalId, Rejection, Timestamp, ToolName, TurnId,
};

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnEnd {
    /// Every call has its outcome; the results go to the model.
    Settled,
    /// A denial ended it, as the turn asked; the model is not called.
    Aborted,
    /// Somebody cancelled it.
    Cancelled,
}

impl TurnEnd {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Aborted => "aborted",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A fact about a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A caller submitted a turn.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Where it belongs.
        conversation: ConversationId,
        /// Who submitted it.
        caller: PrincipalId,
        /// What a denial does to its siblings.
        rejection: Rejection,
        /// What the caller passed along for tools and people: a JSON object.
        context: Option<Json>,
        /// When.
        at: Timestamp,
    },
    /// Something happened to one of its calls.
    Call {
        /// The position of the call. The first call has the position 0.
        call: CallIndex,
        /// What happened.
        event: CallEvent,
    },
    /// Somebody cancelled the turn. Its calls' outcomes follow in the same commit.
    TurnCancelled {
        /// Who.
        by: PrincipalId,
        /// When.
        at: Timestamp,
    },
    /// Every call has its outcome.
    TurnSettled {
        /// How.
        end: TurnEnd,
        /// When.
        at: Timestamp,
    },
}

impl Event {
    /// The public name; `None` for what is stored only for the host's own use.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::TurnStarted { .. } => "turn.started",
            Self::Call { event, .. } => return event.name(),
            Self::TurnCancelled { .. } => "turn.cancelled",
            Self::TurnSettled { .. } => "turn.settled",
        })
    }
}

/// A fact about a plugin. These belong to the host, not to a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginEvent {
    /// The plugin.
    pub plugin: PluginName,
    /// The digest of the component that was found.
    pub component: Digest,
    /// What became of it.
    pub change: PluginChange,
    /// When.
    pub at: Timestamp,
    /// Who did it; `None` for what changed in the folder, which is nobody's doing that the host knows.
    pub by: Option<PrincipalId>,
    /// What it may use, or might have if it was refused: granted to it and wanted by it, one grant each, in words for people.
    pub grants: Vec<String>,
}

/// What became of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginChange {
    /// Its tools are live, in the place of whatever was live under the name.
    Loaded {
        /// The tools' names.
        tools: Vec<ToolName>,
    },
    /// It was refused; what was live under the name still is.
    Rejected {
        /// Every finding, as a sentence.
        findings: Vec<String>,
    },
    /// It is no longer live. Calls that wait for it still are.
    Unloaded,
}

/// A host began to run on its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStarted {
    /// This run of it: what the starts of calls name as their owner.
    pub owner: OwnerId,
    /// The version of the program.
    pub version: String,
    /// What the configuration grants, one grant of one plugin each.
    pub grants: Vec<String>,
    /// Those that the start before did not have.
    pub added: Vec<String>,
    /// Those that only the start before had.
    pub removed: Vec<String>,
    /// When.
    pub at: Timestamp,
}

impl PluginChange {
    /// The public name of the event.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Loaded { .. } => "plugin.loaded",
            Self::Rejected { .. } => "plugin.rejected",
            Self::Unloaded => "plugin.unloaded",
        }
    }
}
