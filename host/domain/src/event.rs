//! Events: the facts that are stored. A turn's events are in the order in which they happened.

mod call;

pub use call::CallEvent;

use crate::{
    CallIndex, ConversationId, Digest, Json, OwnerId, PluginName, PrincipalId, Timestamp, ToolName, TurnId,
    nested::Parent,
};

crate::names! {
    /// The effect of a denial on the other calls of the turn.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub enum Rejection {
        /// They continue, and the model sees every result.
        #[default]
        ContinueSiblings = "continue_siblings",
        /// They end `cancelled_by_sibling`, and the model sees that.
        CancelSiblings = "cancel_siblings",
        /// They end `cancelled_by_sibling` and the turn ends `aborted`. The model is not called.
        AbortTurn = "abort_turn",
    }
}

/// The way a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnEnd {
    /// Every call has its outcome. The results go to the model.
    Settled,
    /// A denial ended it, as the turn asked. The model is not called.
    Aborted,
    /// Somebody cancelled it.
    Cancelled,
}

/// A fact about a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A caller submitted a turn.
    TurnStarted {
        turn: TurnId,
        conversation: ConversationId,
        caller: PrincipalId,
        rejection: Rejection,
        /// The caller's context for tools and people: a JSON object.
        context: Option<Json>,
        /// The call that submitted it. `None`: a caller did.
        parent: Option<Box<Parent>>,
        at: Timestamp,
    },
    /// Something happened to one of its calls.
    Call {
        /// The position of the call. The first call has the position 0.
        call: CallIndex,
        event: CallEvent,
    },
    /// Somebody cancelled the turn. Its calls' outcomes follow in the same commit.
    TurnCancelled { by: PrincipalId, at: Timestamp },
    /// Every call has its outcome.
    TurnSettled { end: TurnEnd, at: Timestamp },
}

/// A change of a plugin. It belongs to the host, not to a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginEvent {
    pub plugin: PluginName,
    pub component: Digest,
    pub change: PluginChange,
    pub at: Timestamp,
    /// `None` for a change in the folder. The host does not know who made it.
    pub by: Option<PrincipalId>,
    /// The access that it was granted and requested, one sentence each. It is recorded for refused components too.
    pub grants: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginChange {
    /// Its tools are live. They replace those of the component that was live under this name.
    Loaded { tools: Vec<ToolName> },
    /// It was refused. The component that was live under this name stays live.
    Rejected {
        /// One sentence each.
        findings: Vec<String>,
    },
    /// It is no longer live. Waiting calls keep it.
    Unloaded,
}

/// A host began to run on its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStarted {
    /// This run of the host. The calls that it starts name it as their owner.
    pub owner: OwnerId,
    pub version: String,
    /// The grants of the configuration, one for each plugin and capability.
    pub grants: Vec<String>,
    /// Grants that the previous start did not have.
    pub added: Vec<String>,
    /// Grants that only the previous start had.
    pub removed: Vec<String>,
    pub at: Timestamp,
}
