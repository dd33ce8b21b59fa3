//! The operator lowers limits and grants while durable calls wait in the middle of their code. Recorded steps and results are not
//! checked again. New ones are, except against limits that guests can observe.

use serde_json::{Value, json};
use toolgate_tests::dev::change;
use toolgate_tests::effects::Server;
use toolgate_tests::host::Host;
use toolgate_tests::http::outcomes;
use toolgate_tests::steps::waiting;

use crate::durable::programs;

fn ask() -> Value {
    json!({"do": "ask", "prompt": "Go on?"})
}

fn set(key: &str) -> Value {
    json!({"do": "set", "key": key, "value": "v"})
}

fn send(server: &Server, body: &str) -> Value {
    json!({"do": "send", "method": "POST", "url": server.url("/add"), "body": body})
}

/// A call that waits for its step of this number.
fn waits(host: &Host, id: &str, step: u64, program: &[Value]) -> Value {
    let call = json!({"id": id, "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post(&format!("/v1/conversations/{id}/turns"), &json!({"calls": [call]})).ok(201);
    let _ = answered(host, &turn, 1..step);
    let _ = waiting(host, &turn, step);
    turn
}

/// Answers these steps of a turn.
fn answered(host: &Host, turn: &Value, steps: std::ops::Range<u64>) -> Value {
    for step in steps {
        let open = waiting(host, turn, step);
        let yes = json!({"decision": "answer", "data": "yes"});
        assert_eq!(host.approver.resolve(open["suspension"].as_str().unwrap(), yes).ok(200)["ok"], true);
    }
    turn.clone()
}

/// Answers the last step, and returns the call when it has ended.
fn ended(host: &Host, turn: &Value, step: u64) -> Value {
    let settled = host.agent.settled(&answered(host, turn, step..step + 1));
    let mut call = settled["calls"][0].clone();
    call["outcome"] = json!(outcomes(&settled)[0]);
    call
}

fn message(call: &Value) -> &str {
    call["content"]["error"]["message"].as_str().unwrap_or_else(|| panic!("it has failed: {call:#}"))
}

fn change_configuration(host: &mut Host, from: &str, to: &str) {
    change(&host.folder().join("toolgate.toml"), (from, to));
    host.restart();
}

#[test]
fn waiting_call_keeps_limits_that_its_guest_observes() {
    let server = Server::start();
    let mut host = programs(&server);
    let program = [send(&server, "x"), set("a"), ask(), send(&server, "y"), set("b")];
    let turn = waits(&host, "p", 1, &program);
    let limits =
        "[plugin.program.limits]\nhttp_requests = 1\nkeyvalue_written_bytes = 1\n[plugin.program.grants.config]";
    change_configuration(&mut host, "[plugin.program.grants.config]", limits);
    let call = ended(&host, &turn, 1);
    assert_eq!((&call["outcome"], &call["content"]["result"][3]["text"]), (&json!("ok"), &json!("y: 2")), "{call:#}");

    // A call that is accepted now has the new ones.
    let new = host.agent.call("new", "run", json!({"program": [send(&server, "x"), send(&server, "y")]}));
    let results = &host.agent.settled(&new)["calls"][0]["content"]["result"];
    assert!(results[0]["status"] == 200 && results[1]["error"].is_string(), "{results:#}");
    let new = host.agent.settled(&host.agent.call("new", "run", json!({"program": [set("a")]})));
    assert!(message(&new["calls"][0]).contains("keyvalue_written_bytes"), "{new:#}");
}

#[test]
fn withdrawn_grant_binds_only_the_next_operations() {
    let server = Server::start();
    let mut host = programs(&server);
    let recorded = [set("a"), set("b"), send(&server, "x"), ask()];
    let go_on = |last: &[Value]| [&recorded[..], last].concat();
    let reads = waits(&host, "reads", 1, &go_on(&[json!({"do": "get", "key": "b"}), send(&server, "y")]));
    let writes = waits(&host, "writes", 1, &go_on(&[set("c")]));
    let file = host.folder().join("toolgate.toml");
    change(
        &file,
        (
            "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true",
            "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = { bytes = 4194304, keys = 1 }",
        ),
    );
    change_configuration(&mut host, r#"methods = ["GET", "POST"]"#, r#"methods = ["GET"]"#);
    let call = ended(&host, &reads, 1);
    let results = &call["content"]["result"];
    assert_eq!((&results[2]["status"], &results[4]), (&json!(200), &json!("v")), "{call:#}");
    assert!(results[5]["error"].as_str().unwrap().contains("does not allow"), "{call:#}");
    assert_eq!(server.requests().len(), 2, "each call has sent its first request once, and no other");
    let call = ended(&host, &writes, 1);
    assert!(message(&call).contains("keys"), "{call:#}");
}

/// A call with recorded results of each kind, which waits. Then it reads, writes and sends more.
fn waits_with_results(host: &Host, server: &Server) -> Value {
    let get = json!({"do": "get", "key": "a"});
    let tried = json!({"do": "try", "operation": get});
    let config = json!({"do": "config", "name": "region"});
    waits(host, "p", 1, &[config.clone(), set("a"), get, send(server, "x"), ask(), config, tried, send(server, "y")])
}

#[test]
fn call_outlasts_the_grants_of_its_component() {
    let server = Server::start();
    let mut host = programs(&server);
    let turn = waits_with_results(&host, &server);
    let other = format!("component = \"sha256:{}\"", "0".repeat(64));
    change_configuration(&mut host, "component = \"any\"\ngrants.keyvalue", &format!("{other}\ngrants.keyvalue"));
    let tools = host.agent.get("/v1/tools").ok(200).to_string();
    assert!(!tools.contains("\"run\""), "it is not loaded for new calls: {tools}");
    let call = ended(&host, &turn, 1);
    let results = &call["content"]["result"];
    let before = json!(["eu", null, "v", {"status": 200, "text": "x: 1"}, "yes", "eu"]);
    assert_eq!(results.as_array().map(|all| &all[..6]), before.as_array().map(Vec::as_slice), "{call:#}");
    let denied = |result: &Value, text: &str| result["error"].as_str().is_some_and(|error| error.contains(text));
    assert!(denied(&results[6], "may not be used by this plugin"), "{call:#}");
    assert!(denied(&results[7], "does not allow"), "{call:#}");
    assert_eq!(server.requests().len(), 1, "nothing more is sent");
}

#[test]
fn call_outlasts_the_grant_of_its_key_value_data() {
    let server = Server::start();
    let mut host = programs(&server);
    let turn = waits_with_results(&host, &server);
    change_configuration(
        &mut host,
        "component = \"any\"\ngrants.keyvalue = true\n[plugin.program.grants.config]",
        "component = \"any\"\n[plugin.program.grants.config]",
    );
    let call = ended(&host, &turn, 1);
    let results = &call["content"]["result"];
    assert_eq!((&results[2], &results[7]), (&json!("v"), &json!({"status": 200, "text": "y: 2"})), "{call:#}");
    assert!(results[6]["error"].as_str().is_some_and(|error| error.contains("may not be used")), "{call:#}");
}

#[test]
fn lowered_bounds_of_a_call_bind_only_what_it_does_next() {
    let mut host = programs(&Server::start());
    let count = || json!({"do": "increment", "key": "n", "by": 1});
    let ends = waits(&host, "ends", 2, &[count(), count(), ask(), ask()]);
    let records = waits(&host, "records", 1, &[count(), count(), ask(), count()]);
    let asks = waits(&host, "asks", 1, &[ask(), ask()]);
    host.restart_with("max_steps = 1\njournal_entries = 2");
    let call = ended(&host, &ends, 2);
    assert_eq!((&call["outcome"], &call["content"]["result"][3]), (&json!("ok"), &json!("yes")), "{call:#}");
    let call = ended(&host, &records, 1);
    assert!(message(&call).contains("`journal_entries`"), "{call:#}");
    let call = ended(&host, &asks, 1);
    assert!(message(&call).contains("`max_steps`"), "{call:#}");
}

#[test]
fn log_says_why_a_component_does_not_load_any_more() {
    let mut host = programs(&Server::start());
    let turn = waits(&host, "p", 1, &[ask()]);
    let tight = "[compile]\ncomponent_bytes = 1000\n[plugin.program.grants.config]";
    change_configuration(&mut host, "[plugin.program.grants.config]", tight);
    let _ = answered(&host, &turn, 1..2);
    let log = "/v1/conversations/p/calls/p/log";
    let line = "this run could not continue the call: the tool's component can no longer be loaded: ";
    host.agent.until(log, |answer| answer.text.contains(line).then_some(()));
    change_configuration(&mut host, tight, "[plugin.program.grants.config]");
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
}
