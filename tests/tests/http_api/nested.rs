//! A durable call calls tools of another plugin. The nested turn is approved, shown, cancelled and survives a kill.

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::waiting;

/// A host with a durable tool that calls `note`, and `pay` with an approval.
fn host() -> Host {
    let tools = json!([{"name": "note"}, {"name": "pay", "approval": "requires-approval"}]);
    let tables = "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true\ngrants.config = {}\n\
        grants.http = [{ url = \"https://api.example.com/\" }]\ngrants.calls = [\"note\", \"pa*\"]";
    Setup::default().component("program", illegal("program")).component("desk", fixture(&tools)).tables(tables).start()
}

/// A turn whose call waits for its nested turn, and that nested turn.
fn nested(host: &Host, calls: &Value) -> (Value, Value) {
    let program = json!([{"do": "call", "calls": calls}]);
    let turn = host.agent.submit("c", json!([{"id": "p", "tool": "run", "arguments": {"program": program}}]));
    let waits = waiting(host, &turn, 1);
    assert_eq!((&waits["kind"], &waits["nested"]["open"]), (&json!("children"), &json!(true)), "{waits:#}");
    let child = waits["nested"].clone();
    (turn, child)
}

fn both() -> Value {
    json!([{"tool": "note", "arguments": {"text": "paid"}}, {"tool": "pay", "arguments": {"amount": 5}}])
}

/// The approval of a call of the nested turn, among those of the conversation.
fn approval(host: &Host) -> Value {
    host.approver.until("/v1/pending?conversation=c", |answer| {
        let listed: Value = serde_json::from_str(&answer.text).unwrap();
        listed["suspensions"].as_array().unwrap().iter().find(|open| open["tool"] == "pay").cloned()
    })
}

#[test]
fn nested_turn_is_approved_after_a_kill_and_returns_its_results() {
    let mut host = host();
    let mut events = host.agent.events("/v1/conversations/c/events");
    let (turn, child) = nested(&host, &both());
    let asked = approval(&host);
    let parent = json!({
        "conversation": "c", "turn": turn["turn"], "call": "p", "plugin": "program", "tool": "run", "depth": 1,
    });
    assert_eq!((&asked["conversation"], &asked["parent"]), (&json!("~c"), &parent), "{asked:#}");
    let submitted = host.agent.get(&path(&child)).ok(200);
    assert_eq!((&submitted["parent"], &submitted["caller"]), (&parent, &json!("agent")), "{submitted:#}");
    // The agent's stream has its own turns only.
    let begun = events.until(|event| event.name == "call.suspended");
    assert!(begun.iter().all(|event| event.data["turn"] == turn["turn"]), "{begun:?}");
    assert_eq!(begun.last().unwrap().data["nested"]["turn"], child["turn"]);
    host.restart();

    let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
    let settled = host.agent.settled(&turn);
    let call = &settled["calls"][0];
    assert_eq!(call["content"]["result"], json!([[{"text": "paid"}, {"amount": 5}]]), "{settled:#}");
    let ended = json!([{"conversation": "~c", "turn": child["turn"], "tools": ["note", "pay"], "open": false}]);
    assert_eq!(call["nested"], ended, "{settled:#}");
    assert_eq!(outcomes(&host.agent.settled(&child)), ["ok", "ok"]);

    let started = host.agent.events("/v1/conversations/~c/events").named("turn.started");
    assert_eq!(started.data["parent"], parent);
    let calls = json!([{"id": "mine", "tool": "note", "arguments": {}}]);
    let _ = host.agent.post("/v1/conversations/~c/turns", &json!({"calls": calls})).problem(403, "not-allowed");
}

#[test]
fn show_prints_a_turn_and_its_nested_turns() {
    let host = host();
    let (turn, child) = nested(&host, &both());
    let asked = approval(&host);
    let [turn, child] = [&turn, &child].map(|turn| turn["turn"].as_str().unwrap());
    let shown = host.cli(Some(&host.agent), &["show", turn, "--conversation", "c"]).out;
    let branch = format!("waits for note, pay in {child}: toolgate show {child} --conversation '~c'");
    let through = format!("through     run of the plugin program, call p of {turn} in c");
    for part in [&branch, &through] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let id = asked["suspension"].as_str().unwrap();
    let shown = host.cli(Some(&host.approver), &["show", id]).out;
    assert!(shown.contains(&through), "{shown}");
}

#[test]
fn cancellation_of_a_turn_reaches_its_nested_turn() {
    let host = host();
    let (turn, child) = nested(&host, &both());
    let asked = approval(&host);
    host.agent.until(&path(&child), |answer| {
        let turn: Value = serde_json::from_str(&answer.text).unwrap();
        (turn["calls"][0]["outcome"] == "ok").then_some(())
    });
    let cancelled = host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200);
    assert_eq!(outcomes(&cancelled), ["cancelled"]);
    let ended = host.agent.settled(&child);
    assert_eq!((outcomes(&ended), &ended["state"]), (vec!["ok".into(), "cancelled".into()], &json!("cancelled")));
    let late = host.approver.resolve(asked["suspension"].as_str().unwrap(), json!({"decision": "approve"}));
    assert_eq!(late.problem(409, "stale")["state"], "withdrawn");
}

#[test]
fn tool_that_is_not_granted_is_not_called() {
    let host = host();
    let program =
        json!([{"do": "call", "calls": [{"tool": "note", "arguments": {}}, {"tool": "run", "arguments": {}}]}]);
    let turn = host.agent.submit("c", json!([{"id": "p", "tool": "run", "arguments": {"program": program}}]));
    let settled = host.agent.settled(&turn);
    let error = settled["calls"][0]["content"]["result"][0]["error"].as_str().unwrap();
    assert!(error.contains(r#"the plugin program may not call "run""#), "{settled:#}");
    let _ = host.agent.get("/v1/conversations/~c/turns").problem(404, "not-found");
}
