//! Durable calls: they wait in the middle of their code, and continue.

use expect_test::expect;

use std::sync::Arc;

use super::{check, principal, submit};
use crate::{
    CallIndex, Digest, Json, Outcome, SignalName, Span, Timestamp, Turn,
    approvers::{Escalate, Need},
    doubt::MAX_REQUESTS,
    event::Rejection,
    gate::{RuleEffect, Verdict},
    outcome::{Failure, FailureCode},
    principal::{Channels, Role},
    step::{Question, RunEnd, StepEnd, StepRequest, StepWait},
    suspension::{About, Asked, Decision},
    tool::{Editable, Risk},
    turn::{Finished, Input},
};

/// The end of a run that asks a person, proposes a value, waits for an external system, calls two tools, sleeps for a minute, is
/// limited by a server for a minute, or fails while it repeats another run.
pub(super) fn end(verb: &str, now: u64) -> RunEnd {
    let question = Question { prompt: "which?".into(), ..Question::default() };
    let wait = match verb {
        "ask" => StepWait::Answer(question),
        "propose" => StepWait::Approval { question, subject: Json::unchecked("{\"b\":2}"), editable: Editable::All },
        "await" => StepWait::External { question, signal: None, metadata: Some(Json::unchecked("[7]")) },
        "call" => StepWait::Calls(super::nested::calls(2)),
        "sleep" => StepWait::Time(Timestamp::from_millis(now + 60_000)),
        "limit" => StepWait::RateLimit(Timestamp::from_millis(now + 60_000)),
        "doubt" => return RunEnd::InDoubt(super::recovery::requests(&[2, 5])),
        "doubts" => return RunEnd::InDoubt(super::recovery::requests(&[0; MAX_REQUESTS + 1])),
        _ => return RunEnd::Repeating(Failure::new(FailureCode::Trapped, "trap")),
    };
    RunEnd::Waits(StepRequest { digest: Digest::of(verb), wait })
}

/// The policy's verdict on a step: it denies it, or a rule asks for `ben` and, after a minute, for an admin.
pub(super) fn verdict(word: Option<&str>) -> Verdict {
    let by = |rule, reason: &str| Verdict {
        rule,
        by: Some("freeze".into()),
        reason: Some(reason.into()),
        ..Verdict::default()
    };
    let ben = |admin: &str| Need {
        who: Arc::new(["principal:ben".parse().unwrap()]),
        quorum: 1,
        escalate: Some(Escalate { after: Span::from_secs(60), to: Arc::new([admin.parse().unwrap()]) }),
        via: Channels::ANY,
    };
    match word {
        Some("denied") => by(RuleEffect::Deny, "not in December"),
        Some("asked") => {
            let needs = Arc::new([ben("role:admin")]);
            Verdict { risk: Some(Risk::High), needs, policy_failed: true, ..by(RuleEffect::Ask, "in December") }
        }
        _ => Verdict::default(),
    }
}

#[test]
fn step_that_the_policy_denies_asks_nobody() {
    check(
        "server:durable=yes",
        "ask 0 denied; propose 0 denied; await 0 denied; sleep 0 denied; tick +60; finish 0",
        &expect![[r#"
            0 started #1
            0 suspended elicitation
            0 resolved deny by system
            0 resumed #1
            0 suspended approval
            0 resolved deny by system
            0 resumed #1
            0 suspended external
            0 resolved deny by system
            0 resumed #1
            0 suspended timer
            0 suspension expired
            0 resumed #1
            0 settled ok
            turn settled
        "#]],
    );
}

#[test]
fn guest_gets_the_reason_of_a_denied_step() {
    for verb in ["ask", "propose", "await"] {
        let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
        world.step(&format!("{verb} 0 denied"));
        let call = &world.turn.calls[0];
        let ends: Vec<_> = call.steps().map(|step| step.end).collect();
        assert_eq!(ends, [StepEnd::Denied(Some("not in December".into()))], "{verb}");
        let (suspension, closed) = &call.suspensions[0];
        let by = suspension.about().unwrap().by.as_deref();
        assert_eq!(by, Some("freeze"), "{verb}: the suspension names the rule");
        let closed = closed.as_ref().unwrap();
        assert_eq!((closed.by.as_str(), closed.ended().as_str()), ("system", "deny"), "{verb}");
    }
}

#[test]
fn rule_makes_no_approval_of_a_question() {
    for verb in ["ask", "await"] {
        let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
        world.step(&format!("{verb} 0 asked"));
        let (.., open) = world.turn.pending().next().unwrap();
        let About { by, reason, risk, .. } = open.about().unwrap();
        let demands = open.asked().is_some_and(|asked| asked.policy_failed || !asked.needs.is_empty());
        assert!(!open.allowed().contains(&Decision::Approve), "{verb}");
        assert_eq!((by, reason, demands), (&None, &None, false), "{verb}");
        assert_eq!(*risk, Some(Risk::High), "{verb}: people see the risk");
    }
}

/// A call that waits for an approval, for which the guest and a rule have demands.
fn demanded(question: Question) -> super::RecordedTurn {
    let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    let wait = StepWait::Approval { question, subject: Json::unchecked("7"), editable: Editable::Nothing };
    let ended = RunEnd::Waits(StepRequest { digest: Digest::of("demanded"), wait });
    let verdict = verdict(Some("asked"));
    let finished = Finished { verdict, ..Finished::new(CallIndex(0), 1, ended) };
    world.decide(Input::Finished(finished)).unwrap();
    world
}

#[test]
fn approval_in_the_middle_meets_the_needs_of_guest_and_rule() {
    let ann = Need { who: Arc::new(["principal:ann".parse().unwrap()]), quorum: 1, escalate: None, via: Channels::ANY };
    let mut world = demanded(Question { needs: Arc::new([ann]), risk: Some(Risk::Critical), ..Question::default() });
    let (.., open) = world.turn.pending().next().unwrap();
    let Asked { about: About { by, reason, risk, .. }, policy_failed, .. } = open.asked().unwrap();
    let shown = (by.as_deref(), reason.as_deref(), *policy_failed, *risk);
    assert_eq!(shown, (Some("freeze"), Some("in December"), true, Some(Risk::Critical)), "no rule lowers the risk");
    assert_eq!(world.step("approve 0"), "0 vote of ann\n");
    let mut answer = world.answer(0, "approve");
    answer.by = principal("ben", &[Role::Approver]);
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    let ends: Vec<_> = world.turn.calls[0].steps().map(|step| step.end).collect();
    assert_eq!(ends, [StepEnd::Approved(Json::unchecked("7"))]);
}

#[test]
fn approval_in_the_middle_escalates_as_the_rule_says() {
    let mut world = demanded(Question::default());
    let approve = |world: &super::RecordedTurn| {
        let mut answer = world.answer(0, "approve");
        answer.by = principal("root", &[Role::Admin]);
        Input::Resolve(Box::new(answer))
    };
    assert!(world.decide(approve(&world)).is_err(), "only ben may approve at first");
    assert_eq!(world.turn.next_due().unwrap().at, Timestamp::from_millis(60_000));
    assert_eq!(world.step("tick +60"), "0 escalated\n");
    world.decide(approve(&world)).unwrap();
    assert_eq!(world.turn.calls[0].steps().count(), 1);
}

#[test]
fn each_step_ends_and_the_call_continues() {
    check(
        "server:durable=yes server",
        "ask 0; finish 1; answer 0; propose 0; approve 0; propose 0; deny 0; sleep 0; approve 0; tick +59; tick +1; finish 0",
        &expect![[r#"
            0 started #1
            1 started #1
            0 suspended elicitation
            1 settled ok
            0 resolved answer by ann
            0 resumed #1
            0 suspended approval
            0 resolved approve by ann
            0 resumed #1
            0 suspended approval
            0 resolved deny by ann
            0 resumed #1
            0 suspended timer
            refused: the call waits for a time, and nobody can end that wait; cancel its turn to stop it
            0 suspension expired
            0 resumed #1
            0 settled ok
            turn settled
        "#]],
    );
}

#[test]
fn rate_limit_ends_with_its_time_and_nobody_ends_it() {
    check(
        "server:durable=yes,expiry=deny",
        "limit 0; approve 0; result 0; tick +59; tick +1; limit 0; cancel",
        &expect![[r#"
            0 started #1
            0 suspended rate_limit
            refused: the call waits for a time, and nobody can end that wait; cancel its turn to stop it
            refused: the call waits for a time, and nobody can end that wait; cancel its turn to stop it
            0 suspension expired
            0 resumed #1
            0 suspended rate_limit
            cancelled
            0 settled cancelled
            turn cancelled
        "#]],
    );
}

#[test]
fn step_that_nobody_answers_expires_and_the_call_continues() {
    check(
        "server:durable=yes,expiry=deny",
        "propose 0; tick +100; ask 0; tick +100; finish 0",
        &expect![[r#"
        0 started #1
        0 suspended approval
        0 suspension expired
        0 resumed #1
        0 suspended elicitation
        0 suspension expired
        0 resumed #1
        0 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn external_wait_ends_with_its_result_or_its_time() {
    check(
        "server:durable=yes",
        "await 0; approve 0; result 0; result 0; await 0; tick +100; await 0; cancel; result 0",
        &expect![[r#"
            0 started #1
            0 suspended external
            refused: the answer is not valid
            0 resolved result by agent
            0 resumed #1
            refused: this answer was already given
            0 suspended external
            0 suspension expired
            0 resumed #1
            0 suspended external
            cancelled
            0 settled cancelled
            turn cancelled
            refused: this external wait is no longer open: it was withdrawn, because its call ended
        "#]],
    );
}

#[test]
fn result_of_a_call_that_received_one_is_untrusted() {
    for (steps, is_trusted) in [(&["await 0", "result 0"][..], false), (&["ask 0", "answer 0"], true)] {
        let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
        steps.iter().for_each(|step| drop(world.step(step)));
        world.step("finish 0");
        let outcome = world.turn.calls[0].outcome().unwrap();
        assert!(matches!(outcome, Outcome::Ok { trusted, .. } if *trusted == is_trusted), "{outcome:?}");
    }
}

#[test]
fn denied_step_ends_no_sibling() {
    check(
        "server:durable=yes server!",
        "propose 0; deny 0; finish 0; approve 1; finish 1",
        &expect![[r#"
        0 started #1
        1 suspended approval
        0 suspended approval
        0 resolved deny by ann
        0 resumed #1
        0 settled ok
        1 resolved approve by ann
        1 started #1
        1 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn cancelled_call_is_not_continued() {
    check(
        "server:durable=yes",
        "ask 0; cancel; answer 0",
        &expect![[r#"
            0 started #1
            0 suspended elicitation
            cancelled
            0 settled cancelled
            turn cancelled
            refused: this question is no longer open: it was withdrawn, because its call ended
        "#]],
    );
}

#[test]
fn approved_step_opens_no_gate_and_edits_no_arguments() {
    let mut world = submit("server!:durable=yes", Rejection::ContinueSiblings).unwrap();
    world.step("approve 0");
    let approved = world.turn.calls[0].approved;
    world.step("propose 0");
    let (_, call, open) = world.turn.pending().next().unwrap();
    assert_eq!(call.asked_about(open.id).as_str(), "{\"b\":2}");
    let mut answer = world.answer(0, "approve");
    answer.arguments = Some(Json::unchecked("{\"b\":3}"));
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    let call = &world.turn.calls[0];
    assert_eq!((call.arguments.as_str(), call.approved), ("{\"a\":1}", approved));
    let ends: Vec<_> = call.steps().map(|step| (step.digest, step.end)).collect();
    assert_eq!(ends, [(Digest::of("propose"), StepEnd::Approved(Json::unchecked("{\"b\":3}")))]);
    world.step("finish 0");
    assert!(world.turn.is_ended());
}

#[test]
fn step_after_an_edited_approval_knows_what_was_submitted() {
    let mut world = submit("server!:durable=yes,editable=all", Rejection::ContinueSiblings).unwrap();
    let mut answer = world.answer(0, "approve");
    answer.arguments = Some(Json::unchecked("{\"a\":2}"));
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    world.step("ask 0");
    let of_open = |turn: &Turn| {
        let (_, call, open) = turn.pending().next().unwrap();
        let submitted = call.edited_before(open.id).map(|json| json.as_str().to_owned());
        (call.asked_about(open.id).as_str().to_owned(), submitted)
    };
    assert_eq!(of_open(&world.turn), ("{\"a\":2}".to_owned(), Some("{\"a\":1}".to_owned())));
    world.step("answer 0");
    world.step("propose 0");
    assert_eq!(of_open(&world.turn), ("{\"b\":2}".to_owned(), None), "the value of a step is nobody's edit");
}

#[test]
fn call_may_not_wait_for_ever() {
    let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    world.settings.max_steps = 2;
    assert_eq!(world.step("ask 0; "), "0 suspended elicitation\n");
    world.step("answer 0");
    world.step("ask 0");
    world.step("answer 0");
    assert_eq!(world.step("ask 0"), "0 settled failed\nturn settled\n");
    assert!(world.turn.call(&world.turn.calls[0].id).is_some_and(|(index, _)| index == CallIndex(0)));
}

#[test]
fn receipt_covers_the_runs_of_every_step() {
    let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    for step in ["ask 0", "answer 0", "ask 0", "answer 0", "finish 0"] {
        world.step(step);
    }
    let receipt = world.turn.calls[0].receipt.unwrap();
    assert_eq!((receipt.host_calls, receipt.peak_memory), (5 + 5 + 3, 7));
    let mut cancelled = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    for step in ["ask 0", "cancel 0"] {
        cancelled.step(step);
    }
    assert_eq!(cancelled.turn.calls[0].receipt.unwrap().host_calls, 5);
}

#[test]
fn bytes_of_questions_and_answers_are_limited() {
    let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    world.settings.step_bytes = 40;
    world.step("propose 0");
    // The prompt and the value, and the edit of the approver.
    assert_eq!(world.turn.calls[0].step_bytes(), 6 + 7);
    let mut answer = world.answer(0, "approve");
    answer.arguments = Some(Json::unchecked("{\"b\":333333333333333}"));
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    assert_eq!(world.turn.calls[0].step_bytes(), 6 + 7 + 21);
    let mut waiting = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
    waiting.step("await 0");
    assert_eq!(waiting.turn.calls[0].step_bytes(), 6 + 3, "the prompt and the metadata");
    assert_eq!(world.step("ask 0"), "0 suspended elicitation\n");
    world.step("answer 0");
    assert_eq!(world.step("ask 0"), "0 settled failed\nturn settled\n");
}

#[test]
fn each_part_of_a_question_counts() {
    let need = |who: &str| Need { who: [who.parse().unwrap()].into(), quorum: 1, escalate: None, via: Channels::ANY };
    let question = || Question {
        prompt: "Go?".into(),
        responses: Some(["yes".to_owned(), "no".to_owned()].into()),
        response: Some(Json::unchecked("true")),
        needs: [need("principal:ann"), need("role:admin")].into(),
        ..Question::default()
    };
    let editable = Editable::Fields(["a".to_owned(), "bc".to_owned()].into());
    let (subject, metadata) = (Json::unchecked("12"), Some(Json::unchecked("{}")));
    let signal = Some(SignalName::new("done").unwrap());
    let people = 13 + 10;
    for (wait, bytes) in [
        (StepWait::Answer(question()), 3 + 5 + 4 + people),
        (
            StepWait::Approval {
                question: Question { responses: None, response: None, ..question() },
                subject,
                editable,
            },
            3 + people + 2 + 3,
        ),
        (
            StepWait::External {
                question: Question { responses: None, needs: [].into(), ..question() },
                signal,
                metadata,
            },
            3 + 4 + 2 + 4,
        ),
    ] {
        assert_eq!(wait.size(), bytes, "{wait:?}");
        let mut world = submit("server:durable=yes", Rejection::ContinueSiblings).unwrap();
        let step = StepRequest { digest: Digest::of("step"), wait };
        let (call, attempt, ended) = (CallIndex(0), 1, RunEnd::Waits(step));
        world.decide(Input::Finished(Finished::new(call, attempt, ended))).unwrap();
        assert_eq!(world.turn.calls[0].step_bytes(), bytes, "as it is stored");
    }
}
