//! Answers to suspensions. The checks are made in one order, and one that fails changes nothing: known, this principal
//! may, still open, digest as expected, decision allowed, data fits, edited arguments fit and pass policy again.

use super::decide::Draft;
use super::votes::{self, Counted};
use super::{Context, Refusal, Resolve, Turn};
use crate::{
    Call, CallEvent, CallIndex, Closed, ClosedAs, Decision, Digest, Editable, Executor, Failure, FailureCode, Json,
    Kind, Need, Outcome, Principal, Resolution, Rule, Standing, Suspension, Violation,
};

impl Draft {
    pub(super) fn resolve(&mut self, answer: Resolve, cx: &mut Context<'_>) -> Result<(), Refusal> {
        let Some((index, call, suspension, closed)) = self.turn.suspension(answer.suspension) else {
            return Err(Refusal::Stale { state: "unknown".into(), by: None, at: None });
        };
        may_answer(&answer, suspension, self, cx)?;
        still_open(&answer, suspension, closed, cx)?;
        if answer.expect_digest.is_some_and(|expected| expected != suspension.digest) {
            return Err(Refusal::DigestMismatch { actual: suspension.digest });
        }
        let decision = suspension.parse(&answer.decision).ok_or_else(|| {
            let allowed = suspension.allowed().join(", ");
            invalid("/decision", format!("{:?} is not allowed here; choose one of: {allowed}", answer.decision))
        })?;
        check_data(&answer, &decision)?;
        check_edit(&answer, suspension, &decision)?;
        check_policy(&answer, &decision)?;

        let (suspension, call) = (suspension.clone(), call.clone());
        let standing = votes::standing(&answer, &call, &suspension, cx)?;
        if decision == Decision::Approve {
            let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
            let binding = call.pinned.as_ref().map_or(suspension.digest, |pinned| pinned.binding(arguments));
            if let Counted::Open(vote) = votes::count(&answer, &suspension, binding, cx)? {
                self.vote(index, suspension.id, vote);
                return Ok(());
            }
        }
        self.commit(index, &call, &suspension, decision, standing, answer, cx);
        Ok(())
    }

    /// Every check has passed: the answer becomes a fact, and the call goes on.
    #[expect(clippy::too_many_arguments, reason = "it is the tail of one function, with what that found out")]
    fn commit(
        &mut self,
        index: CallIndex,
        call: &Call,
        suspension: &Suspension,
        decision: Decision,
        standing: Option<Standing>,
        answer: Resolve,
        cx: &mut Context<'_>,
    ) {
        let arguments = answer.arguments.as_ref().unwrap_or(&call.arguments);
        let approved = match &decision {
            Decision::Approve => call.pinned.as_ref().map(|pinned| pinned.binding(arguments)),
            _ => None,
        };
        let resolution = Resolution {
            decision: decision.clone(),
            data: answer.data.clone(),
            arguments: answer.arguments,
            comment: answer.comment.clone(),
            standing,
            link: answer.by.link,
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
            Decision::Approve => self.proceed(index, cx),
            Decision::Deny if suspension.in_doubt.is_some() => self.settle(index, Outcome::InDoubt, cx),
            Decision::Deny => self.deny_alike(index, suspension.digest, answer.comment, cx),
            Decision::Answer(choice) => {
                let value = answer_value(suspension, &choice, answer.data);
                self.settle(index, Outcome::Ok { value, trusted: true }, cx);
            }
            Decision::Result => {
                let value = answer.data.unwrap_or_else(|| Json::new("null"));
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

fn invalid(pointer: &str, message: String) -> Refusal {
    Refusal::Invalid(vec![Violation { pointer: pointer.into(), message }])
}

impl Draft {
    /// Ends a call by a person's no, and with it the calls of the turn that are the same and wait for the same answer: what
    /// was just denied is not asked again.
    fn deny_alike(&mut self, index: CallIndex, digest: Digest, reason: Option<String>, cx: &Context<'_>) {
        // One that may have taken effect already is another question.
        let waits_alike =
            |open: &Suspension| open.kind == Kind::Approval && open.in_doubt.is_none() && open.digest == digest;
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

/// Whether a principal may see a suspension and answer suspensions of its kind.
pub(super) fn may(by: &Principal, suspension: &Suspension, turn: &Turn, cx: &Context<'_>) -> Result<(), Refusal> {
    if !by.may_see(&turn.conversation, &turn.caller) {
        return Err(Refusal::Stale { state: "unknown".into(), by: None, at: None });
    }
    let own_calls = cx.rules.own_calls;
    by.may_answer(suspension.kind, &turn.caller, own_calls).map_err(|why| Refusal::NotAllowed(why.into()))
}

fn may_answer(answer: &Resolve, suspension: &Suspension, draft: &Draft, cx: &Context<'_>) -> Result<(), Refusal> {
    may(&answer.by, suspension, &draft.turn, cx)?;
    suspension.counts_for(&answer.by).map(drop).map_err(Refusal::NotAllowed)
}

/// Whether a suspension is open. Its time may be over though nobody has written that down yet: an answer now is a late one.
pub(super) fn is_open(suspension: &Suspension, closed: Option<&Closed>, cx: &Context<'_>) -> Result<(), Refusal> {
    match closed {
        Some(closed) => {
            Err(Refusal::Stale { state: closed.state().into(), by: Some(closed.by.clone()), at: Some(closed.at) })
        }
        None if suspension.expires_at <= cx.now => Err(Refusal::Stale {
            state: "expired".into(),
            by: Some(crate::PrincipalId::system()),
            at: Some(suspension.expires_at),
        }),
        None => Ok(()),
    }
}

fn still_open(
    answer: &Resolve,
    suspension: &Suspension,
    closed: Option<&Closed>,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    if let Some(Closed { how: ClosedAs::Resolved(earlier), by, .. }) = closed
        && *by == answer.by.id
        && same(earlier, answer)
    {
        return Err(Refusal::Replayed);
    }
    is_open(suspension, closed, cx)
}

/// Whether an answer says what an earlier one said. The comment does not count: it is not part of the decision.
fn same(earlier: &Resolution, answer: &Resolve) -> bool {
    let given = earlier.standing.as_ref().map(|standing| (standing.uses, &standing.pin));
    let asked = answer.standing.as_ref().map(|standing| (standing.uses, &standing.pin));
    earlier.decision.as_str() == answer.decision
        && earlier.data == answer.data
        && earlier.arguments == answer.arguments
        && given == asked
}

fn check_data(answer: &Resolve, decision: &Decision) -> Result<(), Refusal> {
    match decision {
        // A no needs no data, and what comes with an error is not a result.
        Decision::Deny | Decision::Error => Ok(()),
        _ if answer.checked.data.is_empty() => Ok(()),
        _ => Err(Refusal::Invalid(under("/data", &answer.checked.data))),
    }
}

fn check_edit(answer: &Resolve, suspension: &Suspension, decision: &Decision) -> Result<(), Refusal> {
    if answer.arguments.is_none() {
        return Ok(());
    }
    if *decision != Decision::Approve {
        return Err(invalid("/arguments", "only an approval can edit the arguments".into()));
    }
    match (&suspension.editable, &answer.checked.edited) {
        (Editable::All, _) => {}
        (Editable::Fields(fields), Some(edited)) if edited.iter().all(|field| fields.contains(field)) => {}
        (Editable::Fields(fields), _) => {
            return Err(invalid("/arguments", format!("only these may be edited: {}", fields.join(", "))));
        }
        (Editable::Nothing, _) => {
            return Err(invalid("/arguments", "the arguments of this call cannot be edited".into()));
        }
    }
    if !answer.checked.arguments.is_empty() {
        return Err(Refusal::Invalid(under("/arguments", &answer.checked.arguments)));
    }
    let met = |need: &Need| suspension.needs().iter().any(|had| need.is_met_by(had));
    if !answer.checked.needs.iter().all(met) {
        return Err(Refusal::NotAllowed(
            "with these arguments, others have to approve the call; deny it, and let it be made again with them".into(),
        ));
    }
    Ok(())
}

/// What the policy says of the arguments that would be approved, where it was asked: of edited ones, and of those of a client's
/// call, which no policy looks at again once it is approved.
fn check_policy(answer: &Resolve, decision: &Decision) -> Result<(), Refusal> {
    if *decision == Decision::Approve && answer.checked.rule == Rule::Deny {
        return Err(Refusal::NotAllowed("the policy denies the call with these arguments".into()));
    }
    Ok(())
}

fn under(root: &str, violations: &[Violation]) -> Vec<Violation> {
    let nested = |violation: &Violation| Violation {
        pointer: format!("{root}{}", violation.pointer),
        message: violation.message.clone(),
    };
    violations.iter().map(nested).collect()
}

/// The result of a question: the data alone, or, where there were responses to choose from, the choice with the data.
fn answer_value(suspension: &Suspension, choice: &str, data: Option<Json>) -> Json {
    if suspension.responses.is_none() {
        return data.unwrap_or_else(|| Json::new("null"));
    }
    let choice = crate::json::quote(choice);
    Json::new(match data {
        None => format!("{{\"decision\":{choice}}}"),
        Some(data) => format!("{{\"decision\":{choice},\"data\":{data}}}"),
    })
}
