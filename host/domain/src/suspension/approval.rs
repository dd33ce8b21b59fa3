//! An approval that a call waits for, and the votes for it.

use super::Asked;
use crate::{
    Digest, PrincipalId, Timestamp,
    approvers::{Delegation, Need, Vote},
    doubt::Doubt,
    standing::StandingBounds,
    tool::Editable,
};

/// A call that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub asked: Asked,
    /// Which arguments an approver may change.
    pub editable: Editable,
    pub on_expiry: ApprovalExpiry,
    /// The doubt that a kill left, if the question is about it.
    pub doubt: Option<Doubt>,
    /// The bounds of a standing approval. `None`: this approval cannot cover later calls.
    pub standing: Option<StandingBounds>,
    /// When the host last recorded an escalation.
    pub escalated_at: Option<Timestamp>,
    /// The approvals so far, one for each principal, if several are needed.
    pub votes: Vec<Vote>,
    pub delegations: Vec<Delegation>,
}

/// The end of a call whose approval expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalExpiry {
    /// The call ends as `expired`.
    Expire,
    /// The call ends as `denied`.
    Deny,
    /// The host approves the call, if the policy still allows that.
    Approve,
}

impl ApprovalRequest {
    /// A request without votes that expires without effect.
    #[must_use]
    pub const fn new(asked: Asked) -> Self {
        Self {
            asked,
            editable: Editable::Nothing,
            on_expiry: ApprovalExpiry::Expire,
            doubt: None,
            standing: None,
            escalated_at: None,
            votes: Vec::new(),
            delegations: Vec::new(),
        }
    }

    /// Whether its expiry approves the call, unless the policy has become stricter meanwhile.
    #[must_use]
    pub fn timeout_approves(&self) -> bool {
        self.on_expiry == ApprovalExpiry::Approve && self.doubt.is_none()
    }

    /// Whether this principal has voted, or takes part in a delegation.
    #[must_use]
    pub fn involves(&self, principal: &PrincipalId) -> bool {
        let is_part = |delegated: &Delegation| delegated.from == *principal || delegated.to == *principal;
        self.votes.iter().any(|vote| vote.by == *principal) || self.delegations.iter().any(is_part)
    }

    /// Who has voted or takes part in a delegation, and since when.
    pub fn authorities(&self) -> impl Iterator<Item = (&PrincipalId, Timestamp)> {
        let votes = self.votes.iter().map(|vote| (&vote.by, vote.at));
        let delegations = self.delegations.iter();
        votes.chain(delegations.flat_map(|delegated| [&delegated.from, &delegated.to].map(|id| (id, delegated.at))))
    }

    /// Removes the votes and delegations of a principal, and the vote of a delegate who used its authority.
    pub(crate) fn revoke(&mut self, principal: &PrincipalId) {
        let delegates = self.delegations.iter().filter(|delegated| delegated.from == *principal);
        let delegates: Vec<PrincipalId> = delegates.map(|delegated| delegated.to.clone()).collect();
        self.votes.retain(|vote| vote.by != *principal && !delegates.contains(&vote.by));
        self.delegations.retain(|delegated| delegated.from != *principal && delegated.to != *principal);
    }

    /// How many approvals of `binding` are missing if these are all votes.
    #[must_use]
    pub fn missing<'a>(&self, binding: Digest, votes: impl Iterator<Item = &'a Vote> + Clone) -> u32 {
        let given = |position: u16| {
            votes.clone().filter(move |vote| vote.binding == binding && vote.needs.contains(&position)).count()
        };
        let missing = |(position, need): (u16, &Need)| {
            need.quorum.max(1).saturating_sub(u32::try_from(given(position)).unwrap_or(u32::MAX))
        };
        (0..).zip(self.asked.needs()).map(missing).max().unwrap_or(0)
    }
}
