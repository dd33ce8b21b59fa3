//! Nested turns: a durable call waits for one, and the turn knows its parent.

use std::sync::Arc;

use expect_test::expect;

use super::{RecordedTurn, check, submit};
use crate::{
    Json, Outcome,
    event::Rejection,
    nested::{NestedCall, NestedTurn, Parent, refused},
    outcome::{Failure, FailureCode},
    turn::Input,
};

/// This many calls of a tool.
pub(super) fn calls(count: usize) -> Arc<[NestedCall]> {
    vec![NestedCall { tool: "t".into(), arguments: Json::unchecked("{}") }; count].into()
}

impl RecordedTurn {
    /// The end of the last nested turn of the first call, with these results.
    pub(super) fn returned(&self, results: &str) -> Input {
        let nested = self.turn.calls[0].nested().last().unwrap();
        Input::Returned { turn: nested.turn, results: Json::unchecked(results) }
    }
}

fn world() -> RecordedTurn {
    submit("server:durable=yes", Rejection::ContinueSiblings).unwrap()
}

#[test]
fn call_waits_for_a_nested_turn_and_continues_with_its_results() {
    check(
        "server:durable=yes",
        "call 0; approve 0; result 0; return [1,2]; return [3]; call 0; return [4]; finish 0",
        &expect![[r#"
            0 started #1
            0 suspended children
            refused: the call waits for the calls of a nested turn, and nobody can end that wait; answer or cancel those calls
            refused: the call waits for the calls of a nested turn, and nobody can end that wait; answer or cancel those calls
            0 resolved result by system
            0 resumed #1
            0 suspended children
            0 resolved result by system
            0 resumed #1
            0 settled ok
            turn settled
        "#]],
    );
}

#[test]
fn cancelled_call_takes_no_results() {
    check(
        "server:durable=yes",
        "call 0; cancel; return [1]",
        &expect![[r#"
            0 started #1
            0 suspended children
            cancelled
            0 settled cancelled
            turn cancelled
        "#]],
    );
}

#[test]
fn each_nested_turn_has_its_own_id_and_call_ids() {
    let mut world = world();
    for step in ["call 0", "return [1]", "call 0"] {
        world.step(step);
    }
    let nested: Vec<&NestedTurn> = world.turn.calls[0].nested().collect();
    let ids: Vec<_> = nested.iter().flat_map(|nested| nested.ids()).collect();
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{ids:?}");
    assert_eq!(ids[1].as_str(), format!("{}.2", nested[0].turn));
}

#[test]
fn result_is_untrusted_if_one_of_a_nested_turn_is() {
    for (results, is_trusted) in [
        (r#"[{"ok":true,"result":{"trusted":false}},{"ok":false,"error":{"code":"denied","message":"no"}}]"#, true),
        (r#"[{"ok":true,"result":1},{"ok":true,"result":2,"trusted":false}]"#, false),
        (r#"[{"ok":false,"error":{"code":"failed","message":"x"},"trusted":false}]"#, false),
    ] {
        let mut world = world();
        world.step("call 0");
        let input = world.returned(results);
        world.decide(input).unwrap();
        world.step("finish 0");
        let outcome = world.turn.calls[0].outcome().unwrap();
        assert!(matches!(outcome, Outcome::Ok { trusted, .. } if *trusted == is_trusted), "{outcome:?}");
    }
}

fn message(world: &RecordedTurn) -> String {
    match world.turn.calls[0].outcome() {
        Some(Outcome::Failed(Failure { code: FailureCode::LimitExceeded, message })) => message.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn depth_of_turns_is_limited() {
    for (depth, is_allowed) in [(1, true), (2, false)] {
        let mut world = world();
        world.settings.nesting_depth = 2;
        let parent = Parent {
            conversation: world.turn.conversation.clone(),
            turn: world.turn.id,
            call: world.turn.calls[0].id.clone(),
            plugin: world.turn.calls[0].pinned.as_ref().unwrap().plugin.clone(),
            tool: "t".into(),
            depth,
        };
        world.turn.parent = Some(Box::new(parent));
        world.step("call 0");
        assert_eq!(world.turn.calls[0].open().is_some(), is_allowed);
        if !is_allowed {
            assert!(message(&world).contains("`nesting_depth`"));
        }
    }
}

#[test]
fn calls_of_all_nested_turns_of_a_call_are_limited() {
    let mut world = world();
    world.settings.nested_calls = 3;
    world.step("call 0");
    world.step("return [1]");
    world.step("call 0");
    assert!(message(&world).contains("more than 3 calls of other tools (`nested_calls`)"));
}

#[test]
fn bytes_of_results_are_limited() {
    let mut world = world();
    world.settings.step_bytes = 20;
    world.step("call 0");
    // The names and arguments of the two calls.
    assert_eq!(world.turn.calls[0].step_bytes(), 6);
    let input = world.returned(r#"["123456789012345"]"#);
    world.decide(input).unwrap();
    assert!(message(&world).contains("`step_bytes`"));
}

#[test]
fn failure_that_a_client_reports_is_marked() {
    for (tools, step) in [("client", "error 0"), ("server", "fail 0")] {
        let mut world = submit(tools, Rejection::ContinueSiblings).unwrap();
        world.step(step);
        let results = world.turn.nested_results().unwrap();
        let is_marked = results.as_str().ends_with(r#"},"trusted":false}]"#);
        assert_eq!(is_marked, tools == "client", "{results}");
    }
}

#[test]
fn results_say_how_each_call_ended() {
    let mut world = submit("server server! server! client", Rejection::ContinueSiblings).unwrap();
    assert_eq!(world.turn.nested_results(), None, "it has not ended");
    // The third call is identical to the second one.
    for step in ["finish 0", "deny 1", "tick +200 attended"] {
        world.step(step);
    }
    let results = world.turn.nested_results().unwrap();
    let value: Vec<String> = results.as_str().split("},{").map(|each| each.chars().take(36).collect()).collect();
    expect![[r#"
        [
            "[{\"ok\":true,\"result\":1",
            "\"ok\":false,\"error\":{\"code\":\"denied\",",
            "\"ok\":false,\"error\":{\"code\":\"denied\",",
            "\"ok\":false,\"error\":{\"code\":\"expired\"",
        ]
    "#]]
    .assert_debug_eq(&value);
    let failure = Outcome::Failed(Failure::new(FailureCode::Busy, "later"));
    let one = r#"{"ok":false,"error":{"code":"busy","message":"later"}}"#;
    assert_eq!(refused(2, &failure).as_str(), format!("[{one},{one}]"));
}
