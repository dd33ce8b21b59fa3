//! Every response to an answer, edited arguments, and the digest of an approval.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path, suspension_of};

use crate::{balance, ledger_host, transfer};

fn edited(turn: &Value, amount: i64) -> Value {
    let mut arguments = turn["calls"][0]["arguments"].clone();
    arguments["amount_cents"] = amount.into();
    arguments
}

#[test]
fn refused_answer_has_a_reason_and_no_effect() {
    let host = ledger_host("");
    let turn = host.agent.submit("c", json!([transfer("t", 100)]));
    let suspension = suspension_of(&turn);
    let digest = turn["pending"][0]["digest"].as_str().unwrap();
    let resolve = |answer: Value| host.approver.resolve(&suspension, answer);

    let wrong = format!("sha256:{}", "0".repeat(64));
    let mismatch = resolve(json!({"decision": "approve", "expect_digest": wrong})).problem(409, "digest-mismatch");
    assert_eq!(mismatch["digest"], digest);
    let refused = resolve(json!({"decision": "maybe"})).problem(422, "invalid");
    assert_eq!(refused["errors"][0]["pointer"], "/decision");
    resolve(json!({"decision": "approve", "expect_digest": "x"})).problem(422, "invalid");
    resolve(json!({"decision": "approve", "by": "root"})).problem(422, "invalid");
    resolve(json!({"comment": "no decision"})).problem(422, "invalid");
    host.agent.resolve(&suspension, json!({"decision": "approve"})).problem(403, "not-allowed");
    host.page.resolve(&suspension, json!({"decision": "approve"})).problem(403, "not-allowed");

    for (what, arguments) in [
        ("a value that breaks the schema", edited(&turn, -5)),
        ("a member that may not be edited", json!({"from": "bob", "to": "alice", "amount_cents": 100})),
        ("a member that is not there", json!({"from": "alice", "to": "bob", "amount_cents": 100, "tool": "x"})),
        ("no object", json!([])),
    ] {
        let refused = resolve(json!({"decision": "approve", "arguments": arguments})).problem(422, "invalid");
        assert!(refused["errors"][0]["pointer"].as_str().unwrap().starts_with("/arguments"), "{what}: {refused:#}");
    }
    resolve(json!({"decision": "deny", "arguments": edited(&turn, 1)})).problem(422, "invalid");

    assert_eq!(host.agent.get(&path(&turn)).ok(200)["pending"], turn["pending"]);
    assert_eq!(resolve(json!({"decision": "approve", "expect_digest": digest})).ok(200)["replayed"], false);
    assert_eq!(resolve(json!({"decision": "approve"})).ok(200)["replayed"], true);
    let stale = resolve(json!({"decision": "deny"})).problem(409, "stale");
    assert_eq!((&stale["state"], &stale["by"]), (&json!("approve"), &json!("alice")));
    let stale = host.admin.resolve(&suspension, json!({"decision": "approve"})).problem(409, "stale");
    assert_eq!(stale["by"], "alice");
    let unknown = host.approver.resolve("susp_01935a7c000070008000000000000001", json!({"decision": "approve"}));
    assert_eq!(unknown.problem(409, "stale")["state"], "unknown");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    assert_eq!(balance(&host, "bob"), 1100);
}

#[test]
fn edited_arguments_run_and_both_versions_are_stored() {
    let host = ledger_host("");
    let turn = host.agent.submit("c", json!([transfer("t", 900)]));
    let answer = json!({"decision": "approve", "arguments": edited(&turn, 90), "comment": "a zero less"});
    assert_eq!(host.approver.resolve(&suspension_of(&turn), answer.clone()).ok(200)["replayed"], false);
    assert_eq!(host.approver.resolve(&suspension_of(&turn), answer).ok(200)["replayed"], true);
    let call = &host.agent.settled(&turn)["calls"][0];
    assert_eq!((&call["arguments"]["amount_cents"], &call["submitted"]["amount_cents"]), (&json!(90), &json!(900)));
    assert_eq!((&call["outcome"], balance(&host, "bob")), (&json!("ok"), 1090));
    let audit = host.admin.get("/v1/audit").ok(200);
    let entry =
        audit["entries"].as_array().unwrap().iter().find(|entry| entry["suspension"] == suspension_of(&turn)).unwrap();
    assert_eq!((&entry["by"], &entry["comment"]), (&json!("alice"), &json!("a zero less")));
    // A repeated submission is the same turn, although it ran with edited arguments.
    let again = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [transfer("t", 900)]})).ok(200);
    assert_eq!((&again["replayed"], &again["turn"]), (&json!(true), &turn["turn"]));
}

#[test]
fn client_gets_edited_arguments_beside_the_submitted_ones() {
    let host = Setup::with(&["browser"]).start();
    let _page = host.page.events("/v1/conversations/c/events?client=pick_file");
    let (asked, approved) = (json!({"purpose": "a chart", "accept": ["*/*"]}), json!({"purpose": "a chart"}));
    let turn = host.agent.call("c", "pick_file", asked.clone());
    let answer = json!({"decision": "approve", "arguments": approved});
    let _ = host.approver.resolve(&suspension_of(&turn), answer).ok(200);
    let turn = host.agent.get(&path(&turn)).ok(200);
    for read in [&host.page, &host.approver] {
        let item = read.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200);
        assert_eq!((&item["kind"], &item["number"]), (&json!("client_exec"), &json!(2)));
        assert_eq!((&item["arguments"], &item["submitted"]), (&approved, &asked), "{item:#}");
    }
    assert_eq!(turn["pending"][0]["submitted"], asked);
}

#[test]
fn answer_to_a_question_must_fit_its_schema() {
    let host = Setup::with(&["ask", "browser"]).start();
    let turn = host.agent.call("c", "ask_user", json!({"question": "Tea?"}));
    let suspension = suspension_of(&turn);
    for data in [json!({"answer": 1}), json!({}), json!("yes")] {
        let refused =
            host.approver.resolve(&suspension, json!({"decision": "answer", "data": data})).problem(422, "invalid");
        assert!(refused["errors"][0]["pointer"].as_str().unwrap().starts_with("/data"), "{refused:#}");
    }
    assert_eq!(host.approver.resolve(&suspension, json!({"decision": "decline"})).ok(200)["ok"], true);

    let page = host.page.events("/v1/conversations/c/events?client=get_location");
    let turn = host.agent.call("c", "get_location", json!({}));
    let nowhere = json!({"decision": "result", "data": {"latitude": 91, "longitude": 0, "accuracy": 1}});
    host.page.resolve(&suspension_of(&turn), nowhere).problem(422, "invalid");
    drop(page);
}

#[test]
fn own_calls_cannot_be_approved_by_default() {
    let gated = |host: &Host, by: &toolgate_tests::http::Client| {
        let turn = by.call("own", "gated_echo", json!({"value": 1}));
        (by.resolve(&suspension_of(&turn), json!({"decision": "approve"})), host.admin.get(&path(&turn)).ok(200))
    };
    let host = Setup::with(&["lab"]).start();
    let both = host.token("both", &["caller", "approver"], None);
    gated(&host, &both).0.problem(403, "not-allowed");
    let turn = host.admin.call("admins", "gated_echo", json!({"value": 1}));
    host.admin.resolve(&suspension_of(&turn), json!({"decision": "approve"})).problem(403, "not-allowed");
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);

    let host = Setup::with(&["lab"]).settings("approve_own_calls = true").start();
    let both = host.token("both", &["caller", "approver"], None);
    assert_eq!(gated(&host, &both).0.ok(200)["ok"], true);
}

#[test]
fn operators_rules_gate_and_deny_calls() {
    let policy = "[[policy]]\ntools = \"ec*\"\nrule = \"ask\"\n[[policy]]\ntools = \"clock\"\nrule = \"deny\"";
    let host = Setup::with(&["lab"]).tables(policy).start();
    let turn = host.agent.call("c", "echo", json!({"value": 1}));
    assert_eq!(
        (outcomes(&turn), &turn["calls"][0]["approval"]),
        (vec!["awaiting".to_owned()], &json!("requires-approval"))
    );
    assert_eq!(host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve"})).ok(200)["ok"], true);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    assert_eq!(outcomes(&host.agent.call("c", "clock", json!({}))), ["denied"]);
}
