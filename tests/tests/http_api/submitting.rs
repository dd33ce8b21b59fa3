//! Submission: repeated turns, ephemeral turns, refused turns, and calls that fail alone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, path};

use crate::{stats, transfer};

const TURNS: &str = "/v1/conversations/c/turns";

#[test]
fn resubmission_is_the_same_turn_and_reused_ids_are_refused() {
    let mut host = crate::ledger_host("");
    let body = json!({"calls": [transfer("t", 5), stats("s")]});
    let first = host.agent.post(TURNS, &body).ok(201);
    let second = host.agent.post(TURNS, &body).ok(200);
    assert_eq!((&second["turn"], &second["replayed"]), (&first["turn"], &json!(true)));
    let reordered = json!({"to": "bob", "amount_cents": 5, "from": "alice"});
    let reordered = json!({"calls": [{"arguments": reordered, "tool": "ledger_transfer", "id": "t"}, stats("s")]});
    assert_eq!(host.agent.post(TURNS, &reordered).ok(200)["turn"], first["turn"]);
    for other in [
        json!([transfer("t", 6), stats("s")]),
        json!([transfer("t", 5)]),
        json!([stats("s"), transfer("t", 5)]),
        json!([transfer("t", 5), stats("s"), stats("more")]),
        json!([transfer("new", 5), stats("s")]),
    ] {
        host.agent.post(TURNS, &json!({"calls": other})).problem(409, "call-id-taken");
    }
    // Ids are unique within a conversation.
    assert_ne!(host.agent.post("/v1/conversations/d/turns", &body).ok(201)["turn"], first["turn"]);
    host.restart();
    assert_eq!(host.agent.post(TURNS, &body).ok(200)["turn"], first["turn"]);
}

#[test]
fn ephemeral_turn_is_stored_only_when_it_waits() {
    let host = Setup::with(&["lab"]).start();
    let echo = json!({"id": "e", "tool": "echo", "arguments": {"value": 1}});
    let turn = host.agent.post(TURNS, &json!({"calls": [echo], "ephemeral": true})).ok(201);
    assert_eq!((&turn["ephemeral"], outcomes(&turn)), (&json!(true), vec!["ok".to_owned()]));
    host.agent.get(&path(&turn)).problem(404, "not-found");
    let again = host.agent.post(TURNS, &json!({"calls": [echo], "ephemeral": true})).ok(201);
    assert_ne!(again["turn"], turn["turn"]);

    let gated = json!({"id": "g", "tool": "gated_echo", "arguments": {"value": 1}});
    let turn = host.agent.post(TURNS, &json!({"calls": [gated, echo], "ephemeral": true})).ok(201);
    assert_eq!(turn["ephemeral"], false);
    assert_eq!(host.agent.get(&path(&turn)).ok(200)["turn"], turn["turn"]);
}

#[test]
fn tool_sees_caller_approver_and_context() {
    let host = Setup::with(&["lab"]).tables("[[policy]]\ntools = \"identity\"\nrule = \"ask\"").start();
    let call = json!({"id": "i", "tool": "identity", "arguments": {}});
    let turn = host.agent.submit_turn("c", &json!({"calls": [call], "context": {"user": "Ishmael"}}));
    assert_eq!(turn["pending"][0]["context"], json!({"user": "Ishmael"}));
    let answer = host.approver.resolve(&toolgate_tests::http::suspension_of(&turn), json!({"decision": "approve"}));
    assert_eq!(answer.ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    let known = &turn["calls"][0]["content"]["result"];
    let member = |name: &str| known[name].clone();
    assert_eq!(
        [member("id"), member("caller"), member("approver"), member("conversation")],
        ["i", "agent", "alice", "c"]
    );
    assert_eq!((member("turn"), member("attempt")), (turn["turn"].clone(), json!(1)));
    assert_eq!(member("context"), json!({"user": "Ishmael"}));
    assert!(member("idempotency_key").as_str().is_some_and(|key| !key.is_empty()));
}

#[test]
fn wrong_call_fails_alone_and_wrong_turn_is_refused() {
    let host = Setup::with(&["textkit"]).settings("max_calls = 3").start();
    let wrong = json!([
        {"id": "a", "tool": "nothing_like_it", "arguments": {}},
        {"id": "b", "tool": "text_stats", "arguments": {"text": 5}},
        {"id": "c", "tool": "text_stats", "arguments": "text"},
    ]);
    let turn = host.agent.submit("c", wrong);
    assert_eq!(outcomes(&turn), ["failed(unknown_tool)", "failed(invalid_arguments)", "failed(invalid_arguments)"]);
    assert_eq!(turn["state"], "settled");

    let post = |body: Value| host.agent.post(TURNS, &body);
    post(json!({"calls": []})).problem(422, "invalid");
    post(json!({"calls": [stats("1"), stats("2"), stats("3"), stats("4")]})).problem(422, "invalid");
    post(json!({"calls": [stats("1"), stats("1")]})).problem(422, "invalid");
    post(json!({"calls": [{"id": "1", "tool": "text_stats"}]})).problem(422, "invalid");
    post(json!({"calls": [stats("1")], "rejectoin": "abort_turn"})).problem(422, "invalid");
    post(json!({"calls": [stats("1")], "context": []})).problem(422, "invalid");
    post(json!({"calls": [{"id": "", "tool": "text_stats", "arguments": {}}]})).problem(422, "invalid");
    let mut given = stats("1");
    given["result"] = json!(1);
    post(json!({"calls": [given]})).problem(422, "invalid");
    post(json!("a text")).problem(422, "invalid");
    host.agent.post_text(TURNS, "{").problem(400, "bad-json");
    host.agent.post_text(TURNS, r#"{"calls":[],"calls":[]}"#).problem(400, "bad-json");
    post(json!({"calls": [stats("1")], "context": {"text": "x".repeat(100_000)}})).problem(413, "too-large");
}

#[test]
fn too_large_body_is_refused_before_it_is_sent() {
    let host = Setup::with(&[]).start();
    let address = host.agent.url();
    let address = address.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {TURNS} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\ncontent-length: 5000000\r\n\r\n",
        host.agent.token()
    );
    connection.write_all(head.as_bytes()).unwrap();
    let mut status = String::new();
    BufReader::new(connection).read_line(&mut status).unwrap();
    assert_eq!(status, "HTTP/1.1 413 Payload Too Large\r\n");
}

#[test]
fn numbers_and_texts_are_returned_exactly() {
    let host = Setup::default().component("p", fixture(&json!([{"name": "back"}]))).start();
    let arguments = r#"{"long":12345678901234567890123,"small":1.50e-7,"text":"\u00e4ä\u0000","z":1,"a":2}"#;
    let body = format!(r#"{{"calls":[{{"id":"a","tool":"back","arguments":{arguments}}}]}}"#);
    let turn = host.agent.post_text(&format!("{TURNS}?wait_ms=60000"), &body);
    assert_eq!(outcomes(&turn.ok(201)), ["ok"]);
    assert!(turn.text.contains(&format!(r#""arguments":{arguments}"#)), "{}", turn.text);
    assert!(turn.text.contains(&format!(r#""result":{arguments}"#)), "{}", turn.text);
}

#[test]
fn missing_resources_are_problems() {
    let host = Setup::with(&["textkit"]).start();
    host.agent.get("/").problem(404, "not-found");
    host.agent.get("/v1/nothing").problem(404, "not-found");
    host.agent.delete("/v1/tools").problem(405, "method-not-allowed");
    host.agent.get("/v1/pending?limti=1").problem(400, "bad-request");
    host.agent.get("/v1/conversations/c/turns/turn_x").problem(400, "bad-request");
    host.agent.get("/v1/conversations/c/turns/turn_01935a7c000070008000000000000001").problem(404, "not-found");
    let plain = host.agent.send("POST", TURNS, &[("content-type", "text/plain")], b"{}").unwrap();
    plain.problem(415, "unsupported-media-type");
    let rebound = host.agent.send("GET", "/v1/tools", &[("host", "evil.example")], b"").unwrap();
    rebound.problem(421, "unknown-host");
}
