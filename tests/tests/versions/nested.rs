//! A data folder with nested turns: calls that wait for others, at two depths, and a refusal that a journal has.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, illegal};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes};
use toolgate_tests::steps::open_step;

use super::folders::{OF_PROGRAM, audit_continues, opened_with, packed};
use super::root;

const ARCHIVE: &str = "data-format-7-nested.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_NESTED_ARCHIVE";

fn setup(calls: &str) -> Setup {
    let tools = json!([{"name": "note"}, {"name": "pay", "approval": "requires-approval"}]);
    Setup::default()
        .settings("expires_ms = 3000000000000")
        .component("program", illegal("program"))
        .component("desk", fixture(&tools))
        .tables(&format!("{OF_PROGRAM}\ngrants.calls = {calls}"))
}

/// An operation of a program: these calls together.
fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<_> = calls.iter().map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments})).collect();
    json!({"do": "call", "calls": calls})
}

fn program(operations: &[Value]) -> Value {
    json!({"program": operations})
}

/// The approval of this amount.
fn approval(by: &Client, amount: u64) -> Value {
    by.until("/v1/pending?tool=pay&conversation=c", |answer| {
        let listed: Value = serde_json::from_str(&answer.text).unwrap();
        let open = listed["suspensions"].as_array().unwrap().iter().find(|open| open["arguments"]["amount"] == amount);
        open.cloned()
    })
}

fn approve(by: &Client, amount: u64) {
    let open = approval(by, amount);
    let _ = by.resolve(open["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
}

/// A host whose calls wait.
fn made() -> Host {
    let host = setup(r#"["note", "pay", "run"]"#).start();
    let submit = |id: &str, operations: &[Value]| {
        host.agent.submit("c", json!([{"id": id, "tool": "run", "arguments": program(operations)}]))
    };
    let pay = |amount: u64| ("pay", json!({"amount": amount}));
    let ended = submit("ended", &[calls(&[("note", json!({"text": "x"})), pay(1)])]);
    approve(&host.approver, 1);
    assert_eq!(outcomes(&host.agent.settled(&ended)), ["ok"]);
    let _ = submit("waits", &[calls(&[("note", json!({"text": "y"})), pay(2)])]);
    let inner = program(&[calls(&[pay(3)])]);
    let _ = submit("deep", &[calls(&[("run", inner)])]);
    let _ = (approval(&host.approver, 2), approval(&host.approver, 3));
    let refused = submit("refused", &[calls(&[("other", json!({}))]), json!({"do": "ask", "prompt": "Go on?"})]);
    let _ = open_step(&host.agent, &refused, 1);
    host
}

/// Everything that waits in the folder goes on. The grant has changed meanwhile. The refusal in the journal is of `refused`.
fn goes_on(archive: &Path, refused: &str) {
    let mut host = opened_with(archive.to_str().unwrap(), setup(r#"["*"]"#));
    let turns = host.agent.get("/v1/conversations/c/turns").ok(200)["turns"].clone();
    let turn = |call: &str| {
        let turn = turns.as_array().unwrap().iter().find(|turn| turn["calls"][0]["id"] == call);
        let turn = turn.unwrap_or_else(|| panic!("{call} is not in {turns}"));
        json!({"conversation": "c", "turn": turn["turn"]})
    };
    let result = |call: &str| host.agent.settled(&turn(call))["calls"][0]["content"]["result"].clone();

    assert_eq!(result("ended"), json!([[{"text": "x"}, {"amount": 1}]]));
    approve(&host.approver, 2);
    assert_eq!(result("waits"), json!([[{"text": "y"}, {"amount": 2}]]));
    let deepest = approval(&host.approver, 3);
    assert_eq!((&deepest["parent"]["depth"], &deepest["parent"]["conversation"]), (&json!(2), &json!("~c")));
    approve(&host.approver, 3);
    assert_eq!(result("deep"), json!([[[[{"amount": 3}]]]]));

    let asked = open_step(&host.agent, &turn("refused"), 1);
    let yes = json!({"decision": "answer", "data": "yes"});
    let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), yes).ok(200);
    let results = result("refused");
    let error = format!("{refused} may not call \"other\"");
    assert!(results[0]["error"].as_str().unwrap().contains(&error), "{results}");
    assert_eq!(results[1], "yes");

    audit_continues(&mut host);
}

#[test]
fn folder_with_nested_turns_is_packed_and_opened() {
    let (_host, archive) = packed(made(), ARCHIVE, KEEP);
    goes_on(&archive, "the plugin program");
}

#[test]
fn nested_turns_of_an_older_host_go_on() {
    goes_on(&root().join("tests/fixtures").join(ARCHIVE), "this plugin");
}
