//! Dynamic policies on the real host. A component decides on every call and on edited arguments. It can only tighten,
//! and if it misbehaves, the host asks a person.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::{fixture, plugin};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, suspension_of};
use toolgate_tests::wat::policy;

/// The tools of these tests. Their names suggest payments, but none of them pays.
fn tools() -> Vec<u8> {
    let schema = json!({"type": "object", "properties": {"amount": {}}});
    fixture(&json!([
        {"name": "pay", "parameters": schema},
        {"name": "gated_pay", "parameters": schema, "approval": "requires-approval", "options": {"editable": "all"}},
        {"name": "question", "executor": "human"},
        {"name": "search", "executor": "provider"},
        {"name": "note"},
    ]))
}

/// A host with these policies: name, component, and more of its table. `tables` is more of the configuration.
fn prepared(policies: &[(&str, &[u8], &str)], tables: &str) -> Host {
    let mut config = tables.to_owned();
    for (name, _, more) in policies {
        let component = if more.contains("component =") { "" } else { "component = \"any\"" };
        config.push_str(&format!(
            "\n[[policies.component]]\nname = \"{name}\"\nfile = \"policies/{name}.wasm\"\n{component}\n{more}\n"
        ));
    }
    let host = Setup::default().component("shop", tools()).tables(&config).prepare();
    fs::create_dir(host.folder().join("policies")).unwrap();
    for (name, component, _) in policies {
        fs::write(host.folder().join(format!("policies/{name}.wasm")), component).unwrap();
    }
    host
}

fn host(policies: &[(&str, &[u8], &str)], tables: &str) -> Host {
    let mut host = prepared(policies, tables);
    host.start();
    host
}

/// The first open suspension of a turn.
fn asked(turn: &Value) -> &Value {
    assert_eq!(outcomes(turn), ["awaiting"], "{turn:#}");
    &turn["pending"][0]
}

fn approve(host: &Host, turn: &Value) {
    assert_eq!(host.approver.resolve(&suspension_of(turn), json!({"decision": "approve"})).ok(200)["ok"], true);
}

#[test]
fn policy_allows_asks_and_denies() {
    let limits = plugin("limits");
    let host = host(&[("limits", &limits, "settings = { limit = 100, hard_limit = 1000 }")], "");
    let pay = |amount: Value| host.agent.call("c", "pay", json!({"amount": amount}));
    assert_eq!(outcomes(&pay(json!(100))), ["ok"]);

    let turn = pay(json!(500));
    let waiting = asked(&turn);
    let said = ["asked_by", "reason", "risk"].map(|key| waiting[key].as_str().unwrap_or_default());
    assert_eq!(said, ["limits", "500 is more than 100", "high"]);
    assert_eq!(waiting["kind"], "approval");
    approve(&host, &turn);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);

    let denied = pay(json!(5000));
    assert_eq!(outcomes(&denied), ["denied"]);
    let message = denied["calls"][0]["content"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("5000 is more than 1000, which nobody may approve"), "{message}");
}

#[test]
fn policy_sees_the_callers_context() {
    let limits = plugin("limits");
    let host = host(&[("limits", &limits, "")], "");
    let note = |context: Value| {
        let id = format!("in-{}", context["environment"].as_str().unwrap());
        host.agent
            .submit_turn("c", &json!({"calls": [{"id": id, "tool": "note", "arguments": {}}], "context": context}))
    };
    assert_eq!(outcomes(&note(json!({"environment": "staging"}))), ["ok"]);
    assert_eq!(asked(&note(json!({"environment": "production"})))["reason"], "this is production");
}

#[test]
fn edited_arguments_are_checked_by_the_policy_again() {
    let limits = plugin("limits");
    let host = host(&[("limits", &limits, "settings = { limit = 100, hard_limit = 1000 }")], "");
    let turn = host.agent.call("c", "gated_pay", json!({"amount": 5}));
    assert_eq!(asked(&turn)["asked_by"], json!(null), "the tool's declaration asks");
    let edited = |amount: u32| json!({"decision": "approve", "arguments": {"amount": amount}});
    let refused = host.approver.resolve(&suspension_of(&turn), edited(5000));
    let refused = refused.problem(403, "not-allowed");
    assert_eq!(refused["detail"], "the policy denies the call with these arguments");
    assert_eq!(outcomes(&host.agent.get(&toolgate_tests::http::path(&turn)).ok(200)), ["awaiting"]);
    assert_eq!(host.approver.resolve(&suspension_of(&turn), edited(50)).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    assert_eq!(
        (outcomes(&turn), &turn["calls"][0]["content"]["result"]["amount"]),
        (vec!["ok".to_owned()], &json!(50))
    );
}

#[test]
fn policy_that_always_allows_loosens_nothing() {
    let rules = "[[policy]]\ntools = \"note\"\nrule = \"ask\"\n[[policy]]\ntools = \"pay\"\nrule = \"deny\"\n";
    let (open, strict) = (policy("(call $proceed)"), policy("(call $ask (i32.const 4096) (i32.const 0))"));
    let host = host(&[("open", &open, ""), ("strict", &strict, "tools = \"sea*\"")], rules);
    asked(&host.agent.call("c", "gated_pay", json!({"amount": 5})));
    asked(&host.agent.call("c", "note", json!({})));
    assert_eq!(outcomes(&host.agent.call("c", "pay", json!({"amount": 5}))), ["denied"]);
}

#[test]
fn policy_can_only_deny_questions_and_skips_provider_calls() {
    let (asks, denies) =
        (policy("(call $ask (i32.const 4096) (i32.const 0))"), policy("(call $deny (i32.const 4096) (i32.const 0))"));
    let tables = "";
    let asking = host(&[("asks", &asks, "")], tables);
    assert_eq!(asked(&asking.agent.call("c", "question", json!({})))["kind"], "elicitation");
    let found = |host: &Host| {
        let call = json!([{"id": "s", "tool": "search", "arguments": {}, "result": {"found": 1}}]);
        outcomes(&host.agent.submit("c", call))
    };
    assert_eq!(found(&asking), ["ok"]);
    let denying = host(&[("denies", &denies, "")], tables);
    assert_eq!(outcomes(&denying.agent.call("c", "question", json!({}))), ["denied"]);
    assert_eq!(found(&denying), ["ok"]);
}

#[test]
fn misbehaving_policy_makes_the_host_ask_a_person() {
    let bodies = [
        ("spins", "(loop $again (br $again)) (unreachable)", "it did not answer within 200 ms"),
        ("traps", "(unreachable)", "it crashed"),
        (
            "grows",
            "(loop $again (if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then (br $again)))) (unreachable)",
            "64 MiB",
        ),
        ("talks", "(call $ask (i32.const 4096) (i32.const 5000))", "its reason has 5000 bytes"),
        ("lies", "(drop (call $proceed)) (i32.store8 (i32.const 16) (i32.const 9)) (i32.const 16)", "it crashed"),
    ];
    let components: Vec<_> = bodies.iter().map(|(name, body, _)| (*name, policy(body))).collect();
    let more: Vec<_> = bodies
        .iter()
        .map(|(name, ..)| format!("caller = \"{name}\"\ntimeout_ms = {}", if *name == "spins" { 200 } else { 10_000 }))
        .collect();
    let policies: Vec<_> =
        components.iter().zip(&more).map(|((name, bytes), more)| (*name, bytes.as_slice(), more.as_str())).collect();
    let host = host(&policies, "");
    for (name, _, why) in bodies {
        let caller = host.token(name, &["caller"], None);
        let turn = caller.call(&format!("c-{name}"), "note", json!({}));
        let reason = asked(&turn)["reason"].as_str().unwrap().to_owned();
        assert!(reason.starts_with(&format!("the policy {name} could not be asked: ")), "{reason}");
        assert!(reason.contains(why), "{reason}");
        assert_eq!(asked(&turn)["asked_by"], name);
        assert_eq!(outcomes(&host.agent.call("c", "note", json!({}))), ["ok"], "a neighbour of {name}");
        // The policy's decision about the next call is unknown, so there is no standing approval.
        assert_eq!(asked(&turn)["standing"], Value::Null);
        let standing = json!({"ttl_ms": 60_000, "uses": 1, "pin": "all"});
        let answer = json!({"decision": "approve", "standing": standing});
        let refused = host.approver.resolve(&suspension_of(&turn), answer).problem(403, "not-allowed");
        assert!(refused["detail"].as_str().unwrap().contains("a policy could not be asked"), "{refused:#}");
        approve(&host, &turn);
        assert_eq!(outcomes(&caller.settled(&turn)), ["ok"]);
    }
}

#[test]
fn ambiguous_arguments_reach_no_policy() {
    let limits = plugin("limits");
    let host = host(&[("limits", &limits, "")], "");
    let twice = r#"{"amount": 100000, "amount": 1}"#;
    let turns = "/v1/conversations/c/turns?wait_ms=60000";
    let call = r#"{"id": "a", "tool": "pay", "arguments": {}}"#;
    let context = format!(r#"{{"calls": [{call}], "context": {twice}}}"#);
    assert_eq!(host.agent.post_text(turns, &context).problem(400, "bad-json")["status"], 400);
    let object = format!(r#"{{"calls": [{{"id": "o", "tool": "pay", "arguments": {twice}}}]}}"#);
    let said = host.agent.post_text(turns, &object).ok(201).to_string();
    assert!(said.contains("invalid_arguments"), "{said}");
    // A provider writes arguments as a text.
    let call = json!({"id": "a", "type": "function", "function": {"name": "pay", "arguments": twice}});
    let answer = json!({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]});
    let said = host.agent.post(&format!("{turns}&format=openai"), &answer).ok(201).to_string();
    assert!(said.contains("invalid_arguments"), "{said}");
}

/// The errors of a host that does not start because of this policy.
fn refused(name: &str, component: &[u8], more: &str) -> String {
    let host = prepared(&[(name, component, more)], "");
    let said = host.cli(None, &["serve", "--listen", "127.0.0.1:0"]);
    assert_ne!(said.code, 0, "it started: {}", said.out);
    let checked = host.cli(None, &["config"]);
    assert_ne!(checked.code, 0, "`config` finds it, too: {}", checked.out);
    said.err
}

#[test]
fn host_with_a_changed_policy_component_does_not_start() {
    let component = policy("(call $proceed)");
    let zeroes = format!("component = \"sha256:{}\"", "0".repeat(64));
    let said = refused("open", &component, &zeroes);
    assert!(said.contains("toolgate.toml:") && said.contains("another component"), "{said}");
    assert!(said.contains("then write `component = \"sha256:"), "{said}");

    let said = refused("textkit", &plugin("textkit"), "");
    assert!(said.contains("the policy textkit: not a policy: it does not export"), "{said}");
    let said = refused("text", b"text", "");
    assert!(said.contains("not a WebAssembly component"), "{said}");
}
