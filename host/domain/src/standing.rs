//! Standing approvals: what an approver allows beforehand for later calls that are like the one in question.

use std::fmt;
use std::sync::Arc;

use crate::{ConversationId, Digest, Json, PluginName, PrincipalId, Span, StandingId, SuspensionId, Timestamp};

/// Which arguments of a later call must be those that were approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// All of them.
    All,
    /// These, as JSON Pointers (RFC 6901) into the arguments; at least one. The others are free.
    Fields(Arc<[String]>),
}

impl Pin {
    /// How many bytes it names the arguments with.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::All => 0,
            Self::Fields(pointers) => pointers.iter().map(String::len).sum(),
        }
    }
}

/// What a caller has of standing approvals that can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StandingActive {
    /// How many.
    pub count: u32,
    /// How many bytes their arguments and pins have.
    pub bytes: usize,
}

/// The most that an approver may allow beforehand, as the operator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingBounds {
    /// For how long.
    pub time: Span,
    /// How often.
    pub uses: u32,
}

/// What an approver allows beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingTerms {
    /// For how long from now on.
    pub time: Span,
    /// How often.
    pub uses: u32,
    /// For which arguments.
    pub pin: Pin,
}

/// That an approval is to stand for later calls: made with the approval, in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its id.
    pub id: StandingId,
    /// Until when.
    pub expires_at: Timestamp,
    /// How often.
    pub uses: u32,
    /// For which arguments.
    pub pin: Pin,
}

/// A standing approval as it is kept: all that decides whether it covers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRow {
    /// Its terms.
    pub standing: Standing,
    /// Who gave it.
    pub by: PrincipalId,
    /// When.
    pub created_at: Timestamp,
    /// With the answer to which suspension.
    pub suspension: SuspensionId,
    /// In which conversation that was. It counts in the others of the caller as well.
    pub conversation: ConversationId,
    /// For whose calls.
    pub caller: PrincipalId,
    /// Of which tool.
    pub tool: Arc<str>,
    /// Of which plugin.
    pub plugin: PluginName,
    /// Of which component: not of the next version.
    pub component: Digest,
    /// As it was declared.
    pub declaration: Digest,
    /// Digest over why the call had to be approved: which rules and policies asked, why, with which risk, and what they need.
    /// Where another asks, or one asks for another reason, the approval does not stand.
    pub fingerprint: Digest,
    /// The arguments that were approved.
    pub arguments: Json,
    /// How often it was used.
    pub used: u32,
    /// Who took it back, and when.
    pub revoked: Option<(PrincipalId, Timestamp)>,
}

/// Whether a standing approval can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StandingState {
    /// It can.
    Active,
    /// It was used as often as it allows.
    UsedUp,
    /// Its time is over.
    Expired,
    /// Somebody took it back.
    Revoked,
}

impl StandingState {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::UsedUp => "used_up",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl fmt::Display for StandingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl StandingRow {
    /// How many bytes its arguments and its pin have: all of it that has no bound of its own.
    #[must_use]
    pub fn size(&self) -> usize {
        self.arguments.size() + self.standing.pin.size()
    }

    /// Whether it can still be used.
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

/// That a standing approval lets a call go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingUse {
    /// Which.
    pub id: StandingId,
    /// Who gave it.
    pub by: PrincipalId,
}

/// A fact about a standing approval that belongs to no turn: somebody took it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingRevoked {
    /// Which.
    pub id: StandingId,
    /// Who.
    pub by: PrincipalId,
    /// When.
    pub at: Timestamp,
}
