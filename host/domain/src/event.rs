//! Every fact that is ever stored. The order of a turn's events is the order in which they became true.

use std::sync::Arc;

use crate::{
    CallId, CallIndex, ConversationId, Delegation, Digest, Json, Link, LinkId, Outcome, OwnerId, Pinned, PluginName,
    PrincipalId, Receipt, Rejection, Resolution, Running, StandingUse, Suspension, SuspensionId, Timestamp, ToolName,
    TurnId, Vote,
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
    /// One of its calls.
    CallRequested {
        /// Its position; the first is 0, and positions follow each other.
        call: CallIndex,
        /// The caller's id.
        id: CallId,
        /// The tool as it was asked for.
        tool: Arc<str>,
        /// The arguments as submitted.
        arguments: Json,
        /// What it is pinned to; `None` where it ends at once.
        pinned: Option<Arc<Pinned>>,
        /// The operator's rule or policy that decided about it, where one did.
        ruled_by: Option<Arc<str>>,
    },
    /// A standing approval lets a gated call go on. Nobody was asked.
    CallApproved {
        /// Which call.
        call: CallIndex,
        /// By which approval, and who gave it.
        standing: StandingUse,
        /// The binding that is approved with it.
        approved: Digest,
        /// When.
        at: Timestamp,
    },
    /// Somebody approved, and others have to as well.
    CallVoted {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// The vote.
        vote: Box<Vote>,
    },
    /// Somebody handed their say on.
    SuspensionDelegated {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// From whom to whom.
        delegation: Box<Delegation>,
    },
    /// A link to it was made, or made again to count for longer.
    LinkMade {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// The link.
        link: Box<Link>,
        /// When.
        at: Timestamp,
    },
    /// A link to it was used.
    LinkUsed {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// Which link.
        link: LinkId,
        /// In whose name.
        by: PrincipalId,
        /// When.
        at: Timestamp,
    },
    /// Others may answer from now on as well.
    SuspensionEscalated {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// When.
        at: Timestamp,
    },
    /// A call waits.
    CallSuspended {
        /// Which.
        call: CallIndex,
        /// For what.
        suspension: Box<Suspension>,
    },
    /// The time until which a client must attach was changed.
    ClientAwaited {
        /// Which call.
        call: CallIndex,
        /// Until when; `None` once a client has attached.
        grace_until: Option<Timestamp>,
    },
    /// Somebody answered.
    CallResolved {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// What was answered.
        resolution: Box<Resolution>,
        /// The binding that was approved, where it was an approval.
        approved: Option<Digest>,
        /// Who answered.
        by: PrincipalId,
        /// When.
        at: Timestamp,
    },
    /// Nobody answered in time. What follows from it is the next event of the call.
    SuspensionExpired {
        /// Which call.
        call: CallIndex,
        /// Which of its suspensions.
        suspension: SuspensionId,
        /// The binding that the expiry approved, where the operator allows that.
        approved: Option<Digest>,
        /// When.
        at: Timestamp,
    },
    /// A host is about to run the guest.
    CallStarted {
        /// Which call.
        call: CallIndex,
        /// Which attempt, by whom, until when.
        running: Running,
        /// When.
        at: Timestamp,
    },
    /// The host that runs it still does.
    LeaseExtended {
        /// Which call.
        call: CallIndex,
        /// Until when it counts as running.
        lease_end: Timestamp,
    },
    /// A call ended. A suspension of it that is open is withdrawn with it.
    CallSettled {
        /// Which.
        call: CallIndex,
        /// How.
        outcome: Outcome,
        /// What its guest spent; `None` where none ran to its end.
        receipt: Option<Receipt>,
        /// When.
        at: Timestamp,
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
            Self::CallRequested { .. } => "call.requested",
            Self::CallSuspended { .. } => "call.suspended",
            Self::CallApproved { .. } => "call.approved",
            Self::CallVoted { .. } => "call.voted",
            Self::CallResolved { .. } => "call.resolved",
            Self::SuspensionDelegated { .. } => "suspension.delegated",
            Self::SuspensionEscalated { .. } => "suspension.escalated",
            Self::SuspensionExpired { .. } => "suspension.expired",
            Self::CallStarted { .. } => "call.started",
            Self::CallSettled { .. } => "call.settled",
            Self::TurnCancelled { .. } => "turn.cancelled",
            Self::TurnSettled { .. } => "turn.settled",
            Self::ClientAwaited { .. } | Self::LinkMade { .. } | Self::LinkUsed { .. } | Self::LeaseExtended { .. } => {
                return None;
            }
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
