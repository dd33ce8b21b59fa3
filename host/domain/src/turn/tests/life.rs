//! The lives of calls, step by step: each row is the calls, the inputs, and the facts that follow.

use expect_test::expect;

use super::{check, check_with, submit};
use crate::{Outcome, event::Rejection};

#[test]
fn every_legal_cell_from_start_to_end() {
    check(
        "server",
        "finish 0",
        &expect![[r#"
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server!",
        "approve 0; finish 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "human",
        "answer 0",
        &expect![[r#"
        0 suspended elicitation
        0 resolved answer by ann
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client",
        "result 0",
        &expect![[r#"
        0 suspended client_exec
        0 resolved result by page
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client!",
        "approve 0; result 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 suspended client_exec
        0 resolved result by page
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "provider:result=given",
        "",
        &expect![[r#"
        0 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn a_wrong_submission_is_refused_and_a_wrong_call_settles() {
    check(
        "",
        "",
        &expect![[r#"
        refused: this answer has no calls; give it to the user
    "#]],
    );
    check(
        "provider",
        "",
        &expect![[r#"
        refused: call c0 is of a provider tool and has no result: submit it with the result from the provider's stream
    "#]],
    );
    check(
        "server:result=given",
        "",
        &expect![[r#"
        refused: call c0 is not of a provider tool, so its result cannot be submitted
    "#]],
    );
    check(
        "server:plan=unknown server server:plan=denied",
        "finish 1",
        &expect![[r#"
        0 settled failed
        1 started #1
        2 settled denied
        1 settled ok
        turn settled
    "#]],
    );
    // An illegal cell never gets past loading. Should a record hold one, nothing of it runs.
    check(
        "human! provider!",
        "",
        &expect![[r#"
        0 settled invalidated
        1 settled invalidated
        turn settled
    "#]],
    );
}

#[test]
fn endings_that_are_not_ok() {
    check(
        "server",
        "fail 0; finish 0",
        &expect![[r#"
        0 started #1
        0 settled failed
        turn settled
    "#]],
    );
    check(
        "client",
        "error 0",
        &expect![[r#"
        0 suspended client_exec
        0 resolved error by page
        0 settled failed
        turn settled
    "#]],
    );
    check(
        "server!",
        "deny 0; approve 0; deny 0",
        &expect![[r#"
        0 suspended approval
        0 resolved deny by ann
        0 settled denied
        turn settled
        refused: this approval is no longer open: it was denied
        refused: this answer was already given
    "#]],
    );
    check(
        "server server! human client",
        "cancel; cancel; finish 0; answer 2",
        &expect![[r#"
        0 started #1
        1 suspended approval
        2 suspended elicitation
        3 suspended client_exec
        cancelled
        0 settled cancelled
        1 settled cancelled
        2 settled cancelled
        3 settled cancelled
        turn cancelled
        refused: this question is no longer open: it was withdrawn, because its call ended
    "#]],
    );
}

#[test]
fn a_timeout_approves_if_the_policy_still_allows_it() {
    check(
        "client!:expiry=approve",
        "tick +100 unchecked; tick +1",
        &expect![[r#"
        0 suspended approval
        0 suspension expired
        0 suspended client_exec
    "#]],
    );
    check(
        "client!:expiry=approve server!:expiry=approve",
        "tick +100 asked; tick +1",
        &expect![[r#"
        0 suspended approval
        1 suspended approval
        0 suspension expired
        0 settled expired
        1 suspension expired
        1 settled expired
        turn settled
    "#]],
    );
    check(
        "client!:expiry=approve server!:expiry=approve",
        "tick +100 forbidden; tick +1",
        &expect![[r#"
        0 suspended approval
        1 suspended approval
        0 suspension expired
        0 settled denied
        1 suspension expired
        1 settled denied
        turn settled
    "#]],
    );
    check(
        "server!:expiry=deny human:expiry=answer",
        "tick +100 forbidden",
        &expect![[r#"
        0 suspended approval
        1 suspended elicitation
        0 suspension expired
        0 settled denied
        1 suspension expired
        1 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn expiry_is_a_resolution_of_its_own_and_comes_once() {
    check(
        "server!",
        "tick +99; tick +1; tick +1; approve 0",
        &expect![[r#"
        0 suspended approval
        0 suspension expired
        0 settled expired
        turn settled
        refused: this approval is no longer open: nobody answered it in time
    "#]],
    );
    check(
        "server!:expiry=deny server",
        "tick +100 alive; finish 1",
        &expect![[r#"
        0 suspended approval
        1 started #1
        0 suspension expired
        0 settled denied
        1 lease extended
        1 settled ok
        turn settled
    "#]],
    );
    check(
        "server!:expiry=approve",
        "tick +100; finish 0",
        &expect![[r#"
        0 suspended approval
        0 suspension expired
        0 started #1
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "human:expiry=answer",
        "tick +100",
        &expect![[r#"
        0 suspended elicitation
        0 suspension expired
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "client!",
        "approve 0; tick +1 attended; tick +10 attended; tick +100",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 suspended client_exec
        0 client awaited until None
        0 suspension expired
        0 settled expired
        turn settled
    "#]],
    );
}

#[test]
fn a_call_without_a_client_ends_unavailable_after_its_grace() {
    check(
        "client",
        "tick +4; tick +1; result 0",
        &expect![[r#"
        0 suspended client_exec
        0 settled unavailable
        turn settled
        refused: this client call is no longer open: it was withdrawn, because its call ended
    "#]],
    );
    check(
        "client",
        "tick +5 attended; tick +20 attended; left 0; tick +5; result 0",
        &expect![[r#"
        0 suspended client_exec
        0 client awaited until None
        0 client awaited until Some(30)
        0 settled unavailable
        turn settled
        refused: this client call is no longer open: it was withdrawn, because its call ended
    "#]],
    );
    // While another host runs a call, only that host extends its lease. When it has ended, the call runs again.
    check(
        "server",
        "restart elsewhere; tick +200 elsewhere; tick +1; finish 0",
        &expect![[r#"
        0 started #1
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
    // A host that was just started gives its clients the time to come back.
    check(
        "client",
        "tick +20 opened; tick +5",
        &expect![[r#"
        0 suspended client_exec
        0 client awaited until Some(25)
        0 settled unavailable
        turn settled
    "#]],
    );
}

#[test]
fn what_a_denial_does_to_siblings() {
    let calls = "server! server human server:plan=denied";
    check_with(
        Rejection::ContinueSiblings,
        calls,
        "deny 0; finish 1; answer 2",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        0 resolved deny by ann
        0 settled denied
        1 settled ok
        2 resolved answer by ann
        2 settled ok
        turn settled
    "#]],
    );
    check_with(
        Rejection::CancelSiblings,
        calls,
        "deny 0; finish 1; answer 2",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        0 resolved deny by ann
        0 settled denied
        1 settled cancelled_by_sibling
        2 settled cancelled_by_sibling
        turn settled
        refused: this question is no longer open: it was withdrawn, because its call ended
    "#]],
    );
    check_with(
        Rejection::AbortTurn,
        calls,
        "finish 1; deny 0",
        &expect![[r#"
        0 suspended approval
        1 started #1
        2 suspended elicitation
        3 settled denied
        1 settled ok
        0 resolved deny by ann
        0 settled denied
        2 settled cancelled_by_sibling
        turn aborted
    "#]],
    );
}

#[test]
fn cancelled_calls_say_whether_they_had_started() {
    let mut world = submit("server server! human client client!", Rejection::default()).unwrap();
    world.step("cancel");
    let messages = world.turn.calls.iter().map(|call| {
        let (_, message) = call.outcome().and_then(|outcome| outcome.error(call.has_started())).unwrap();
        (call.has_started(), message.contains("may have taken effect"))
    });
    assert_eq!(messages.collect::<Vec<_>>(), [true, false, false, true, false].map(|started| (started, started)));
    let mut world = submit("server!:recovery=ask client!", Rejection::default()).unwrap();
    world.step("approve 0");
    world.step("approve 1");
    world.step("restart");
    world.step("cancel");
    let started = world.turn.calls.iter().map(crate::Call::has_started);
    assert_eq!(started.collect::<Vec<_>>(), [true, true], "a call in doubt, and one that a client has");
}

#[test]
fn calls_that_a_client_may_have_run_say_so() {
    for (calls, steps, outcome, started) in [
        ("client", "tick +1 attended; tick +100", Outcome::Expired, true),
        ("client!", "tick +100", Outcome::Expired, false),
        ("human", "tick +100", Outcome::Expired, false),
        ("client", "tick +1 attended; left 0; tick +5", Outcome::Unavailable, true),
        ("client!", "approve 0; tick +5", Outcome::Unavailable, true),
    ] {
        let mut world = submit(calls, Rejection::default()).unwrap();
        steps.split("; ").for_each(|step| drop(world.step(step)));
        let call = &world.turn.calls[0];
        assert_eq!(call.outcome(), Some(&outcome), "{calls}: {steps}");
        let (_, message) = outcome.error(call.has_started()).unwrap();
        assert_eq!(message.contains("may have taken effect"), started, "{calls}: {steps}: {message}");
    }
}
