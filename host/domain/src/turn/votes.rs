//! Approvals that take more than one person: votes, and handing a vote on. Everything ends in the one approval that
//! [`super::resolve`] commits.

use super::decide::Draft;
use super::{Context, Refusal, Resolve};
use crate::{
    CallIndex, Delegation, Digest, Event, Kind, Principal, PrincipalId, Standing, StandingId, Suspension, SuspensionId,
    Vote,
};

/// What an approval amounts to.
pub(super) enum Counted {
    /// It was the last that was missing.
    Enough,
    /// Others have to approve as well.
    Open(Box<Vote>),
}

/// Counts an approval of what `binding` stands for.
pub(super) fn count(
    answer: &Resolve,
    suspension: &Suspension,
    binding: Digest,
    cx: &Context<'_>,
) -> Result<Counted, Refusal> {
    let needs = suspension.counts_for(&answer.by).map_err(Refusal::NotAllowed)?;
    let vote = Vote {
        by: answer.by.id.clone(),
        binding,
        arguments: answer.arguments.clone(),
        needs,
        comment: answer.comment.clone(),
        at: cx.now,
    };
    let of_others = suspension.votes.iter().filter(|earlier| earlier.by != vote.by);
    if suspension.missing(binding, of_others.chain([&vote])) == 0 {
        return Ok(Counted::Enough);
    }
    let is_known = |earlier: &Vote| earlier.by == vote.by && earlier.binding == binding;
    if suspension.votes.iter().any(is_known) {
        return Err(Refusal::Replayed);
    }
    if answer.standing.is_some() {
        return Err(Refusal::NotAllowed(
            "an approval that takes several people cannot be allowed beforehand by one of them".into(),
        ));
    }
    Ok(Counted::Open(Box::new(vote)))
}

/// What an approver allows beforehand, checked against what the operator lets them.
pub(super) fn standing(
    answer: &Resolve,
    suspension: &Suspension,
    cx: &mut Context<'_>,
) -> Result<Option<Standing>, Refusal> {
    let Some(terms) = &answer.standing else { return Ok(None) };
    let wrong = |pointer: &str, message: String| {
        Refusal::Invalid(vec![crate::Violation { pointer: format!("/standing{pointer}"), message }])
    };
    if answer.decision != "approve" {
        return Err(wrong("", "only an approval can stand for later calls".into()));
    }
    let Some(bounds) = suspension.asked.standing else {
        return Err(Refusal::NotAllowed("an approval of this call cannot stand for later ones".into()));
    };
    if answer.by.conversation.is_some() {
        return Err(Refusal::NotAllowed("one who sees a single conversation allows nothing beyond it".into()));
    }
    if !suspension.needs().iter().any(|need| need.fits(&answer.by, false)) {
        return Err(Refusal::NotAllowed("a say that was handed on, or came with time, covers this call alone".into()));
    }
    if terms.uses == 0 || terms.uses > bounds.uses {
        return Err(wrong("/uses", format!("1 to {} uses are possible", bounds.uses)));
    }
    if terms.time == crate::Span::ZERO || terms.time > bounds.time {
        return Err(wrong("/ttl_ms", format!("1 to {} milliseconds are possible", bounds.time.millis())));
    }
    if !answer.checked.pin.is_empty() {
        return Err(Refusal::Invalid(answer.checked.pin.clone()));
    }
    Ok(Some(Standing {
        id: StandingId::from_bits((cx.mint)()),
        expires_at: cx.now + terms.time,
        uses: terms.uses,
        pin: terms.pin.clone(),
    }))
}

impl Draft {
    pub(super) fn vote(&mut self, index: CallIndex, suspension: SuspensionId, vote: Box<Vote>) {
        self.push(Event::CallVoted { call: index, suspension, vote });
    }

    /// Hands a principal's say in an approval on to one who has none in it.
    pub(super) fn delegate(
        &mut self,
        id: SuspensionId,
        by: &Principal,
        to: PrincipalId,
        comment: Option<String>,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let unknown = || Refusal::Stale { state: "unknown".into(), by: None, at: None };
        let (index, _, suspension, closed) = self.turn.suspension(id).ok_or_else(unknown)?;
        super::resolve::may(by, suspension, &self.turn, cx)?;
        super::resolve::is_open(suspension, closed, cx)?;
        let refused = |why: &str| Err(Refusal::NotAllowed(why.into()));
        if suspension.kind != Kind::Approval {
            return refused("only an approval can be handed on");
        }
        if to == self.turn.caller || to == by.id || to == PrincipalId::system() {
            return refused("it can be handed on to others, but neither to its caller nor to yourself");
        }
        let known = |handed: &Delegation| handed.to == to || handed.from == to;
        if suspension.delegations.iter().any(known) || suspension.votes.iter().any(|vote| vote.by == to) {
            return refused("that principal has, had or handed on a say in this already");
        }
        if suspension.delegations.iter().any(|handed| handed.to == by.id) {
            return refused("what was handed on to you is yours to decide, and cannot be handed on again");
        }
        let named = crate::Who::Principal(to.clone());
        if suspension.needs().iter().any(|need| need.who.contains(&named)) {
            return refused("that principal has a say in this already");
        }
        if suspension.needs().iter().any(|need| need.who.is_empty()) {
            return refused("every approver may answer this already");
        }
        let needs = suspension.counts_for(by).map_err(Refusal::NotAllowed)?;
        let delegation = Delegation { from: by.id.clone(), to, needs, comment, at: cx.now };
        self.push(Event::SuspensionDelegated { call: index, suspension: id, delegation: Box::new(delegation) });
        Ok(())
    }
}
