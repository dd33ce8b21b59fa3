//! Approvals that several people give: votes and delegations. They lead to the one approval that [`super::resolve`]
//! commits.

use super::decide::Draft;
use super::{CheckedAnswer, Context, Turn};
use crate::{
    Call, CallIndex, Digest, Principal, PrincipalId, Refusal, Standing, StandingId, Suspension, SuspensionId,
    approvers::{Delegation, Vote},
    event::CallEvent,
    principal::Named,
    refusal::{NoDelegation, NoStanding, NotAllowed},
    standing::StandingTerms,
    suspension::{ApprovalRequest, Decision},
};

/// The effect of an approval.
pub(super) enum Counted {
    /// It was the last missing one.
    Enough,
    /// Others have to approve too.
    Open(Box<Vote>),
}

/// Counts an approval of `binding`.
pub(super) fn count(
    answer: &CheckedAnswer,
    (suspension, approval): (&Suspension, &ApprovalRequest),
    binding: Digest,
    cx: &Context<'_>,
) -> Result<Counted, Refusal> {
    let needs = suspension.counts_for(&answer.by)?;
    let vote = Vote {
        by: answer.by.id.clone(),
        binding,
        arguments: answer.arguments.clone(),
        needs,
        comment: answer.comment.clone(),
        link: answer.by.link,
        channel: Some(answer.by.channel),
        at: cx.now,
    };
    let of_others = approval.votes.iter().filter(|earlier| earlier.by != vote.by);
    if approval.missing(binding, of_others.chain([&vote])) == 0 {
        return Ok(Counted::Enough);
    }
    let is_known = |earlier: &Vote| earlier.by == vote.by && earlier.binding == binding && earlier.covers(&vote.needs);
    if approval.votes.iter().any(is_known) {
        return Err(Refusal::Replayed);
    }
    if answer.standing.is_some() {
        return Err(NotAllowed::from(NoStanding::SeveralApprovers).into());
    }
    Ok(Counted::Open(Box::new(vote)))
}

/// The standing approval of an answer, within the operator's bounds.
pub(super) fn standing(
    answer: &CheckedAnswer,
    decision: &Decision,
    call: &Call,
    suspension: &Suspension,
    cx: &mut Context<'_>,
) -> Result<Option<Standing>, Refusal> {
    let Some(terms) = &answer.standing else { return Ok(None) };
    let wrong = |pointer: &str, message: String| {
        Refusal::Invalid(vec![crate::Violation { pointer: format!("/standing{pointer}"), message }])
    };
    let approval = suspension.approval().filter(|_| *decision == Decision::Approve);
    let approval = approval.ok_or_else(|| wrong("", "only an approval can cover later calls".into()))?;
    let refused = |why: NoStanding| Refusal::from(NotAllowed::from(why));
    let bounds = approval.standing.ok_or_else(|| refused(why_no_standing(call, approval)))?;
    suspension.may_give_standing(&answer.by).map_err(refused)?;
    if terms.uses == 0 || terms.uses > bounds.uses {
        return Err(wrong("/uses", format!("1 to {} uses are possible", bounds.uses)));
    }
    if terms.time == crate::Span::ZERO || terms.time > bounds.time {
        return Err(wrong("/ttl_ms", format!("1 to {} milliseconds are possible", bounds.time.millis())));
    }
    if !answer.checked.pin.is_empty() {
        return Err(Refusal::Invalid(answer.checked.pin.clone()));
    }
    has_room(answer, terms, call, cx).map_err(refused)?;
    Ok(Some(Standing {
        id: StandingId::from_bits((cx.mint)()),
        expires_at: cx.now + terms.time,
        uses: terms.uses,
        pin: terms.pin.clone(),
    }))
}

/// Whether the caller may have one more standing approval.
fn has_room(answer: &CheckedAnswer, terms: &StandingTerms, call: &Call, cx: &Context<'_>) -> Result<(), NoStanding> {
    let (active, settings) = (answer.checked.standing, cx.settings);
    let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
    let bytes = active.bytes.saturating_add(arguments.size() + terms.pin.size());
    if active.count >= settings.standing_active {
        return Err(NoStanding::TooMany { active: active.count, max: settings.standing_active });
    }
    if bytes > settings.standing_bytes {
        return Err(NoStanding::TooLarge { bytes, max: settings.standing_bytes });
    }
    Ok(())
}

fn why_no_standing(call: &Call, approval: &ApprovalRequest) -> NoStanding {
    let asked = &approval.asked;
    if approval.doubt.is_some() {
        NoStanding::InDoubt
    } else if asked.policy_failed {
        NoStanding::PolicyFailed
    } else if call.pinned.as_ref().is_some_and(|pinned| pinned.asks_again(asked)) {
        NoStanding::AskedAgain
    } else if !call.may_have_standing(asked) {
        NoStanding::SeveralApprovers
    } else {
        NoStanding::Never
    }
}

impl Draft {
    pub(super) fn vote(&mut self, index: CallIndex, suspension: SuspensionId, vote: Box<Vote>) {
        self.record(index, CallEvent::Voted { suspension, vote });
    }

    /// Ends the authority of principals in the approvals that are open.
    pub(super) fn revoke(&mut self, principals: &[PrincipalId], cx: &Context<'_>) {
        let involved = |(index, _, open): (CallIndex, &Call, &Suspension)| {
            let approval = open.approval().into_iter();
            let of = approval.flat_map(|approval| principals.iter().filter(|id| approval.involves(id)));
            of.map(|id| (index, open.id, id.clone())).collect::<Vec<_>>()
        };
        let revoked: Vec<_> = self.turn.pending().flat_map(involved).collect();
        for (index, suspension, principal) in revoked {
            self.record(index, CallEvent::AuthorityRevoked { suspension, principal, at: cx.now });
        }
    }

    /// Delegates a principal's authority to one who has none here.
    pub(super) fn delegate(
        &mut self,
        id: SuspensionId,
        by: &Principal,
        to: Named,
        comment: Option<String>,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let (index, _, suspension, closed) = self.turn.suspension(id).ok_or(Refusal::Unknown)?;
        self.turn.may_answer(by, suspension, cx.settings)?;
        suspension.is_open(closed, cx.now)?;
        let refused = |why: NoDelegation| Refusal::from(NotAllowed::from(why));
        let approval = suspension.approval().ok_or_else(|| refused(NoDelegation::NotAnApproval))?;
        // Checked before anything is said about the other: a principal without authority learns nothing about others.
        let needs = suspension.may_pass_on(by)?;
        may_delegate(by, to.id(), approval, &self.turn.caller).map_err(refused)?;
        let to = match to {
            Named::Somebody(to) => to,
            Named::Nobody(name) => {
                let message = format!("nobody here is called {name}");
                return Err(Refusal::Invalid(vec![crate::Violation { pointer: "/to".into(), message }]));
            }
        };
        takes_over(&to, suspension, &needs, &self.turn, cx).map_err(refused)?;
        let delegation = Delegation {
            from: by.id.clone(),
            to: to.id,
            needs,
            comment,
            link: by.link,
            channel: Some(by.channel),
            at: cx.now,
        };
        self.record(index, CallEvent::Delegated { suspension: id, delegation: Box::new(delegation) });
        Ok(())
    }
}

/// Whether a principal may delegate its authority to a principal of this name.
fn may_delegate(
    by: &Principal,
    name: &PrincipalId,
    approval: &ApprovalRequest,
    caller: &PrincipalId,
) -> Result<(), NoDelegation> {
    if name == caller || *name == by.id || *name == PrincipalId::system() {
        return Err(NoDelegation::ToCallerOrSelf);
    }
    let is_part = |delegated: &Delegation| delegated.to == *name || delegated.from == *name;
    if approval.delegations.iter().any(is_part) || approval.votes.iter().any(|vote| vote.by == *name) {
        return Err(NoDelegation::Involved);
    }
    approval.may_delegate(by)
}

/// Whether a principal can use authority for these needs, and has none of its own. A principal with its own authority
/// gets no second one, so a delegation to it would be lost.
fn takes_over(
    to: &Principal,
    suspension: &Suspension,
    needs: &[u16],
    turn: &Turn,
    cx: &Context<'_>,
) -> Result<(), NoDelegation> {
    if turn.may_answer(to, suspension, cx.settings).is_err() {
        return Err(NoDelegation::CannotAnswer);
    }
    // Through which channel it will answer is not known yet.
    if suspension.authority_of(to).is_ok() {
        return Err(NoDelegation::HasAuthority);
    }
    let by_escalation = (0..).zip(suspension.needs()).filter(|(_, need)| need.names(to, true));
    let by_escalation: Vec<u16> = by_escalation.map(|(position, _)| position).collect();
    if !by_escalation.is_empty() && by_escalation != needs {
        return Err(NoDelegation::Escalation);
    }
    Ok(())
}
