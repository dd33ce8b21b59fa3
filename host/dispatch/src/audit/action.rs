//! The actions of the audit.

use std::str::FromStr;

/// The action of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A caller submitted a turn.
    TurnStarted,
    /// The submission has this call.
    CallRequested,
    /// A person approved it, or `system` granted a timeout approval.
    Approve,
    /// A person approved it, and others have to as well.
    Vote,
    /// A person delegated their authority.
    Delegate,
    /// A principal was revoked, so its votes and delegations no longer count.
    AuthorityRevoke,
    /// Nobody answered it in time, so others may answer as well.
    Escalate,
    /// An admin or a webhook made a link to it.
    LinkMade,
    /// A link to it was used.
    LinkUsed,
    /// A standing approval let it continue.
    StandingUse,
    /// A standing approval was revoked.
    StandingRevoke,
    /// A person denied it. `system` denied it if a rule, a timeout or the denial of an identical call did. Each denied call
    /// has one such entry.
    Deny,
    /// A person answered a question.
    Answer,
    /// A client gave a result.
    Result,
    /// A client reported a failure.
    Error,
    /// Nobody answered in time.
    Expired,
    /// The host began to run it.
    CallStarted,
    CallSettled,
    Cancel,
    /// Every call of the turn has ended.
    TurnSettled,
    PluginLoaded,
    PluginRejected,
    /// A plugin is no longer live.
    PluginUnloaded,
    /// A host began to run.
    HostStarted,
    /// It has other grants than the host before it.
    GrantsChanged,
    /// Retention removed the contents of a turn.
    TurnRemoved,
    /// The record of a commit is damaged, so its entries are missing. The time of this entry is unknown, and 0.
    RecordUnreadable,
    /// `toolgate store salvage` made this store from a damaged one. The comment says what is lost.
    StoreSalvaged,
}

impl Action {
    /// Every action with its name in JSON.
    pub const ALL: [(Self, &'static str); 28] = [
        (Self::TurnStarted, "turn.started"),
        (Self::CallRequested, "call.requested"),
        (Self::Approve, "approve"),
        (Self::Vote, "vote"),
        (Self::Delegate, "delegate"),
        (Self::AuthorityRevoke, "authority.revoke"),
        (Self::Escalate, "escalate"),
        (Self::LinkMade, "link.made"),
        (Self::LinkUsed, "link.used"),
        (Self::StandingUse, "standing.use"),
        (Self::StandingRevoke, "standing.revoke"),
        (Self::Deny, "deny"),
        (Self::Answer, "answer"),
        (Self::Result, "result"),
        (Self::Error, "error"),
        (Self::Expired, "expired"),
        (Self::CallStarted, "call.started"),
        (Self::CallSettled, "call.settled"),
        (Self::Cancel, "cancel"),
        (Self::TurnSettled, "turn.settled"),
        (Self::PluginLoaded, "plugin.loaded"),
        (Self::PluginRejected, "plugin.rejected"),
        (Self::PluginUnloaded, "plugin.unloaded"),
        (Self::HostStarted, "host.started"),
        (Self::GrantsChanged, "grants.changed"),
        (Self::TurnRemoved, "turn.removed"),
        (Self::RecordUnreadable, "record.unreadable"),
        (Self::StoreSalvaged, "store.salvaged"),
    ];

    /// Whether it is about a link, and not about an action of a principal who used one.
    #[must_use]
    pub const fn is_of_link(self) -> bool {
        matches!(self, Self::LinkMade | Self::LinkUsed)
    }

    /// Whether its subject is a plugin.
    pub(super) const fn is_of_plugin(self) -> bool {
        matches!(self, Self::PluginLoaded | Self::PluginRejected | Self::PluginUnloaded)
    }

    /// The name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(action, _)| *action == self).map_or("unknown", |(_, name)| name)
    }
}

/// A text that names no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown audit action: expected one of {}", Action::ALL.map(|(_, name)| name).join(", "))]
pub struct UnknownAction;

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(text: &str) -> Result<Self, UnknownAction> {
        Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(action, _)| action).ok_or(UnknownAction)
    }
}
