//! A durable call waits in the middle of its code. A kill of the host costs it nothing and repeats nothing.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};

/// The open step of a turn, once it has one from this number on.
fn waiting(host: &Host, turn: &Value, step: u64) -> Value {
    host.agent.until(&path(turn), |answer| {
        let turn: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(turn["state"], "open", "{turn:#}");
        turn["pending"].as_array().unwrap().iter().find(|open| open["step"].as_u64() >= Some(step)).cloned()
    })
}

/// Answers a step, and tries to answer it again with something else.
fn answer(host: &Host, step: &Value, given: &Value, other: &Value) {
    let id = step["suspension"].as_str().unwrap();
    assert_eq!(host.approver.resolve(id, given.clone()).ok(200)["ok"], true);
    assert_eq!(host.approver.resolve(id, other.clone()).status, 409);
}

#[test]
fn durable_call_survives_a_kill_at_each_of_its_waits() {
    let mut host = Setup::with(&["rollout"]).start();
    let call = json!({"id": "r", "tool": "roll_out", "arguments": {"version": "1.4.2", "settles_s": 1}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);

    let asked = waiting(&host, &turn, 1);
    assert_eq!((&asked["kind"], &asked["on_expiry"]), (&json!("elicitation"), &json!("continue")), "{asked:#}");
    host.restart();
    let place = |name: &str| json!({"decision": "answer", "data": {"environment": name}});
    assert_eq!(host.approver.resolve(asked["suspension"].as_str().unwrap(), json!({"decision": "answer"})).status, 422);
    answer(&host, &asked, &place("live"), &place("test"));

    let proposed = waiting(&host, &turn, 2);
    host.restart();
    let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    assert_eq!((&proposed["kind"], &proposed["arguments"]), (&json!("approval"), &plan), "{proposed:#}");
    let edited = |member: &str, value: Value| {
        let mut plan = plan.clone();
        plan[member] = value;
        json!({"decision": "approve", "arguments": plan})
    };
    let id = proposed["suspension"].as_str().unwrap();
    assert_eq!(host.approver.resolve(id, edited("environment", json!("test"))).status, 422, "not editable");
    answer(&host, &proposed, &edited("instances", json!(2)), &json!({"decision": "approve"}));

    // On a slow machine it may have ended already.
    let sleeps = waiting(&host, &turn, 3);
    if sleeps["kind"] == "timer" {
        let id = sleeps["suspension"].as_str().unwrap();
        assert_eq!(host.approver.resolve(id, json!({"decision": "approve"})).status, 409, "nobody ends a sleep");
    }
    let listed = host.approver.get("/v1/pending").ok(200);
    let mut listed = listed["suspensions"].as_array().unwrap().iter();
    assert!(listed.all(|open| open["kind"] != "timer"), "people do not see a sleep");
    host.restart();

    let last = waiting(&host, &turn, 4);
    host.restart();
    answer(&host, &last, &json!({"decision": "healthy"}), &json!({"decision": "broken"}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"]);
    let log = host.agent.get("/v1/conversations/c/calls/r/log").ok(200);
    let line = |run: &Value| (run["run"].clone(), run["lines"][0]["message"].clone(), run["lines"][1].clone());
    let lines: Vec<_> = log["runs"].as_array().unwrap().iter().map(line).collect();
    let [first, second] = [(2, "it goes to live"), (5, "people say that it is healthy")];
    let only = |(run, text): (u32, &str)| (json!(run), json!(text), Value::Null);
    assert_eq!(lines, [only(first), only(second)], "each run has its own log, and repeats no line: {log:#}");
    let call = &settled["calls"][0];
    assert_eq!(call["content"]["result"]["plan"]["instances"], 2, "{call:#}");
    assert_eq!((&call["attempt"], &call["arguments"]["version"]), (&json!(1), &json!("1.4.2")), "{call:#}");
}
