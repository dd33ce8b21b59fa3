//! Runs that ended without an outcome: killed ones, those that were given up, and expired leases.

use expect_test::expect;

use super::check;

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
