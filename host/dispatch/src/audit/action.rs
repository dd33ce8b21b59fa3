//! The actions of the audit.

use std::str::FromStr;

domain::names! {
    /// The action of an entry.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Action {
        /// A caller submitted a turn.
        TurnStarted = "turn.started",
        /// The submission has this call.
        CallRequested = "call.requested",
        /// A person approved it, or `system` granted a timeout approval.
        Approve = "approve",
        /// A person approved it, and others have to as well.
        Vote = "vote",
        /// A person delegated their authority.
        Delegate = "delegate",
        /// A principal was revoked, so its votes and delegations no longer count.
        AuthorityRevoke = "authority.revoke",
        /// Nobody answered it in time, so others may answer as well.
        Escalate = "escalate",
        /// An admin or a webhook made a link to it.
        LinkMade = "link.made",
        /// A link to it was used.
        LinkUsed = "link.used",
        /// A standing approval let it continue.
        StandingUse = "standing.use",
        /// A standing approval was revoked.
        StandingRevoke = "standing.revoke",
        /// A person denied it. `system` denied it if a rule, a timeout or the denial of an identical call did. Each denied call
        /// and each denied step has one such entry.
        Deny = "deny",
        /// A person answered a question.
        Answer = "answer",
        /// A client gave a result.
        Result = "result",
        /// A client reported a failure.
        Error = "error",
        /// Nobody answered in time.
        Expired = "expired",
        /// The host began to run it.
        CallStarted = "call.started",
        /// A step of its code ended, and the host began to run it again.
        CallResumed = "call.resumed",
        CallSettled = "call.settled",
        Cancel = "cancel",
        /// Every call of the turn has ended.
        TurnSettled = "turn.settled",
        PluginLoaded = "plugin.loaded",
        PluginRejected = "plugin.rejected",
        /// A plugin is no longer live.
        PluginUnloaded = "plugin.unloaded",
        /// A host began to run.
        HostStarted = "host.started",
        /// It has other grants than the host before it.
        GrantsChanged = "grants.changed",
        /// Retention removed the contents of a turn.
        TurnRemoved = "turn.removed",
        /// The record of a commit is damaged, so its entries are missing. The time of this entry is unknown, and 0.
        RecordUnreadable = "record.unreadable",
        /// `toolgate store salvage` made this store from a damaged one. The comment says what is lost.
        StoreSalvaged = "store.salvaged",
    }
}

impl Action {
    /// Whether its subject is a plugin.
    pub(super) const fn is_of_plugin(self) -> bool {
        matches!(self, Self::PluginLoaded | Self::PluginRejected | Self::PluginUnloaded)
    }
}

/// A text that names no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown audit action: expected one of {}", Action::NAMES.join(", "))]
pub struct UnknownAction;

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::named(text).ok_or(UnknownAction)
    }
}
