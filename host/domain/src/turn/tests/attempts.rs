//! The attempts at a durable call: a step and a recorded result are progress, and the attempts before it do not count.

use expect_test::expect;

use super::check;

#[test]
fn killed_run_is_repeated_as_often_as_others() {
    check(
        "server:durable=yes,recovery=fail",
        "ask 0; answer 0; restart; repeat 0; repeat 0; repeat 0; repeat 0",
        &expect![[r#"
            0 started #1
            0 suspended elicitation
            0 resolved answer by ann
            0 resumed #1
            0 started #2
            0 started #3
            0 started #4
            0 started #5
            0 settled in_doubt
            turn settled
        "#]],
    );
}

#[test]
fn runs_that_recorded_a_result_do_not_end_a_call() {
    check(
        "server:durable=yes",
        "restart recorded=1; restart recorded=2; restart recorded=3; restart recorded=4; restart recorded=5; restart recorded=5; \
         restart recorded=5; restart recorded=5; restart recorded=5",
        &expect![[r#"
            0 started #1
            0 started #2
            0 started #3
            0 started #4
            0 started #5
            0 started #6
            0 started #7
            0 started #8
            0 started #9
            0 settled in_doubt
            turn settled
        "#]],
    );
}

#[test]
fn run_that_cannot_be_continued_counts_from_the_last_result_too() {
    // Four kills with progress, and then runs that fail while they repeat.
    check(
        "server:durable=yes",
        "restart recorded=1; restart recorded=2; restart recorded=3; restart recorded=4; repeat 0 recorded=5; \
         repeat 0 recorded=5; repeat 0 recorded=5; repeat 0 recorded=5; repeat 0 recorded=5",
        &expect![[r#"
            0 started #1
            0 started #2
            0 started #3
            0 started #4
            0 started #5
            0 started #6
            0 started #7
            0 started #8
            0 started #9
            0 settled in_doubt
            turn settled
        "#]],
    );
}

#[test]
fn run_whose_lease_ended_counts_from_the_last_result_too() {
    check(
        "server:durable=yes",
        "tick +1000 recorded=1; tick +1000 recorded=2; tick +1000 recorded=3; tick +1000 recorded=4; tick +1000 recorded=5; \
         tick +1000 recorded=5; tick +1000 recorded=5; tick +1000 recorded=5; tick +1000 recorded=5",
        &expect![[r#"
            0 started #1
            0 started #2
            0 started #3
            0 started #4
            0 started #5
            0 started #6
            0 started #7
            0 started #8
            0 started #9
            0 settled in_doubt
            turn settled
        "#]],
    );
}

#[test]
fn crashes_before_the_last_step_do_not_end_a_call() {
    check(
        "server:durable=yes",
        "restart; repeat 0; restart; restart; ask 0; answer 0; restart; repeat 0; ask 0; answer 0; restart; restart; \
         repeat 0; repeat 0; repeat 0",
        &expect![[r#"
            0 started #1
            0 started #2
            0 started #3
            0 started #4
            0 started #5
            0 suspended elicitation
            0 resolved answer by ann
            0 resumed #5
            0 started #6
            0 started #7
            0 suspended elicitation
            0 resolved answer by ann
            0 resumed #7
            0 started #8
            0 started #9
            0 started #10
            0 started #11
            0 settled in_doubt
            turn settled
        "#]],
    );
}
