//! The features of the four source designs, with the real binary. The name of a test begins with the design, and its
//! comment names the section. `docs/seeds.md` is the table of all features. `cargo xtask test` runs them on PostgreSQL too.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod agentix;
mod agentkit;
mod art;
mod asking;
mod jido;
mod table;

use serde_json::{Value, json};
use toolgate_tests::database;
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, suspension_of};

/// A plugin with a tool for every legal cell of the matrix. A server tool returns its arguments.
fn desk() -> Setup {
    let payment = json!({
        "type": "object",
        "properties": {"to": {"type": "string"}, "amount": {"type": "integer", "minimum": 1}},
        "required": ["to", "amount"],
    });
    let answer = json!({"type": "object", "properties": {"version": {"type": "string"}}, "required": ["version"]});
    let place = json!({"type": "object", "properties": {"latitude": {"type": "number"}}, "required": ["latitude"]});
    let tools = json!([
        {"name": "note", "options": {"retention": {"max_count": 3}}},
        {"name": "pay", "approval": "requires-approval", "parameters": payment, "options": {
            "title": "Pay somebody", "prompt": "Pay {amount} to {to}?", "editable": ["amount"], "risk": "high",
            "context_keys": ["page"]}},
        {"name": "deploy_gate", "executor": "human", "parameters": {
            "type": "object", "properties": {"version": {"type": "string"}, "environment": {"type": "string"}}},
            "options": {"title": "Approve the deployment", "prompt": "Deploy version {version} to {environment}?",
                "responses": ["approved", "rejected"], "response": answer, "context_keys": ["build"]}},
        {"name": "opinion", "executor": "human"},
        {"name": "locate", "executor": "client", "options": {"result": place}},
        {"name": "pick", "executor": "client", "approval": "requires-approval"},
        {"name": "search", "executor": "provider"},
        {"name": "talk", "streaming": true},
    ]);
    Setup::default().component("desk", fixture(&tools))
}

/// A plugin with tools whose suspensions expire at once, one for each effect of an expiry.
fn brief() -> Setup {
    let gated = |name: &str, on_expiry: &str| json!({"name": name, "approval": "requires-approval", "options": {"expires_ms": 50, "on_expiry": on_expiry}});
    let asks = |name: &str, on_expiry: Value| json!({"name": name, "executor": "human", "options": {"expires_ms": 50, "on_expiry": on_expiry}});
    let tools = json!([
        gated("ends", "error"),
        gated("denies", "deny"),
        gated("approves", "approve"),
        asks("unanswered", json!("error")),
        asks("assumes", json!({"answer": {"decision": "later"}})),
    ]);
    Setup::default().component("brief", fixture(&tools)).settings("approve_on_expiry = [\"approves\"]")
}

/// Submits one payment.
fn pay(host: &Host) -> Value {
    host.agent.call("c", "pay", json!({"to": "bob", "amount": 70}))
}

/// Sends an answer and checks that it is accepted.
#[track_caller]
fn answered(by: &Client, suspension: &str, answer: Value) {
    assert_eq!(by.resolve(suspension, answer).ok(200)["replayed"], false);
}

/// Answers the only suspension of a turn, and returns the ended turn.
#[track_caller]
fn settled_by(host: &Host, turn: &Value, answer: Value) -> Value {
    answered(&host.approver, &suspension_of(turn), answer);
    host.agent.settled(turn)
}

/// The content of the first call of a turn.
fn content(turn: &Value) -> &Value {
    &turn["calls"][0]["content"]
}

/// The suspensions that a query returns to a principal.
fn listed(by: &Client, query: &str) -> Vec<Value> {
    by.get(&format!("/v1/pending?{query}")).ok(200)["suspensions"].as_array().expect("a list").clone()
}

#[test]
fn turns_are_in_the_chosen_store() {
    let host = Setup::default().start();
    assert_eq!(host.data().join("store").exists(), !database::is_chosen());
}
