//! Approvals by certain people or by several, and standing approvals, with the real binary.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use serde_json::{Value, json};
use toolgate_tests::guests::fixture;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, suspension_of};

const RULES: &str = r#"
[[policy]]
name = "two-of-three"
tools = "echo"
rule = "ask"
arguments = [{ pointer = "/value", min = 1000 }]

[[policy.needs]]
who = ["principal:ann", "principal:bob", "principal:cid"]
quorum = 2

[[policy]]
name = "late"
tools = "echo"
rule = "ask"
arguments = [{ pointer = "/value", equals = 500 }]

[[policy.needs]]
who = ["principal:nobody"]
escalate = { after_ms = 1, to = ["principal:ann"] }
"#;

fn host(more: &str) -> Host {
    let mut host = Setup::with(&["lab"]).prepare();
    let config = host.folder().join("toolgate.toml");
    let written = fs::read_to_string(&config).unwrap();
    fs::write(config, format!("{written}{RULES}{more}")).unwrap();
    host.start();
    host
}

fn echo(host: &Host, tool: &str, value: Value) -> Value {
    host.agent.call("c", tool, json!({"value": value}))
}

fn approve(by: &Client, turn: &Value) -> Value {
    by.resolve(&suspension_of(turn), json!({"decision": "approve"})).ok(200)
}

#[test]
fn two_of_three_must_approve_and_one_denial_is_enough() {
    let mut host = host("");
    let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| host.token(name, &["approver"], None));
    let turn = echo(&host, "echo", json!(1000));
    let suspension = suspension_of(&turn);
    host.approver.resolve(&suspension, json!({"decision": "approve"})).problem(403, "not-allowed");
    let answered = approve(&ann, &turn);
    assert_eq!((&answered["state"], &answered["votes_missing"]), (&json!("open"), &json!(1)));
    let votes = |of: &Value| (of["needs"][0]["votes"].as_u64(), of["needs"][0]["quorum"].as_u64());
    assert_eq!(votes(&answered), (Some(1), Some(2)));
    assert_eq!(approve(&ann, &turn)["replayed"], true, "her second vote is a replay");

    // The vote is on disk, so the host knows it after a kill.
    host.restart();
    let seen = bob.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!((&seen["state"], &seen["votes"][0]["by"]), (&json!("open"), &json!("ann")));
    assert_eq!((&seen["needs"][0]["quorum"], &seen["needs"][0]["votes"]), (&json!(2), &json!(1)));
    assert_eq!((&seen["you"]["may_answer"], &seen["you"]["voted"]), (&json!(true), &json!(false)));
    assert_eq!(host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200)["you"]["may_answer"], false);

    assert_eq!(approve(&bob, &turn)["state"], "approve");
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"]);
    assert_eq!(settled["calls"][0]["approvers"], json!(["ann", "bob"]));
    let ended = bob.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    assert_eq!((&ended["closed"]["by"], &ended["closed"]["approvers"]), (&json!("bob"), &json!(["ann", "bob"])));
    assert_eq!(votes(&ended), (Some(2), Some(2)), "the last approval counts too");
    for (name, count) in [("ann", 1), ("bob", 1), ("cid", 0)] {
        let found = bob.get(&format!("/v1/pending?decision=approve&by={name}")).ok(200);
        assert_eq!(found["suspensions"].as_array().unwrap().len(), count, "{name}");
    }
    let late = cid.resolve(&suspension, json!({"decision": "deny"})).problem(409, "stale");
    assert_eq!(late["by"], "bob");

    let turn = echo(&host, "echo", json!(1001));
    let _ = approve(&ann, &turn);
    let _ = cid.resolve(&suspension_of(&turn), json!({"decision": "deny", "comment": "no"})).ok(200);
    bob.resolve(&suspension_of(&turn), json!({"decision": "approve"})).problem(409, "stale");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied"]);
    let audit = host.admin.get("/v1/audit?limit=500").ok(200);
    let by = |action: &str| {
        let entries = audit["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == action);
        entries.map(|entry| entry["by"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (by("vote"), by("approve"), by("deny")),
        (vec!["ann".into(), "ann".into()], vec!["bob".into()], vec!["cid".into()])
    );
}

#[test]
fn authority_is_delegated_once_and_then_lost() {
    let host = host("");
    let [ann, bob, dan] = ["ann", "bob", "dan"].map(|name| host.token(name, &["approver"], None));
    let turn = echo(&host, "echo", json!(1000));
    let path = format!("/v1/suspensions/{}/delegate", suspension_of(&turn));
    dan.post(&path, &json!({"to": "ann"})).problem(403, "not-allowed");
    ann.post(&path, &json!({"to": "agent"})).problem(403, "not-allowed");
    ann.post(&path, &json!({"to": "d n"})).problem(422, "invalid");
    let unknown = ann.post(&path, &json!({"to": "dna"})).problem(422, "invalid");
    assert_eq!(unknown["errors"][0], json!({"pointer": "/to", "message": "nobody here is called dna"}));
    dan.post(&path, &json!({"to": "dna"})).problem(403, "not-allowed");
    ann.post(&path, &json!({"to": "bob"})).problem(403, "not-allowed");
    let _ = host.token("eve", &["caller"], None);
    let useless = ann.post(&path, &json!({"to": "eve"})).problem(403, "not-allowed");
    assert!(useless["detail"].as_str().unwrap().contains("needs the role approver"), "{useless:#}");
    assert_eq!(ann.post(&path, &json!({"to": "dan", "comment": "on leave"})).ok(200)["ok"], true);
    ann.resolve(&suspension_of(&turn), json!({"decision": "approve"})).problem(403, "not-allowed");
    dan.post(&path, &json!({"to": "eve"})).problem(403, "not-allowed");
    assert_eq!(approve(&dan, &turn)["state"], "open");
    assert_eq!(approve(&bob, &turn)["state"], "approve");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

#[test]
fn mine_follows_needs_votes_and_delegations() {
    let host = host("");
    let [ann, bob, dan] = ["ann", "bob", "dan"].map(|name| host.token(name, &["approver"], None));
    let open = echo(&host, "gated_echo", json!("x"));
    let turn = echo(&host, "echo", json!(1000));
    let mine = |by: &Client| {
        let listed = by.get("/v1/pending?mine=true").ok(200);
        let counted = by.get("/v1/pending/counts?mine=true").ok(200)["open"].as_u64().unwrap();
        let listed = listed["suspensions"].as_array().unwrap().len();
        assert_eq!(listed as u64, counted, "lists and counts agree");
        counted
    };
    let all = |who: [&Client; 4]| who.map(mine);
    let everybody = [&ann, &bob, &dan, &host.approver];
    assert_eq!(all(everybody), [2, 2, 1, 1], "two of three named, and anybody");
    let _ = approve(&ann, &turn);
    assert_eq!(all(everybody), [2, 2, 1, 1], "voters may change their vote until enough have voted");
    let path = format!("/v1/suspensions/{}/delegate", suspension_of(&turn));
    let _ = bob.post(&path, &json!({"to": "dan"})).ok(200);
    assert_eq!(all(everybody), [2, 1, 2, 1]);
    let _ = approve(&dan, &turn);
    assert_eq!(all(everybody), [1; 4]);
    let _ = approve(&host.approver, &open);
    assert_eq!(all(everybody), [0; 4]);
}

#[test]
fn others_may_answer_after_escalation() {
    let host = host("");
    let ann = host.token("ann", &["approver"], None);
    let mut events = host.approver.events("/v1/conversations/c/events");
    let turn = echo(&host, "echo", json!(500));
    events.named("suspension.escalated");
    let seen = ann.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
    assert_eq!((&seen["needs"][0]["escalated"], &seen["you"]["may_answer"]), (&json!(true), &json!(true)));
    let _ = approve(&ann, &turn);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

#[test]
fn standing_approval_covers_later_similar_calls() {
    let mut host = host("");
    let standing = json!({"ttl_ms": 600_000, "uses": 2, "pin": ["/value"]});
    let turn = echo(&host, "gated_echo", json!("a"));
    let answer = |standing: Value| json!({"decision": "approve", "standing": standing});
    for (wrong, pointer) in [
        (json!({"ttl_ms": 600_000, "uses": 0, "pin": "all"}), "/standing/uses"),
        (json!({"ttl_ms": 600_000, "uses": 101, "pin": "all"}), "/standing/uses"),
        (json!({"ttl_ms": 86_400_001, "uses": 1, "pin": "all"}), "/standing/ttl_ms"),
        (json!({"ttl_ms": 1, "uses": 1, "pin": []}), "/standing/pin"),
        (json!({"ttl_ms": 1, "uses": 1, "pin": ["/absent"]}), "/standing/pin/0"),
    ] {
        let problem = host.approver.resolve(&suspension_of(&turn), answer(wrong)).problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem:#}");
    }
    let narrow = host.token("narrow", &["approver"], Some("c"));
    narrow.resolve(&suspension_of(&turn), answer(standing.clone())).problem(403, "not-allowed");
    let _ = host.approver.resolve(&suspension_of(&turn), answer(standing)).ok(200);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);

    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["ok"], "no approval is needed");
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("b"))), ["awaiting"], "another value needs an approval");
    let other = host.token("agent-2", &["caller"], None);
    assert_eq!(
        outcomes(&other.call("d", "gated_echo", json!({"value": "a"}))),
        ["awaiting"],
        "another caller needs an approval"
    );
    host.restart();
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["ok"], "the host stores it with the number of uses");
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["awaiting"], "it is used up");
    let list = host.approver.get("/v1/standing-approvals").ok(200);
    let one = &list["standing_approvals"][0];
    assert_eq!((&one["state"], &one["used"], &one["by"]), (&json!("used_up"), &json!(2), &json!("alice")));

    // A revoked one approves nothing.
    let turn = echo(&host, "gated_echo", json!("c"));
    let _ = host
        .approver
        .resolve(&suspension_of(&turn), answer(json!({"ttl_ms": 600_000, "uses": 9, "pin": "all"})))
        .ok(200);
    let list = host.approver.get("/v1/standing-approvals").ok(200);
    let path = format!("/v1/standing-approvals/{}", list["standing_approvals"][1]["id"].as_str().unwrap());
    other.delete(&path).problem(404, "not-found");
    host.agent.delete(&path).problem(403, "not-allowed");
    assert_eq!(host.approver.delete(&path).ok(200)["state"], "revoked");
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("c"))), ["awaiting"]);
    let audit = host.admin.get("/v1/audit?limit=500").ok(200);
    let count = |action: &str| audit["entries"].as_array().unwrap().iter().filter(|e| e["action"] == action).count();
    assert_eq!((count("standing.use"), count("standing.revoke")), (2, 1));
}

#[test]
fn approval_by_several_people_gives_no_standing_approval() {
    let host = host("");
    let [ann, bob] = ["ann", "bob"].map(|name| host.token(name, &["approver"], None));
    let turn = echo(&host, "echo", json!(1000));
    let standing = json!({"ttl_ms": 1000, "uses": 1, "pin": "all"});
    let answer = json!({"decision": "approve", "standing": standing});
    ann.resolve(&suspension_of(&turn), answer.clone()).problem(403, "not-allowed");
    let _ = approve(&ann, &turn);
    bob.resolve(&suspension_of(&turn), answer).problem(403, "not-allowed");
}

#[test]
fn number_of_standing_approvals_of_a_caller_is_limited() {
    let host = host("\n[approvals]\nstanding_max_active = 1\n");
    let answer = json!({"decision": "approve", "standing": {"ttl_ms": 600_000, "uses": 1, "pin": "all"}});
    let [a, b] = ["a", "b"].map(|value| echo(&host, "gated_echo", json!(value)));
    let _ = host.approver.resolve(&suspension_of(&a), answer.clone()).ok(200);
    let refused = host.approver.resolve(&suspension_of(&b), answer.clone()).problem(403, "not-allowed");
    assert!(refused["detail"].as_str().unwrap().contains("standing_max_active"), "{refused:#}");
    let other = host.token("agent-2", &["caller"], None);
    let of_another = other.call("d", "gated_echo", json!({"value": "b"}));
    let _ = host.approver.resolve(&suspension_of(&of_another), answer.clone()).ok(200);
    // A used-up one does not count.
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["ok"]);
    let _ = host.approver.resolve(&suspension_of(&b), answer).ok(200);
}

#[test]
fn first_answer_to_a_question_is_its_result() {
    let two = |tools: &str| {
        format!("[[policy]]\nname = \"two\"\ntools = \"{tools}\"\nrule = \"allow\"\nneeds = [{{ quorum = 2 }}]\n")
    };
    let host = Setup::with(&["lab", "ask"]).tables(&two("*")).start();
    let question = host.agent.call("c", "ask_user", json!({"question": "Which one?"}));
    let answer = json!({"decision": "answer", "data": {"answer": "this"}});
    assert_eq!(host.approver.resolve(&suspension_of(&question), answer).ok(200)["state"], "answer");
    let gated = echo(&host, "gated_echo", json!("x"));
    assert_eq!(approve(&host.approver, &gated)["state"], "open", "an approval takes two");

    let host = Setup::with(&["ask"]).tables(&two("ask_user")).start();
    let plugin = &host.admin.get("/v1/plugins").ok(200)["plugins"][0];
    assert_eq!((&plugin["state"], &plugin["findings"][0]["rule"]), (&json!("rejected"), &json!("policy-human")));
    let message = plugin["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("the operator's rule two (") && message.contains("toolgate.toml:"), "{message}");
    assert!(message.contains("the first answer to a question is its result"), "{message}");
}

#[test]
fn recently_denied_call_is_not_asked_again() {
    let turns = json!([
        {"id": "one", "tool": "gated_echo", "arguments": {"value": "x"}},
        {"id": "same", "tool": "gated_echo", "arguments": {"value": "x"}},
        {"id": "other", "tool": "gated_echo", "arguments": {"value": "y"}},
    ]);
    let host = host("");
    let turn = host.agent.submit("c", turns);
    let first = turn["calls"][0]["pending"]["suspension"].as_str().or(turn["pending"][0]["suspension"].as_str());
    let _ = host.approver.resolve(first.unwrap(), json!({"decision": "deny"})).ok(200);
    let after = host.agent.get(&toolgate_tests::http::path(&turn)).ok(200);
    assert_eq!(outcomes(&after), ["denied", "denied", "awaiting"]);

    let again = host.agent.submit("c", json!([{"id": "again", "tool": "gated_echo", "arguments": {"value":  "x"}}]));
    assert_eq!(outcomes(&again), ["denied"], "also in later turns");
    let elsewhere = host.agent.submit("d", json!([{"id": "e", "tool": "gated_echo", "arguments": {"value": "x"}}]));
    assert_eq!(outcomes(&elsewhere), ["awaiting"], "another conversation asks again");
}

#[test]
fn operator_can_make_the_host_forget_denials() {
    let host = host("\n[approvals]\ndenied_again_ms = 0\nstanding = false\n");
    let turn = echo(&host, "gated_echo", json!("x"));
    assert_eq!(
        host.approver.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200)["standing"],
        Value::Null
    );
    let standing = json!({"ttl_ms": 1000, "uses": 1, "pin": "all"});
    let answer = json!({"decision": "approve", "standing": standing});
    host.approver.resolve(&suspension_of(&turn), answer).problem(403, "not-allowed");
    let _ = host.approver.resolve(&suspension_of(&turn), json!({"decision": "deny"})).ok(200);
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("x"))), ["awaiting"]);
}

/// Revokes the token of a principal, as its operator does.
fn revoke(host: &Host, name: &str) {
    let said = host.cli(None, &["token", "revoke", name]);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn vote_of_a_revoked_approver_does_not_count() {
    let host = host("");
    let [ann, bob, cid] = ["ann", "bob", "cid"].map(|name| host.token(name, &["approver"], None));
    let turn = echo(&host, "echo", json!(1000));
    let _ = approve(&ann, &turn);
    revoke(&host, "ann");
    // The name is given to somebody else, who has not voted.
    let ann = host.token("ann", &["approver"], None);
    let answered = approve(&bob, &turn);
    assert_eq!((&answered["state"], &answered["votes_missing"]), (&json!("open"), &json!(1)));
    let seen = cid.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
    assert_eq!((seen["votes"].as_array().unwrap().len(), &seen["votes"][0]["by"]), (1, &json!("bob")));
    assert_eq!(approve(&ann, &turn)["state"], "approve");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    let audit = host.admin.get("/v1/audit?action=authority.revoke").ok(200);
    let entry = &audit["entries"][0];
    assert_eq!((&entry["by"], &entry["to"]), (&json!("system"), &json!("ann")));
    assert!(entry["comment"].as_str().unwrap().contains("was revoked"), "{entry:#}");
}

#[test]
fn delegations_of_revoked_principals_end() {
    let host = host("");
    let [ann, bob, dan] = ["ann", "bob", "dan"].map(|name| host.token(name, &["approver"], None));
    let delegate = |turn: &Value, by: &Client, to: &str| {
        let path = format!("/v1/suspensions/{}/delegate", suspension_of(turn));
        let _ = by.post(&path, &json!({"to": to})).ok(200);
    };
    let [lent, given] = [1000, 1001].map(|value| echo(&host, "echo", json!(value)));
    // The delegate has voted with authority that ends.
    delegate(&lent, &ann, "dan");
    let _ = approve(&dan, &lent);
    // The delegate itself is revoked.
    let _ = host.token("eve", &["approver"], None);
    delegate(&given, &ann, "eve");
    revoke(&host, "eve");
    assert_eq!(approve(&ann, &given)["state"], "open", "her authority is hers again");
    assert_eq!(approve(&bob, &given)["state"], "approve");

    revoke(&host, "ann");
    assert_eq!(approve(&bob, &lent)["votes_missing"], 1, "a delegate's vote ends with the authority");
    dan.resolve(&suspension_of(&lent), json!({"decision": "approve"})).problem(403, "not-allowed");
}

#[test]
fn standing_approval_of_a_revoked_approver_covers_nothing() {
    let mut host = host("");
    let bob = host.token("bob", &["approver"], None);
    let standing = json!({"ttl_ms": 600_000, "uses": 9, "pin": "all"});
    let answer = json!({"decision": "approve", "standing": standing});
    let turn = echo(&host, "gated_echo", json!("a"));
    let _ = bob.resolve(&suspension_of(&turn), answer).ok(200);
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["ok"]);
    revoke(&host, "bob");
    let _ = host.token("bob", &["approver"], None);
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["awaiting"]);
    let list = host.admin.get("/v1/standing-approvals").ok(200);
    let one = &list["standing_approvals"][0];
    assert_eq!((&one["state"], &one["revoked_by"]), (&json!("revoked"), &json!("system")));
    let audit = host.admin.get("/v1/audit?action=standing.revoke").ok(200);
    let entry = &audit["entries"][0];
    assert_eq!(entry["by"], "system");
    assert!(entry["comment"].as_str().unwrap().contains("was revoked"), "{entry:#}");
    host.restart();
    assert_eq!(outcomes(&echo(&host, "gated_echo", json!("a"))), ["awaiting"]);
}

#[test]
fn standing_approval_covers_only_the_context_shown() {
    let host = host("");
    let standing = json!({"ttl_ms": 600_000, "uses": 9, "pin": "all"});
    let answer = json!({"decision": "approve", "standing": standing});
    let call = |id: &str, context: Option<Value>| {
        let calls = json!([{"id": id, "tool": "gated_echo", "arguments": {"value": "a"}}]);
        let mut body = json!({"calls": calls});
        if let Some(context) = context {
            body["context"] = context;
        }
        host.agent.submit_turn("c", &body)
    };
    let staging = || Some(json!({"target": "staging", "page": {"a": 1, "b": 2}}));
    let turn = call("first", staging());
    let _ = host.approver.resolve(&suspension_of(&turn), answer).ok(200);
    assert_eq!(outcomes(&call("same", staging())), ["ok"]);
    assert_eq!(outcomes(&call("other", Some(json!({"target": "production"})))), ["awaiting"]);
    assert_eq!(outcomes(&call("empty", Some(json!({})))), ["awaiting"]);
    assert_eq!(outcomes(&call("none", None)), ["awaiting"]);
}

#[test]
fn approvers_see_the_defaults_and_the_call_runs_as_submitted() {
    let parameters = json!({"type": "object", "properties": {
        "to": {"type": "string"}, "currency": {"type": "string", "default": "EUR"},
        "options": {"type": "object", "properties": {"urgent": {"type": "boolean", "default": false}}},
        "memo": {"type": ["string", "null"], "default": null},
        "labels": {"type": "object", "patternProperties": {"^x-[0-9]$": {"$ref": "#label"}}, "additionalProperties": {}},
    }, "$defs": {"label": {"$anchor": "label", "properties": {"color": {"default": "red"}}}}});
    let options = json!({"prompt": "Pay {to} in {currency}, {memo}?"});
    let tools = json!([{"name": "pay", "approval": "requires-approval", "parameters": parameters, "options": options}]);
    let host = Setup::default().component("bank", fixture(&tools)).start();
    let turn = host.agent.call("c", "pay", json!({"to": "bob", "options": {}, "labels": {"x-1": {}, "x-22": {}}}));
    let asked = host.approver.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
    assert_eq!(asked["prompt"], "Pay bob in EUR (default), null (default)?");
    assert_eq!(asked["arguments"], json!({"to": "bob", "options": {}, "labels": {"x-1": {}, "x-22": {}}}));
    let defaults = json!({"/currency": "EUR", "/labels/x-1/color": "red", "/memo": null, "/options/urgent": false});
    assert_eq!(asked["defaults"], defaults);
    assert_eq!(asked["display"]["defaults"], defaults.to_string());
    let _ = approve(&host.approver, &turn);
    let call = &host.agent.settled(&turn)["calls"][0];
    assert_eq!(call["outcome"], "ok");
    assert_eq!(call["arguments"], asked["arguments"], "the call runs with the arguments as submitted");
}
