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
fn last_run_with_a_result_is_progress() {
    // Five runs record a result, and four record nothing more. They are killed, or cannot be continued, or their lease ends.
    for how in ["restart", "repeat 0", "tick +1000"] {
        let script = [1, 2, 3, 4, 5, 5, 5, 5, 5].map(|run| format!("{how} recorded={run}")).join("; ");
        check(
            "server:durable=yes",
            &script,
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
