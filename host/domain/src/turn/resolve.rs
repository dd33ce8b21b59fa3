//! Answers to suspensions. The checks have one order: known, allowed for this principal, open, same digest, decision
//! allowed, data fits, edited arguments fit and pass the policy. A failed check changes nothing.

use super::decide::Draft;
use super::votes::{self, Counted};
use super::{CheckedAnswer, Context};
use crate::{
    Call, CallIndex, Digest, Json, Outcome, PrincipalId, Refusal, Standing, Suspension, Timestamp, Violation,
    approvers::Need,
    doubt::value_of,
    event::CallEvent,
    gate::RuleEffect,
    outcome::{Failure, FailureCode},
    principal::Channel,
    refusal::NotAllowed,
    suspension::{Closed, Decision, Resolution, SuspensionBody, SuspensionEnd},
    tool::Executor,
};

impl Draft {
    pub(super) fn resolve(&mut self, answer: CheckedAnswer, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let Some((index, call, suspension, closed)) = self.turn.suspension(answer.suspension) else {
            return Err(Refusal::Unknown);
        };
        may_answer(&answer, suspension, self, cx)?;
        still_open(&answer, suspension, closed, cx)?;
        if answer.expect_digest.is_some_and(|expected| expected != suspension.digest) {
            return Err(Refusal::DigestMismatch { actual: suspension.digest });
        }
        let decision = suspension.accepts(&answer.decision).ok_or_else(|| {
            let allowed = suspension.allowed();
            let allowed: Vec<&str> = allowed.iter().map(Decision::as_str).collect();
            let (given, allowed) = (answer.decision.as_str(), allowed.join(", "));
            invalid("/decision", format!("{given:?} is not allowed here; choose one of: {allowed}"))
        })?;
        check_data(&answer, &decision)?;
        check_edit(&answer, suspension, &decision)?;
        check_policy(&answer, &decision)?;
        let answer = with_decisions(answer, suspension, &decision)?;

        let (suspension, call) = (suspension.clone(), call.clone());
        let standing = votes::standing(&answer, &decision, &call, &suspension, cx)?;
        if let (Decision::Approve, Some(approval)) = (&decision, suspension.approval()) {
            let binding = call.binding(&suspension, answer.arguments.as_ref());
            if let Counted::Open(vote) = votes::count(&answer, (&suspension, approval), binding, cx)? {
                self.vote(index, suspension.id, vote);
                return Ok(());
            }
        }
        self.record_answer(index, &call, &suspension, decision, standing, answer, cx);
        Ok(())
    }

    /// Records an answer that has passed every check, and continues the call.
    #[expect(clippy::too_many_arguments, reason = "the end of one function, with its findings")]
    fn record_answer(
        &mut self,
        index: CallIndex,
        call: &Call,
        suspension: &Suspension,
        decision: Decision,
        standing: Option<Standing>,
        answer: CheckedAnswer,
        cx: &mut Context<'_>,
    ) {
        let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
        // An approval inside a call lets its code go on. It does not open the gate of the call.
        let opens_gate = decision == Decision::Approve && !suspension.is_inside();
        let pinned = call.pinned.as_ref().filter(|_| opens_gate);
        let approved = pinned.map(|pinned| pinned.binding(arguments));
        // A program with the caller's token can fill in a form too.
        let by_client = answer.by.channel == Channel::McpForm;
        let resolution = Resolution {
            decision: decision.clone(),
            data: answer.data.clone(),
            arguments: answer.arguments,
            comment: answer.comment.clone(),
            standing,
            link: answer.by.link,
            channel: Some(answer.by.channel),
        };
        self.record(
            index,
            CallEvent::Resolved {
                suspension: suspension.id,
                resolution: Box::new(resolution),
                approved,
                by: answer.by.id,
                at: cx.now,
            },
        );
        match decision {
            Decision::Deny if suspension.doubt().is_some() => self.settle(index, Outcome::InDoubt, cx),
            _ if suspension.is_inside() => self.resume(index, cx),
            Decision::Approve => self.proceed(index, cx),
            Decision::Deny => self.deny_alike(index, suspension.digest, answer.comment, cx),
            Decision::Answer(choice) => {
                let SuspensionBody::Elicitation(question) = &suspension.body else { return };
                let value = question.answered(&choice, answer.data);
                self.settle(index, Outcome::Ok { value, trusted: !by_client }, cx);
            }
            Decision::Result => {
                let value = answer.data.unwrap_or_else(|| Json::unchecked("null"));
                let trusted = call.pinned.as_ref().is_some_and(|pinned| pinned.executor != Executor::Client);
                self.settle(index, Outcome::Ok { value, trusted }, cx);
            }
            Decision::Error => {
                let message = answer.comment.unwrap_or_else(|| "the client could not carry it out".into());
                self.settle(index, Outcome::Failed(Failure::new(FailureCode::ToolFailed, message)), cx);
            }
        }
    }
}

pub(super) fn invalid(pointer: &str, message: String) -> Refusal {
    Refusal::Invalid(vec![Violation { pointer: pointer.into(), message }])
}

impl Draft {
    /// Ends a call that a person denied, and the identical calls of the turn that wait for an approval.
    fn deny_alike(&mut self, index: CallIndex, digest: Digest, reason: Option<String>, cx: &Context<'_>) {
        // A call that may have taken effect already is another question.
        let waits_alike = |open: &Suspension| {
            open.digest == digest && open.approval().is_some_and(|approval| approval.doubt.is_none())
        };
        let alike: Vec<CallIndex> = self
            .turn
            .indexed()
            .filter(|(other, call)| *other != index && call.open().is_some_and(waits_alike))
            .map(|(other, _)| other)
            .collect();
        for other in alike {
            self.settle(other, Outcome::Denied(Some("an identical call of the turn was denied".into())), cx);
        }
        self.deny(index, reason, cx);
    }
}

fn may_answer(answer: &CheckedAnswer, suspension: &Suspension, draft: &Draft, cx: &Context<'_>) -> Result<(), Refusal> {
    draft.turn.may_answer(&answer.by, suspension, cx.settings)?;
    suspension.counts_for(&answer.by)?;
    Ok(())
}

impl Suspension {
    /// Whether it is open. It may have expired before the expiry is recorded. An answer is too late then.
    ///
    /// # Errors
    /// [`Refusal::Stale`] with its end.
    pub fn is_open(&self, closed: Option<&Closed>, now: Timestamp) -> Result<(), Refusal> {
        match closed {
            Some(closed) => Err(self.stale(closed)),
            None if self.expires_at <= now => Err(Refusal::Stale {
                kind: self.kind(),
                ended: SuspensionEnd::Expired,
                by: PrincipalId::system(),
                at: self.expires_at,
            }),
            None => Ok(()),
        }
    }

    /// The refusal of an answer after its end.
    #[must_use]
    pub fn stale(&self, closed: &Closed) -> Refusal {
        Refusal::Stale { kind: self.kind(), ended: closed.ended(), by: closed.by.clone(), at: closed.at }
    }
}

fn still_open(
    answer: &CheckedAnswer,
    suspension: &Suspension,
    closed: Option<&Closed>,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    let is_same = |closed: &Closed| {
        let earlier = closed.resolution().filter(|_| closed.by == answer.by.id);
        earlier.is_some_and(|earlier| same(earlier, suspension, answer))
    };
    if closed.is_some_and(is_same) {
        return Err(Refusal::Replayed);
    }
    suspension.is_open(closed, cx.now)
}

/// Whether an answer repeats an earlier one. The comment is not part of the decision.
fn same(earlier: &Resolution, suspension: &Suspension, answer: &CheckedAnswer) -> bool {
    let given = earlier.standing.as_ref().map(|standing| (standing.uses, &standing.pin));
    let asked = answer.standing.as_ref().map(|standing| (standing.uses, &standing.pin));
    Some(&earlier.decision) == suspension.accepts(&answer.decision).as_ref()
        && earlier.data == answer.data
        && earlier.arguments == answer.arguments
        && given == asked
}

fn check_data(answer: &CheckedAnswer, decision: &Decision) -> Result<(), Refusal> {
    let is_checked = match decision {
        // A denial needs no data, and the data of an error is not a result.
        Decision::Deny | Decision::Error => false,
        Decision::Approve | Decision::Answer(_) | Decision::Result => true,
    };
    if is_checked && !answer.checked.data.is_empty() {
        return Err(Refusal::Invalid(under("/data", &answer.checked.data)));
    }
    Ok(())
}

fn check_edit(answer: &CheckedAnswer, suspension: &Suspension, decision: &Decision) -> Result<(), Refusal> {
    if answer.arguments.is_none() {
        return Ok(());
    }
    if *decision != Decision::Approve {
        return Err(invalid("/arguments", "only an approval can edit the arguments".into()));
    }
    let allowed = suspension.editable().check(answer.checked.edited.as_deref());
    allowed.map_err(|why| invalid("/arguments", why))?;
    if !answer.checked.arguments.is_empty() {
        return Err(Refusal::Invalid(under("/arguments", &answer.checked.arguments)));
    }
    let met = |need: &Need| suspension.needs().iter().any(|had| need.is_met_by(had));
    if !answer.checked.needs.iter().all(met) {
        return Err(NotAllowed::EditNeedsOthers.into());
    }
    Ok(())
}

/// The answer with its decisions about requests in doubt in their one form. An approval must decide about all of them.
fn with_decisions(
    answer: CheckedAnswer,
    suspension: &Suspension,
    decision: &Decision,
) -> Result<CheckedAnswer, Refusal> {
    let Some(requests) = suspension.doubtful_requests().filter(|_| *decision == Decision::Approve) else {
        return Ok(answer);
    };
    let decided = requests.decided(answer.arguments.as_ref());
    let decided = decided.map_err(|faults| Refusal::Invalid(under("/arguments", &faults)))?;
    Ok(CheckedAnswer { arguments: Some(value_of(&decided)), ..answer })
}

/// Whether the policy allows the arguments to approve. It was asked about edited arguments, and about calls for a
/// client, because it is not asked about those again.
fn check_policy(answer: &CheckedAnswer, decision: &Decision) -> Result<(), Refusal> {
    if *decision == Decision::Approve && answer.checked.rule == RuleEffect::Deny {
        return Err(NotAllowed::PolicyDenies.into());
    }
    Ok(())
}

fn under(root: &str, violations: &[Violation]) -> Vec<Violation> {
    violations.iter().map(|violation| violation.under(root)).collect()
}
