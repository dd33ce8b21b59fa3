//! Standing approvals: approvals of later calls that are similar to the current one.

use std::sync::Arc;

use crate::{ConversationId, Digest, Json, PluginName, PrincipalId, Span, StandingId, SuspensionId, Timestamp};

/// The arguments of a later call that must equal the approved ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    All,
    /// JSON Pointers (RFC 6901) into the arguments, at least one. Other arguments may differ.
    Fields(Arc<[String]>),
}

impl Pin {
    /// The size of its pointers in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Fields(pointers) => pointers.iter().map(String::len).sum(),
        }
    }
}

/// The active standing approvals of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StandingActive {
    pub count: u32,
    /// The size of their arguments and pins.
    pub bytes: usize,
}

/// The operator's limits for standing approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingBounds {
    pub time: Span,
    pub uses: u32,
}

/// The terms of a standing approval, as an approver requests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingTerms {
    pub time: Span,
    pub uses: u32,
    pub pin: Pin,
}

/// A standing approval. The commit of the approval creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub id: StandingId,
    pub expires_at: Timestamp,
    pub uses: u32,
    pub pin: Pin,
}

/// A stored standing approval, with everything that decides whether it covers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRow {
    pub standing: Standing,
    /// The principal who gave the approval.
    pub by: PrincipalId,
    pub created_at: Timestamp,
    /// The suspension that was answered with it.
    pub suspension: SuspensionId,
    /// The conversation of that suspension. It also covers calls in the caller's other conversations.
    pub conversation: ConversationId,
    pub caller: PrincipalId,
    pub tool: Arc<str>,
    pub plugin: PluginName,
    /// It does not cover calls of another version.
    pub component: Digest,
    pub declaration: Digest,
    /// The approval fingerprint. It covers only calls with the same one.
    pub fingerprint: Digest,
    /// The approved arguments.
    pub arguments: Json,
    pub used: u32,
    /// Who revoked it, and when.
    pub revoked: Option<(PrincipalId, Timestamp)>,
}

crate::names! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum StandingState {
        Active = "active",
        /// It has no uses left.
        UsedUp = "used_up",
        Expired = "expired",
        Revoked = "revoked",
    }
}

impl StandingRow {
    /// The size of its arguments and its pin in bytes. Its other fields are small.
    #[must_use]
    pub fn size(&self) -> usize {
        self.arguments.size() + self.standing.pin.size()
    }

    #[must_use]
    pub fn state(&self, now: Timestamp) -> StandingState {
        if self.revoked.is_some() {
            StandingState::Revoked
        } else if self.used >= self.standing.uses {
            StandingState::UsedUp
        } else if self.standing.expires_at <= now {
            StandingState::Expired
        } else {
            StandingState::Active
        }
    }
}

/// A use of a standing approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingUse {
    pub id: StandingId,
    /// The principal who gave the approval.
    pub by: PrincipalId,
}

/// A standing approval was revoked. This event belongs to no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRevoked {
    pub id: StandingId,
    pub by: PrincipalId,
    pub at: Timestamp,
}
