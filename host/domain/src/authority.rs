//! Authority: who may answer a suspension, and which needs the answer counts for.

use crate::{
    Principal, PrincipalId, Suspension,
    approvers::Need,
    principal::Role,
    refusal::{NoDelegation, NoStanding, NotAllowed},
    suspension::{ApprovalRequest, SuspensionBody, SuspensionKind},
};

impl Principal {
    /// Whether it may answer suspensions of this kind for calls of `caller`.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_answer(&self, kind: SuspensionKind, caller: &PrincipalId, own_calls: bool) -> Result<(), NotAllowed> {
        let has = |role| self.roles.has(role) || self.roles.has(Role::Admin);
        match kind {
            SuspensionKind::ClientExec if !has(Role::Client) => Err(NotAllowed::NotClient),
            SuspensionKind::ClientExec => Ok(()),
            SuspensionKind::Approval | SuspensionKind::Elicitation if !has(Role::Approver) => {
                Err(NotAllowed::NotApprover)
            }
            SuspensionKind::Approval | SuspensionKind::Elicitation if self.id == *caller && !own_calls => {
                Err(NotAllowed::OwnCall)
            }
            SuspensionKind::Approval | SuspensionKind::Elicitation => Ok(()),
            // Who holds its link may answer it. The edge lets a link be used for its own suspension only.
            SuspensionKind::External if self.link.is_some() || self.roles.has(Role::Admin) => Ok(()),
            SuspensionKind::External if self.id == *caller && self.roles.has(Role::Caller) => Ok(()),
            SuspensionKind::External => Err(NotAllowed::NotCaller),
            SuspensionKind::Children => Err(NotAllowed::Children),
            SuspensionKind::Timer | SuspensionKind::RateLimit => Err(NotAllowed::Timer),
        }
    }
}

impl ApprovalRequest {
    /// Whether a principal with authority can delegate it to anybody.
    pub(crate) fn may_delegate(&self, by: &Principal) -> Result<(), NoDelegation> {
        if self.delegations.iter().any(|delegated| delegated.to == by.id) {
            return Err(NoDelegation::Twice);
        }
        if self.asked.needs().iter().any(|need| need.who.is_empty()) {
            return Err(NoDelegation::Everybody);
        }
        Ok(())
    }
}

impl Suspension {
    /// The positions of the needs that an answer of this principal counts for: those that name the principal, or those
    /// that somebody delegated to it.
    ///
    /// # Errors
    /// Its answer counts for nothing here.
    pub fn counts_for(&self, by: &Principal) -> Result<Vec<u16>, NotAllowed> {
        let is_named = |(position, need): (u16, &Need)| need.fits(by, self.has_escalated(need)).then_some(position);
        let mut needs: Vec<u16> = (0..).zip(self.needs()).filter_map(is_named).collect();
        let is_enough = match &self.body {
            SuspensionBody::ClientExec(_) | SuspensionBody::External(_) => true,
            SuspensionBody::Nested(_) | SuspensionBody::Timer | SuspensionBody::RateLimit => false,
            // One principal answers a question, and must meet all needs.
            SuspensionBody::Elicitation(_) => needs.len() == self.needs().len(),
            // An approval needs all, and each approver meets some.
            SuspensionBody::Approval(approval) => {
                if let Some(delegated) = approval.delegations.iter().find(|delegated| delegated.from == by.id) {
                    return Err(NotAllowed::Delegated(delegated.to.clone()));
                }
                // A principal with its own authority gets no second one. So two people stay two.
                if needs.is_empty() {
                    let delegated = approval.delegations.iter().find(|delegated| delegated.to == by.id);
                    needs.extend(delegated.into_iter().flat_map(|delegated| &delegated.needs));
                }
                !needs.is_empty()
            }
        };
        if is_enough { Ok(needs) } else { Err(NotAllowed::OthersAnswer) }
    }

    /// Whether this principal may let its approval cover later calls.
    ///
    /// # Errors
    /// Why it may not.
    pub fn may_give_standing(&self, by: &Principal) -> Result<(), NoStanding> {
        if by.link.is_some() {
            return Err(NoStanding::ByLink);
        }
        if by.conversation.is_some() {
            return Err(NoStanding::OneConversation);
        }
        // Authority from a delegation or an escalation is not enough.
        if !self.needs().iter().any(|need| need.fits(by, false)) {
            return Err(NoStanding::BorrowedAuthority);
        }
        Ok(())
    }

    /// Whether this principal has authority here that it can delegate to somebody.
    #[must_use]
    pub fn may_delegate(&self, by: &Principal) -> bool {
        self.counts_for(by).is_ok() && self.approval().is_some_and(|approval| approval.may_delegate(by).is_ok())
    }

    /// Whether this voter's authority has grown since the vote.
    #[must_use]
    pub fn counts_again(&self, by: &Principal) -> bool {
        let Some(vote) = self.votes().iter().find(|vote| vote.by == by.id) else { return false };
        self.counts_for(by).is_ok_and(|needs| !vote.covers(&needs))
    }
}
