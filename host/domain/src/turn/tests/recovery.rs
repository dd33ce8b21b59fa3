//! Runs that ended without an outcome: killed ones, those that were given up, and expired leases.

use expect_test::expect;

use super::{check, submit};
use crate::{
    Timestamp,
    doubt::{DecidedRequest, DoubtfulRequest, DoubtfulRequests, RequestDecision},
    event::Rejection,
};

/// Requests that a kill left in doubt.
pub(super) fn requests(entries: &[u32]) -> DoubtfulRequests {
    let at = Timestamp::from_millis(0);
    let request = |entry: &u32| DoubtfulRequest { entry: *entry, request: "http POST /".into(), at };
    DoubtfulRequests::new(entries.iter().map(request).collect())
}

#[test]
fn a_killed_run_is_recovered_as_its_tool_says() {
    check(
        "server",
        "restart; finish 0",
        &expect![[r#"
        0 started #1
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server",
        "restart; restart; restart; restart; restart",
        &expect![[r#"
        0 started #1
        0 started #2
        0 started #3
        0 started #4
        0 started #5
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=fail",
        "restart",
        &expect![[r#"
        0 started #1
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=ask",
        "restart; approve 0; finish 0",
        &expect![[r#"
        0 started #1
        0 suspended approval in doubt #1
        0 resolved approve by ann
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server!:recovery=ask",
        "approve 0; restart; deny 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 started #1
        0 suspended approval in doubt #1
        0 resolved deny by ann
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server:recovery=ask",
        "restart; tick +100",
        &expect![[r#"
        0 started #1
        0 suspended approval in doubt #1
        0 suspension expired
        0 settled in_doubt
        turn settled
    "#]],
    );
}

#[test]
fn the_end_of_a_run_that_was_given_up_is_no_outcome() {
    check(
        "server server",
        "restart; late 0; finish 0; cancel; finish 1",
        &expect![[r#"
            0 started #1
            1 started #1
            0 started #2
            1 started #2
            0 settled ok
            cancelled
            1 settled cancelled
            turn cancelled
        "#]],
    );
}

#[test]
fn an_expired_lease_is_extended_for_a_live_guest_or_recovered() {
    check(
        "server",
        "tick +89; tick +1 alive; tick +30 alive; tick +30; finish 0",
        &expect![[r#"
        0 started #1
        0 lease extended
        0 lease extended
        0 started #2
        0 settled ok
        turn settled
    "#]],
    );
}

#[test]
fn requests_in_doubt_are_decided_as_the_tool_says() {
    check(
        "server:durable=1,recovery=retry",
        "restart; doubt 0; finish 0",
        &expect![[r#"
        0 started #1
        0 started #2
        0 suspended approval in doubt {"2":"undecided","5":"undecided"}
        0 resolved approve by system
        0 resumed #2
        0 settled ok
        turn settled
    "#]],
    );
    check(
        "server:durable=1,recovery=fail",
        "restart; doubt 0",
        &expect![[r#"
        0 started #1
        0 started #2
        0 settled in_doubt
        turn settled
    "#]],
    );
    check(
        "server!:durable=1,recovery=ask",
        "approve 0; restart; doubt 0; approve 0; decide 0 {\"2\":\"fail\"}; decide 0 {\"5\":\"send_again\",\"2\":\"fail\"}; finish 0",
        &expect![[r#"
        0 suspended approval
        0 resolved approve by ann
        0 started #1
        0 started #2
        0 suspended approval in doubt {"2":"undecided","5":"undecided"}
        refused: the answer is not valid
        refused: the answer is not valid
        0 resolved approve by ann
        0 resumed #2
        0 settled ok
        turn settled
    "#]],
    );
    let mut world = submit("server:durable=1,recovery=retry", Rejection::default()).unwrap();
    let _ = world.step("restart");
    assert_eq!(world.step("doubts 0"), "0 settled in_doubt\nturn settled\n", "too many for one question");
    let mut world = submit("server:durable=1,recovery=retry", Rejection::default()).unwrap();
    let _ = ["restart", "doubt 0"].map(|step| world.step(step));
    let is_again = |decided: DecidedRequest| decided.decision == RequestDecision::SendAgain;
    assert!(world.turn.calls[0].decided_requests().all(is_again));
    for (end, last) in [("deny 0", "0 resolved deny by ann"), ("tick +100", "0 suspension expired")] {
        let mut world = submit("server:durable=1,recovery=ask", Rejection::default()).unwrap();
        let _ = ["restart", "doubt 0"].map(|step| world.step(step));
        assert_eq!(world.step(end), format!("{last}\n0 settled in_doubt\nturn settled\n"));
    }
}

#[test]
fn decisions_about_requests_are_inputs_of_the_next_run() {
    let mut world = submit("server!:durable=1,recovery=ask", Rejection::default()).unwrap();
    let _ = ["approve 0", "restart", "ask 0", "answer 0", "restart", "doubt 0"].map(|step| world.step(step));
    let call = |world: &super::RecordedTurn| world.turn.calls[0].clone();
    let before = call(&world);
    assert_eq!((before.run(), before.decided_requests().count()), (4, 0));
    assert!(world.step("decide 0 {\"2\":{\"status\":201},\"5\":\"fail\"}").contains("resumed"));
    let after = call(&world);
    assert_eq!(after.run(), 5, "a later run has another number");
    let done = RequestDecision::Done { status: 201, body: "".into() };
    let expected = [(2, done), (5, RequestDecision::Fail)];
    let expected = expected.map(|(entry, decision)| DecidedRequest { entry, decision });
    assert_eq!(after.decided_requests().collect::<Vec<_>>(), expected);
    // The decision is about requests, and not about the call.
    assert_eq!(
        (&after.arguments, &after.approver, after.approved),
        (&before.arguments, &before.approver, before.approved)
    );
    assert_eq!(after.approvers(), before.approvers());
}
