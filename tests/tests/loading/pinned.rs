//! A waiting call runs the exact component of its submission, even if its plugin changes meanwhile.

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, plugin};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, suspension_of};

/// Tools with the names of the lab's tools and other code: they return all arguments, not only the value.
fn other() -> Vec<u8> {
    fixture(&json!([{"name": "gated_echo", "approval": "requires-approval", "parameters": {"type": "object"}}]))
}

fn approved(host: &Host, turn: &Value) -> Value {
    assert_eq!(host.approver.resolve(&suspension_of(turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    let turn = host.agent.settled(turn);
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].clone()
}

#[test]
fn hot_reload_changes_no_waiting_call() {
    let mut host = Setup::default().component("p", plugin("lab")).start();
    let ask = |host: &Host| host.agent.call("c", "gated_echo", json!({"value": 1}));
    let [first, second, third, fourth] = [(); 4].map(|()| ask(&host));
    let mut events = host.admin.events("/v1/events?after=now");
    host.drop_in("p", &other());
    let replaced = events.named("plugin.loaded").data;
    assert_ne!(replaced["component"], first["calls"][0]["component"]);
    assert_eq!(approved(&host, &first), 1, "the approved component");
    let new = ask(&host);
    assert_eq!(new["calls"][0]["component"], replaced["component"]);
    assert_eq!(approved(&host, &new), json!({"value": 1}), "the live component");

    host.restart();
    assert_eq!(approved(&host, &second), 1, "after a restart");
    let mut events = host.admin.events("/v1/events?after=now");
    fs::remove_file(host.plugin_file("p")).unwrap();
    events.named("plugin.unloaded");
    assert_eq!(approved(&host, &third), 1, "without the plugin");
    host.restart();
    assert_eq!(approved(&host, &fourth), 1, "without the plugin after a restart");
}

#[test]
fn edit_is_checked_against_the_schema_at_submission() {
    let host = Setup::default().component("p", plugin("lab")).start();
    let turn = host.agent.call("c", "gated_echo", json!({"value": 1}));
    let mut events = host.admin.events("/v1/events?after=now");
    host.drop_in("p", &other());
    events.named("plugin.loaded");
    // The new version accepts any object. The version at submission needs a value.
    let answer = json!({"decision": "approve", "arguments": {"other": 2}});
    host.approver.resolve(&suspension_of(&turn), answer).problem(422, "invalid");
    let answer = json!({"decision": "approve", "arguments": {"value": 2}});
    assert_eq!(host.approver.resolve(&suspension_of(&turn), answer).ok(200)["ok"], true);
    assert_eq!(host.agent.settled(&turn)["calls"][0]["content"]["result"], 2);
}
