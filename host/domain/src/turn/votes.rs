//! Approvals that take more than one person: votes, and handing a vote on. Everything ends in the one approval that
//! [`super::resolve`] commits.

use super::decide::Draft;
use super::{Context, Refusal, Resolve, Turn};
use crate::{
    Call, CallEvent, CallIndex, Delegation, Digest, Kind, Named, Principal, PrincipalId, Standing, StandingId,
    StandingTerms, Suspension, SuspensionId, Vote,
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
        link: answer.by.link,
        at: cx.now,
    };
    let of_others = suspension.votes.iter().filter(|earlier| earlier.by != vote.by);
    if suspension.missing(binding, of_others.chain([&vote])) == 0 {
        return Ok(Counted::Enough);
    }
    let is_known = |earlier: &Vote| earlier.by == vote.by && earlier.binding == binding && earlier.covers(&vote.needs);
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
    call: &Call,
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
        return Err(Refusal::NotAllowed(why_none_stands(call, suspension).into()));
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
    has_room(answer, terms, call, cx)?;
    Ok(Some(Standing {
        id: StandingId::from_bits((cx.mint)()),
        expires_at: cx.now + terms.time,
        uses: terms.uses,
        pin: terms.pin.clone(),
    }))
}

/// Whether the caller has room for one more that stands.
fn has_room(answer: &Resolve, terms: &StandingTerms, call: &Call, cx: &Context<'_>) -> Result<(), Refusal> {
    let (active, rules) = (answer.checked.standing, cx.rules);
    let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
    let bytes = active.bytes.saturating_add(arguments.size() + terms.pin.size());
    let full = if active.count >= rules.standing_active {
        format!(
            "{} standing approvals in use, and may have {} (approvals.standing_max_active)",
            active.count, rules.standing_active
        )
    } else if bytes > rules.standing_bytes {
        let most = rules.standing_bytes;
        format!(
            "standing approvals in use whose arguments would have {bytes} bytes, and may have {most} (approvals.standing_max_bytes)"
        )
    } else {
        return Ok(());
    };
    Err(Refusal::NotAllowed(format!("the caller has {full}: approve without one, or take others back")))
}

/// Whether an approval of a call may stand for later ones as far as the call itself goes: one person decides about it, and
/// what was asked for was asked by whoever had to be.
pub(super) fn can_stand(call: &Call, asked: &crate::Asked) -> bool {
    let one_decides = matches!(asked.needs.as_ref(), [] | [crate::Need { quorum: 1, .. }]);
    one_decides && call.pinned.as_ref().is_some_and(|pinned| pinned.may_be_covered(asked))
}

fn why_none_stands(call: &Call, suspension: &Suspension) -> &'static str {
    let asked = &suspension.asked;
    if suspension.in_doubt.is_some() {
        "whether this run is repeated says nothing of later calls"
    } else if asked.policy_failed {
        "a policy could not be asked about this call, so nobody knows what it would say of others: this approval covers this \
         call alone"
    } else if call.pinned.as_ref().is_some_and(|pinned| pinned.asks_again(asked)) {
        "the tool asks again after a kill, and a rule names who must answer then: they are asked about every call"
    } else if !can_stand(call, asked) {
        "an approval that takes several people cannot be allowed beforehand by one of them"
    } else {
        "an approval of this call cannot stand for later ones"
    }
}

impl Draft {
    pub(super) fn vote(&mut self, index: CallIndex, suspension: SuspensionId, vote: Box<Vote>) {
        self.record(index, CallEvent::Voted { suspension, vote });
    }

    /// Hands a principal's say in an approval on to one who has none in it.
    pub(super) fn delegate(
        &mut self,
        id: SuspensionId,
        by: &Principal,
        to: Named,
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
        // Before anything is said of the one who is named: who has no say learns nothing of others.
        let needs = suspension.counts_for(by).map_err(Refusal::NotAllowed)?;
        let name = to.id();
        if *name == self.turn.caller || *name == by.id || *name == PrincipalId::system() {
            return refused("it can be handed on to others, but neither to its caller nor to yourself");
        }
        let known = |handed: &Delegation| handed.to == *name || handed.from == *name;
        if suspension.delegations.iter().any(known) || suspension.votes.iter().any(|vote| vote.by == *name) {
            return refused("that principal has, had or handed on a say in this already");
        }
        if suspension.delegations.iter().any(|handed| handed.to == by.id) {
            return refused("what was handed on to you is yours to decide, and cannot be handed on again");
        }
        if suspension.needs().iter().any(|need| need.who.is_empty()) {
            return refused("every approver may answer this already");
        }
        let to = match to {
            Named::Somebody(to) => to,
            Named::Nobody(name) => {
                let message = format!("nobody here is called {name}");
                return Err(Refusal::Invalid(vec![crate::Violation { pointer: "/to".into(), message }]));
            }
        };
        takes_over(&to, suspension, &needs, &self.turn, cx)?;
        let delegation = Delegation { from: by.id.clone(), to: to.id, needs, comment, link: by.link, at: cx.now };
        self.record(index, CallEvent::Delegated { suspension: id, delegation: Box::new(delegation) });
        Ok(())
    }
}

/// Whether a say in these needs can be handed to a principal: one who could use it, and has none of their own. Who has one by a
/// group or a role keeps that and would get no second, so what is handed to them would be lost.
fn takes_over(
    to: &Principal,
    suspension: &Suspension,
    needs: &[u16],
    turn: &Turn,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    let refused = |why: &str| Err(Refusal::NotAllowed(why.into()));
    if super::resolve::may(to, suspension, turn, cx).is_err() {
        return refused("that principal answers no approvals of this conversation: it needs the role approver");
    }
    if suspension.counts_for(to).is_ok() {
        return refused("that principal has a say in this already");
    }
    let with_time = (0..).zip(suspension.needs()).filter(|(_, need)| need.fits(to, true));
    let with_time: Vec<u16> = with_time.map(|(position, _)| position).collect();
    if !with_time.is_empty() && with_time != needs {
        return refused("that principal gets a say of their own in this by escalation, and could not use yours then");
    }
    Ok(())
}
