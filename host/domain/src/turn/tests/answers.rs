//! Answers: the order of the checks, what each refuses, and what an answer that passes them does.

use expect_test::{Expect, expect};

use super::{principal, submit};
use crate::turn::{CheckedAnswer, Finished, Input};
use crate::{
    Call, CallIndex, ConversationId, Digest, Json, Outcome, OwnerId, Refusal, SuspensionId, Violation,
    event::Rejection, gate::RuleEffect, outcome::FailureCode, principal::Role, suspension::SuspensionEnd,
};

#[test]
fn an_answer_after_the_expiry_is_late_before_it_is_recorded() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.now = 100_000;
    let refused = world.decide(Input::Resolve(Box::new(world.answer(0, "approve")))).unwrap_err();
    assert!(matches!(refused, Refusal::Stale { ended: SuspensionEnd::Expired, .. }));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one row for each check, in their order")]
fn answer_checks_run_in_order_and_a_failed_one_changes_nothing() {
    type Change = fn(&mut CheckedAnswer);
    let rows: [(&str, Change, Expect); 12] = [
        (
            "server!",
            |r| r.suspension = SuspensionId::from_bits(42),
            expect!["there is no such suspension, or you may not see it"],
        ),
        (
            "server!",
            |r| r.by = principal("eve", &[Role::Caller]),
            expect!["there is no such suspension, or you may not see it"],
        ),
        (
            "server!",
            |r| r.by = principal("agent", &[Role::Caller]),
            expect!["only a principal with the role approver answers approvals and questions"],
        ),
        (
            "server!",
            |r| r.by = principal("agent", &[Role::Admin, Role::Approver]),
            expect!["a caller cannot answer for its own call unless the operator allows it (approve_own_calls)"],
        ),
        (
            "client",
            |r| r.by = principal("ann", &[Role::Approver]),
            expect!["only a principal with the role client carries out client tools"],
        ),
        (
            "server!",
            |r| {
                r.by.conversation = Some(ConversationId::new("other").unwrap());
            },
            expect!["there is no such suspension, or you may not see it"],
        ),
        (
            "server!",
            |r| {
                r.expect_digest = Some(Digest::of("x"));
                r.decision = "maybe".into();
            },
            expect![
                "the call differs from the one that was shown: its digest is sha256:0dcb8618b4c875e1ae2ed96fcc20edd15880e61dea9be971cf8a62155fb23089; read it again"
            ],
        ),
        (
            "server!",
            |r| r.decision = "answer".into(),
            expect![[r#"
            the answer is not valid; at /decision: "answer" is not allowed here; choose one of: approve, deny"#]],
        ),
        (
            "human:responses=yes|no",
            |r| r.decision = "answer".into(),
            expect![[r#"
            the answer is not valid; at /decision: "answer" is not allowed here; choose one of: yes, no"#]],
        ),
        (
            "human",
            |r| {
                r.checked.data = vec![Violation { pointer: "/x".into(), message: "is missing".into() }];
                r.decision = "answer".into();
            },
            expect!["the answer is not valid; at /data/x: is missing"],
        ),
        (
            "server!",
            |r| r.arguments = Some(Json::unchecked("{}")),
            expect!["the answer is not valid; at /arguments: the arguments of this call cannot be edited"],
        ),
        (
            "server!:editable=all",
            |r| {
                r.arguments = Some(Json::unchecked("{}"));
                r.checked.rule = RuleEffect::Deny;
            },
            expect!["the policy denies the call with these arguments"],
        ),
    ];
    for (calls, change, expected) in rows {
        let mut world = submit(calls, Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        change(&mut answer);
        let before = world.turn.clone();
        let refusal = world.decide(Input::Resolve(Box::new(answer))).unwrap_err();
        assert_eq!(world.turn, before, "{calls}");
        let details = match &refusal {
            Refusal::Invalid(violations) => violations.iter().map(|v| format!("; {v}")).collect(),
            _ => String::new(),
        };
        expected.assert_eq(&format!("{refusal}{details}"));
    }
}

#[test]
fn the_operator_may_let_callers_answer_for_their_own_calls() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.settings.own_calls = true;
    let mut answer = world.answer(0, "approve");
    answer.by = principal("agent", &[Role::Caller, Role::Approver]);
    assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Ok(()));
}

#[test]
fn an_edit_runs_what_was_approved_and_nothing_else() {
    for (editable, edited, allowed) in [
        ("server!:editable=all", Some(vec!["b"]), true),
        ("server!:editable=a", Some(vec!["a"]), true),
        ("server!:editable=a", Some(vec!["a", "b"]), false),
        ("server!:editable=a", None, false),
        ("server!", Some(vec!["a"]), false),
    ] {
        let mut world = submit(editable, Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        answer.arguments = Some(Json::unchecked(r#"{"a":2}"#));
        answer.checked.edited = edited.map(|fields| fields.into_iter().map(str::to_owned).collect());
        let decided = world.decide(Input::Resolve(Box::new(answer.clone())));
        assert_eq!(decided.is_ok(), allowed, "{editable} {:?}", answer.checked.edited);
        let call = &world.turn.calls[0];
        assert_eq!(call.arguments.as_str(), if allowed { r#"{"a":2}"# } else { r#"{"a":1}"# });
        assert_eq!(call.submitted.as_str(), r#"{"a":1}"#);
        assert_eq!(world.turn.effects(OwnerId::from_bits(1)).count(), usize::from(allowed));
        if allowed {
            assert_eq!(call.approved, call.pinned.as_ref().map(|pinned| pinned.binding(&call.arguments)));
            assert_eq!(world.decide(Input::Resolve(Box::new(answer))), Err(Refusal::Replayed));
        }
    }
}

#[test]
fn a_run_that_differs_from_its_approval_is_not_due() {
    let mut world = submit("server!", Rejection::default()).unwrap();
    world.step("approve 0");
    assert_eq!(world.turn.effects(OwnerId::from_bits(1)).count(), 1);
    let mut tampered = world.turn.clone();
    tampered.calls[0].arguments = Json::unchecked(r#"{"a":1000000}"#);
    assert_eq!(tampered.effects(OwnerId::from_bits(1)).count(), 0);
    // A restart does not start it either: it ends, and says why.
    world.turn = tampered;
    world.step("restart");
    assert_eq!(world.turn.calls[0].outcome(), Some(&Outcome::Invalidated));
}

#[test]
fn an_answer_to_a_question_is_the_choice_with_its_data() {
    for (calls, data, expected) in [
        ("human", Some(r#"{"x":1}"#), r#"{"x":1}"#),
        ("human", None, "null"),
        ("human:responses=answer|it's_\"complicated\"", None, r#"{"decision":"it's_\"complicated\""}"#),
        ("human:responses=yes", Some("5"), r#"{"decision":"yes","data":5}"#),
        ("human:responses=approve|deny", None, r#"{"decision":"deny"}"#),
        ("human:responses=open", None, r#"{"decision":"open"}"#),
    ] {
        let mut world = submit(calls, Rejection::default()).unwrap();
        let decision = world.turn.calls[0].open().unwrap().allowed().pop().unwrap();
        let mut answer = world.answer(0, decision.as_str());
        answer.data = data.map(Json::unchecked);
        world.decide(Input::Resolve(Box::new(answer))).unwrap();
        let expected = Outcome::Ok { value: Json::unchecked(expected), trusted: true };
        assert_eq!(world.turn.calls[0].outcome(), Some(&expected));
        let (_, closed) = &world.turn.calls[0].suspensions[0];
        assert!(!crate::suspension::SuspensionState::of(closed.as_ref()).is_open());
    }
}

#[test]
fn a_clients_result_is_never_trusted() {
    let mut world = submit("client", Rejection::default()).unwrap();
    world.step("result 0");
    assert!(matches!(world.turn.calls[0].outcome(), Some(Outcome::Ok { trusted: false, .. })));
}

/// A webhook once reported the arguments of a later edit. Today no call can be edited twice, because the question after a
/// kill allows no edit. So the test takes the second edit from another turn.
#[test]
fn later_edits_do_not_change_what_was_asked() {
    let edited = |arguments: &str| {
        let mut world = submit("server!:editable=all,recovery=ask", Rejection::default()).unwrap();
        let mut answer = world.answer(0, "approve");
        answer.arguments = Some(Json::unchecked(arguments));
        world.decide(Input::Resolve(Box::new(answer))).unwrap();
        world.step("restart");
        world.turn.calls.remove(0)
    };
    let (mut call, other) = (edited(r#"{"a":2}"#), edited(r#"{"a":3}"#));
    call.suspensions[1].1 = other.suspensions[0].1.clone();
    call.arguments = other.arguments;
    let binding = |arguments| call.pinned.as_ref().unwrap().binding(arguments);
    let expected = [(r#"{"a":1}"#, None), (r#"{"a":2}"#, Some(r#"{"a":1}"#))];
    for ((suspension, _), (asked, submitted)) in call.suspensions.iter().zip(expected) {
        assert_eq!(call.asked_about(suspension.id).as_str(), asked);
        assert_eq!(call.edited_before(suspension.id).map(Json::as_str), submitted);
        assert_eq!(binding(call.asked_about(suspension.id)), suspension.digest, "an answer is bound to what was asked");
    }
}

#[test]
fn results_of_a_turn_have_a_bound_in_sum() {
    let mut world = submit("server server server client", Rejection::ContinueSiblings).unwrap();
    world.settings.turn_results = 10;
    let value = |text: &str| Json::unchecked(text);
    for (call, result) in [(0, "\"12345\""), (1, "1234"), (2, "123")] {
        let outcome = Outcome::Ok { value: value(result), trusted: true };
        world.decide(Input::Finished(Finished::new(CallIndex(call), 1, outcome))).unwrap();
    }
    let mut answer = world.answer(3, "result");
    answer.data = Some(value("1"));
    world.decide(Input::Resolve(Box::new(answer))).unwrap();
    let ends = world.turn.calls.iter().filter_map(Call::outcome).map(|outcome| match outcome {
        Outcome::Ok { value, .. } => value.as_str().to_owned(),
        Outcome::Failed(failure) => {
            assert!(failure.code == FailureCode::LimitExceeded && failure.message.contains("more than 10 bytes"));
            "dropped".to_owned()
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(ends.collect::<Vec<_>>(), ["\"12345\"", "dropped", "123", "dropped"]);
    assert!(world.turn.is_ended());
}
