//! Authority: who may answer a suspension, and which needs the answer counts for.

use crate::{
    Principal, PrincipalId, Suspension,
    approvers::Need,
    principal::{Channel, Channels, Role},
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
            SuspensionKind::Approval if self.channel == Channel::McpForm => {
                Err(NotAllowed::OtherChannel { used: self.channel, counts: Channels::OF_APPROVALS })
            }
            // The client of the caller asks its own user.
            SuspensionKind::Elicitation
                if self.channel == Channel::McpForm && self.id == *caller && has(Role::Caller) =>
            {
                Ok(())
            }
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
            SuspensionKind::Nested => Err(NotAllowed::Nested),
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
    /// that somebody delegated to it, without those that demand another channel.
    ///
    /// # Errors
    /// Its answer counts for nothing here.
    pub fn counts_for(&self, by: &Principal) -> Result<Vec<u16>, NotAllowed> {
        let needs = self.authority_of(by)?;
        self.through(by.channel, &needs).ok_or_else(|| {
            let counts = |channel: &Channel| self.through(*channel, &needs).is_some();
            NotAllowed::OtherChannel { used: by.channel, counts: Channel::ALL.into_iter().filter(counts).collect() }
        })
    }

    /// Those of the needs for which an answer through this channel counts. `None`: it counts for nothing.
    fn through(&self, channel: Channel, needs: &[u16]) -> Option<Vec<u16>> {
        let counts = |position: &u16| {
            self.needs().get(usize::from(*position)).is_none_or(|need: &Need| need.via.counts(channel))
        };
        let counted: Vec<u16> = needs.iter().copied().filter(counts).collect();
        let is_enough = match self.kind() {
            SuspensionKind::Approval => Channels::OF_APPROVALS.counts(channel) && !counted.is_empty(),
            _ => counted.len() == needs.len(),
        };
        is_enough.then_some(counted)
    }

    /// The positions of the needs over which this principal has authority, if it answers through a channel that counts.
    ///
    /// # Errors
    /// It has no authority here.
    pub fn authority_of(&self, by: &Principal) -> Result<Vec<u16>, NotAllowed> {
        let is_named = |(position, need): (u16, &Need)| need.names(by, self.has_escalated(need)).then_some(position);
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

    /// The positions of the needs over which this principal may delegate its authority. It gives up all of it, so all of it
    /// must count through its channel.
    ///
    /// # Errors
    /// As [`Suspension::counts_for`].
    pub(crate) fn may_pass_on(&self, by: &Principal) -> Result<Vec<u16>, NotAllowed> {
        let needs = self.authority_of(by)?;
        let through_all = |channel: Channel| self.through(channel, &needs).is_some_and(|counted| counted == needs);
        if through_all(by.channel) {
            return Ok(needs);
        }
        let counts = Channel::ALL.into_iter().filter(|channel| through_all(*channel)).collect();
        Err(NotAllowed::OtherChannel { used: by.channel, counts })
    }

    /// Whether this principal has authority here that it can delegate to somebody.
    #[must_use]
    pub fn may_delegate(&self, by: &Principal) -> bool {
        self.may_pass_on(by).is_ok() && self.approval().is_some_and(|approval| approval.may_delegate(by).is_ok())
    }

    /// Whether this voter's authority has grown since the vote.
    #[must_use]
    pub fn counts_again(&self, by: &Principal) -> bool {
        let Some(vote) = self.votes().iter().find(|vote| vote.by == by.id) else { return false };
        self.counts_for(by).is_ok_and(|needs| !vote.covers(&needs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suspension::{Asked, Elicitation};
    use crate::{Digest, SuspensionId, Timestamp};

    const ANY: &[Channel] = &[];

    fn principal(name: &str, role: Role, channel: Channel) -> Principal {
        Principal { channel, ..Principal::new(name.parse().unwrap(), [role]) }
    }

    fn need(who: &str, via: &[Channel]) -> Need {
        let who = who.split_whitespace().map(|who| who.parse().unwrap()).collect();
        Need { who, quorum: 1, escalate: None, via: via.iter().copied().collect() }
    }

    fn suspension(body: SuspensionBody) -> Suspension {
        let (id, created_at) = (SuspensionId::from_bits(1), Timestamp::from_millis(0));
        let (expires_at, digest) = (Timestamp::from_millis(9_000), Digest::of("binding"));
        Suspension { id, created_at, expires_at, digest, step: None, body }
    }

    fn question(needs: &[Need]) -> Suspension {
        let asked = Asked { needs: needs.into(), ..Asked::default() };
        suspension(SuspensionBody::Elicitation(Elicitation { asked, ..Elicitation::default() }))
    }

    fn approval(needs: &[Need]) -> Suspension {
        let asked = Asked { needs: needs.into(), ..Asked::default() };
        suspension(SuspensionBody::Approval(ApprovalRequest::new(asked)))
    }

    /// A form lets a caller answer its own question. It gives nobody more, and no approval comes through it.
    #[test]
    fn a_form_answers_only_questions_of_its_own_caller() {
        let agent: PrincipalId = "agent".parse().unwrap();
        for kind in [SuspensionKind::Approval, SuspensionKind::Elicitation] {
            for role in Role::ALL {
                for name in ["agent", "other"] {
                    for channel in Channel::ALL {
                        for own_calls in [false, true] {
                            let by = principal(name, role, channel);
                            let is_own = name == "agent";
                            let is_approver = matches!(role, Role::Approver | Role::Admin);
                            let is_caller = matches!(role, Role::Caller | Role::Admin);
                            let as_approver = is_approver && (!is_own || own_calls);
                            let expected = match (channel, kind) {
                                (Channel::McpForm, SuspensionKind::Approval) => false,
                                (Channel::McpForm, _) => as_approver || is_own && is_caller,
                                _ => as_approver,
                            };
                            let may = by.may_answer(kind, &agent, own_calls);
                            assert_eq!(may.is_ok(), expected, "{kind:?} {by:?} {own_calls}");
                            if channel == Channel::McpForm && kind == SuspensionKind::Approval {
                                let counts = Channels::OF_APPROVALS;
                                assert_eq!(may, Err(NotAllowed::OtherChannel { used: channel, counts }));
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_answer_counts_through_the_channels_of_all_its_needs() {
        use Channel::{Api, Console, Link, McpForm};
        let ann = |via| need("principal:ann", via);
        let others = || Err("you are not among the approvers that the operator's rule names");
        let to_console = "answer it in the console: the operator's rule does not count answers through the API";
        let to_link =
            "answer it in the console or with a link: the operator's rule does not count answers through the API";
        let no_form = "answer it in the console: answers in a form of an MCP client do not count here";
        let never = "the operator's rules demand different channels, so no answer counts; cancel the turn, or ask the \
                     operator to change a rule";
        for (needs, channel, expected) in [
            (vec![], Api, Ok(vec![0])),
            (vec![], McpForm, Ok(vec![0])),
            (vec![ann(ANY)], McpForm, Ok(vec![0])),
            (vec![need("principal:ben", ANY)], McpForm, others()),
            (vec![need("role:approver", ANY)], McpForm, others()),
            (vec![ann(&[McpForm])], McpForm, Ok(vec![0])),
            (vec![ann(&[Console])], McpForm, Err(no_form)),
            (vec![need("", &[Console])], McpForm, Err(no_form)),
            (vec![ann(&[Console])], Console, Ok(vec![0])),
            (vec![ann(&[Console])], Api, Err(to_console)),
            (vec![ann(&[Console, Link])], Api, Err(to_link)),
            (vec![ann(&[Console, Link]), need("", ANY)], Link, Ok(vec![0, 1])),
            (vec![ann(&[Console, Link]), need("", ANY)], Api, Err(to_link)),
            (vec![ann(&[Console, Link]), need("", &[Console, Api])], Api, Err(to_console)),
            (vec![ann(&[Console]), need("", &[Api])], Api, Err(never)),
            (vec![need("principal:ben", &[Console])], Api, others()),
        ] {
            let by = principal("ann", Role::Caller, channel);
            let counts = question(&needs).counts_for(&by).map_err(|refused| refused.to_string());
            assert_eq!(counts, expected.map_err(str::to_owned), "{needs:?} {channel:?}");
        }
    }

    #[test]
    fn an_approval_counts_for_the_needs_of_its_channel() {
        use Channel::{Api, Console, Link, McpForm};
        let needs = [need("principal:ann", &[Console, McpForm]), need("", ANY), need("principal:ben", ANY)];
        let of = |name, channel| {
            let by = principal(name, Role::Approver, channel);
            approval(&needs).counts_for(&by).map_err(|refused| refused.to_string())
        };
        assert_eq!(of("ann", Console), Ok(vec![0, 1]));
        assert_eq!(of("ann", Api), Ok(vec![1]));
        assert_eq!(of("ben", Link), Ok(vec![1, 2]));
        let no_form = "answer it in the console, through the API or with a link: answers in a form of an MCP client do not \
                       count here";
        assert_eq!(of("ann", McpForm), Err(no_form.to_owned()));
        // A delegation gives all authority away, so all of it must count through the channel.
        let only = approval(&needs);
        assert_eq!(only.may_pass_on(&principal("ann", Role::Approver, Console)), Ok(vec![0, 1]));
        let counts = [Console].into_iter().collect();
        let refused = NotAllowed::OtherChannel { used: Api, counts };
        assert_eq!(only.may_pass_on(&principal("ann", Role::Approver, Api)), Err(refused));
        assert!(only.may_give_standing(&principal("ann", Role::Approver, Console)).is_ok());
        let one = approval(&[need("principal:ann", &[Console])]);
        assert!(one.may_give_standing(&principal("ann", Role::Approver, Api)).is_err());
        assert!(one.authority_of(&principal("ann", Role::Approver, Api)).is_ok());
    }
}
