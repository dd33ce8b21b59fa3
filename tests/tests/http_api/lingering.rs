//! Instances that are kept while their calls wait (`limits.linger_ms`). Nobody sees a difference, except that less is repeated.

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::{answer, waiting};

/// A host that keeps instances longer than any test.
fn keeping() -> Host {
    Setup::with(&["rollout"]).tables("[plugin.rollout.limits]\nlinger_ms = 3600000").start()
}

/// The instances that are kept now, and how many were kept, resumed and dropped.
fn lingering(host: &Host) -> [u64; 4] {
    let metrics = host.admin.get("/metrics").text;
    let metric = |name: &str| {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name} is not in {metrics}")).parse().unwrap()
    };
    let total = |what| metric(&format!("toolgate_lingering_instances_total{{what=\"{what}\"}}"));
    [metric("toolgate_lingering_instances"), total("kept"), total("resumed"), total("dropped")]
}

fn rollout(host: &Host) -> (Value, Value) {
    let call = json!({"id": "r", "tool": "roll_out", "arguments": {"version": "1.4.2", "settles_s": 1}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let asked = waiting(host, &turn, 1);
    (turn, asked)
}

/// Answers the steps of a rollout from the first one on.
fn ends(host: &Host, turn: &Value, asked: &Value) -> Value {
    let live = json!({"decision": "answer", "data": {"environment": "live"}});
    answer(host, asked, &live, &json!({"decision": "answer", "data": {"environment": "test"}}));
    answer(host, &waiting(host, turn, 2), &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    answer(host, &waiting(host, turn, 4), &json!({"decision": "healthy"}), &json!({"decision": "broken"}));
    let settled = host.agent.settled(turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    settled
}

#[test]
fn quick_answers_continue_the_instance_of_a_call() {
    let host = keeping();
    let (turn, asked) = rollout(&host);
    assert_eq!(lingering(&host), [1, 1, 0, 0]);
    let settled = ends(&host, &turn, &asked);
    assert_eq!(lingering(&host), [0, 4, 4, 0]);
    assert_eq!(settled["calls"][0]["content"]["result"]["plan"]["environment"], "live", "{settled:#}");
    // Each run has its own log, as with a new instance for each.
    let log = host.agent.get("/v1/conversations/c/calls/r/log").ok(200);
    let line = |run: &Value| (run["run"].clone(), run["lines"][0]["message"].clone(), run["lines"][1].clone());
    let lines: Vec<_> = log["runs"].as_array().unwrap().iter().map(line).collect();
    let only = |run: u32, text: &str| (json!(run), json!(text), Value::Null);
    assert_eq!(lines, [only(2, "it goes to live"), only(5, "people say that it is healthy")], "{log:#}");
}

#[test]
fn cancelled_call_keeps_no_instance() {
    let host = keeping();
    let (turn, _) = rollout(&host);
    assert_eq!(lingering(&host), [1, 1, 0, 0]);
    assert_eq!(host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200)["state"], "cancelled");
    assert_eq!(lingering(&host), [0, 1, 0, 1]);
}

#[test]
fn kill_loses_only_the_instance() {
    let mut host = keeping();
    let (turn, asked) = rollout(&host);
    host.restart();
    assert_eq!(lingering(&host), [0; 4]);
    ends(&host, &turn, &asked);
    assert_eq!(lingering(&host), [0, 3, 3, 0], "the first of its waits is repeated");
}

#[test]
fn new_version_of_a_plugin_drops_its_kept_instances() {
    let host = keeping();
    let (turn, asked) = rollout(&host);
    let mut events = host.admin.events("/v1/events?after=now");
    host.drop_in("rollout", &fixture(&json!([{"name": "roll_out", "parameters": {"type": "object"}}])));
    events.named("plugin.loaded");
    assert_eq!(lingering(&host), [0, 1, 0, 1]);
    let settled = ends(&host, &turn, &asked);
    assert_eq!(settled["calls"][0]["content"]["result"]["plan"]["environment"], "live", "{settled:#}");
}
