//! A durable call waits for an external system. A kill of the host costs it nothing, and the result reaches it by each of
//! three ways.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::outcomes;
use toolgate_tests::steps::waiting;

/// A host with a rollout that waits for the signal `health`.
fn rolled_out() -> (Host, Value, Value) {
    let host = Setup::with(&["rollout"]).start();
    let arguments = json!({"version": "1.4.2", "settles_s": 1, "signal": "health"});
    let call = json!({"id": "r", "tool": "roll_out", "arguments": arguments});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let answer = |step: u64, answer: Value| {
        let asked = waiting(&host, &turn, step);
        assert_eq!(host.approver.resolve(id(&asked), answer).ok(200)["ok"], true);
    };
    answer(1, json!({"decision": "answer", "data": {"environment": "live"}}));
    answer(2, json!({"decision": "approve"}));
    let wait = waiting(&host, &turn, 3);
    (host, turn, wait)
}

fn id(wait: &Value) -> &str {
    wait["suspension"].as_str().unwrap()
}

/// The call of a turn that ended well, with the result of the rollout.
fn rolled(host: &Host, turn: &Value, state: &str) -> Value {
    let settled = host.agent.settled(turn);
    assert_eq!(outcomes(&settled), ["ok"]);
    let call = settled["calls"][0].clone();
    assert_eq!((&call["content"]["result"]["state"], &call["trusted"]), (&json!(state), &json!(false)), "{call:#}");
    call
}

#[test]
fn result_by_id_ends_the_wait_after_a_kill() {
    let (mut host, turn, wait) = rolled_out();
    let metadata = json!({"version": "1.4.2", "environment": "live"});
    assert_eq!(
        (&wait["kind"], &wait["signal"], &wait["metadata"], &wait["on_expiry"]),
        (&json!("external"), &json!("health"), &metadata, &json!("continue"))
    );
    host.restart();
    let listed = host.approver.get("/v1/pending").ok(200);
    assert_eq!(listed["suspensions"], json!([]), "no approver is asked");
    let healthy = json!({"decision": "result", "data": {"healthy": true}});
    host.approver.resolve(id(&wait), healthy.clone()).problem(403, "not-allowed");
    let wrong = host.agent.resolve(id(&wait), json!({"decision": "result", "data": {"healthy": "yes"}}));
    assert_eq!(wrong.problem(422, "invalid")["errors"][0]["pointer"], "/data/healthy");
    assert_eq!(host.agent.resolve(id(&wait), healthy).ok(200)["state"], "result");
    host.agent.resolve(id(&wait), json!({"decision": "result", "data": {"healthy": false}})).problem(409, "stale");
    rolled(&host, &turn, "done");
    let closed = host.agent.get(&format!("/v1/suspensions/{}", id(&wait))).ok(200)["closed"].clone();
    assert_eq!((&closed["data"], &closed["trusted"]), (&json!({"healthy": true}), &json!(false)));
    let log = host.agent.get("/v1/conversations/c/calls/r/log").ok(200);
    assert!(log.to_string().contains("it is reported: no detail"), "{log:#}");
}

#[test]
fn result_by_link_ends_the_wait_after_a_kill() {
    let (mut host, turn, wait) = rolled_out();
    let link = host.agent.post(&format!("/v1/suspensions/{}/links", id(&wait)), &json!({})).ok(200);
    let link = link["url"].as_str().unwrap();
    host.restart();
    let system = host.stranger();
    let wrong = system.post(link, &json!({"healthy": 1}));
    assert_eq!(wrong.problem(422, "invalid")["errors"][0]["pointer"], "/data/healthy");
    let sick = json!({"healthy": false, "detail": "no answer"});
    assert_eq!(system.post(link, &sick).ok(200)["replayed"], false);
    host.restart();
    assert_eq!(host.stranger().post(link, &sick).ok(200)["replayed"], true, "the system repeats its request");
    host.stranger().post(link, &json!({"healthy": true})).problem(409, "stale");
    let call = rolled(&host, &turn, "rolled back");
    assert_eq!(call["content"]["result"]["reason"], "no answer", "{call:#}");
    let audit = host.admin.get("/v1/audit?action=result").ok(200);
    let entry = &audit["entries"][0];
    assert_eq!((&entry["by"], &entry["via"]), (&json!("agent"), &json!("link")), "{audit:#}");
}

#[test]
fn result_by_name_ends_the_wait_after_a_kill() {
    let (mut host, turn, _) = rolled_out();
    host.restart();
    let shown = host.cli(Some(&host.agent), &["show", turn["turn"].as_str().unwrap(), "--conversation", "c"]);
    for part in ["external", "signal      health", "toolgate signal c health 'RESULT AS JSON'"] {
        assert!(shown.out.contains(part), "{part}: {}{}", shown.out, shown.err);
    }
    let signal = |name: &str, result: &str| host.cli(Some(&host.agent), &["signal", "c", name, result, "--json"]);
    let unknown = signal("other", "{}");
    assert!(unknown.code != 0 && unknown.out.contains("there is no such wait for a signal"), "{}", unknown.out);
    let sent = signal("health", r#"{"healthy":true,"detail":"all checks pass"}"#);
    assert!(sent.code == 0 && sent.out.contains(r#""replayed":false"#), "{}{}", sent.out, sent.err);
    rolled(&host, &turn, "done");
    host.agent.post("/v1/conversations/c/signals/health", &json!({"healthy": true})).problem(409, "stale");
    // A client sees only calls that it carries out, so it does not learn how this wait ended.
    let client = host.token("tablet", &["client"], Some("c"));
    client.post("/v1/conversations/c/signals/health", &json!({"healthy": true})).problem(404, "not-found");
}
