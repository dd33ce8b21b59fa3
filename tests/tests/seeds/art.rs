//! ART, "Blocking Tool Calls / Agent Suspension": a tool that blocks, and its resumption.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolgate_tests::http::{Client, outcomes, path, suspension_of};

use crate::{answered, brief, content, desk, listed, pay, settled_by};

fn ids(turn: &Value) -> Vec<String> {
    let pending = turn["pending"].as_array().unwrap();
    pending.iter().map(|one| one["suspension"].as_str().unwrap().to_owned()).collect()
}

/// §2 and §3: the approval comes before the action. §4.1: the tool declares that it blocks.
#[test]
fn art_a_blocking_call_has_no_effect_before_its_approval() {
    let host = desk().start();
    let turn = pay(&host);
    assert_eq!((&turn["calls"][0]["approval"], &turn["calls"][0]["attempt"]), (&json!("requires-approval"), &json!(0)));
    assert_eq!(turn["calls"][0]["content"], json!(null));
    assert_eq!(settled_by(&host, &turn, json!({"decision": "approve"}))["calls"][0]["attempt"], 1);
}

/// §4.2: the signal has its own id, a deadline, and members for the data of the answer.
#[test]
fn art_a_suspension_has_an_id_of_its_own_and_a_deadline() {
    let host = desk().start();
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let turn = host.agent.call("c", "opinion", json!({}));
        let one = &turn["pending"][0];
        assert!(one["expires_at"].as_str().unwrap() > one["created_at"].as_str().unwrap());
        assert!(seen.insert(suspension_of(&turn)), "an id was repeated");
        let turn = settled_by(&host, &turn, json!({"decision": "answer", "data": {"payload": [1]}}));
        assert_eq!(content(&turn)["result"], json!({"payload": [1]}));
    }
}

/// §4.3 and §11.2, `resumeExecution`: approved or not, a reason, and modified arguments.
#[test]
fn art_an_answer_takes_a_reason_and_modified_arguments() {
    let host = desk().start();
    let turn = pay(&host);
    let forbidden = json!({"decision": "approve", "arguments": {"to": "eve", "amount": 70}});
    host.approver.resolve(&suspension_of(&turn), forbidden).problem(422, "invalid");
    let modified = json!({"decision": "approve", "comment": "less", "arguments": {"to": "bob", "amount": 7}});
    let turn = settled_by(&host, &turn, modified);
    assert_eq!(content(&turn)["result"], json!({"to": "bob", "amount": 7}));
    let turn = settled_by(&host, &pay(&host), json!({"decision": "deny", "comment": "ask in May"}));
    assert!(content(&turn)["error"]["message"].as_str().unwrap().contains("ask in May"));
}

/// §4.4: suspended, resumed and timed out are events that a page follows.
#[test]
fn art_suspended_resumed_and_timed_out_are_events() {
    let host = desk().start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let turn = pay(&host);
    assert_eq!(stream.named("call.suspended").data["suspension"], json!(suspension_of(&turn)), "AGENT_SUSPENDED");
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "approve"}));
    let resumed = stream.named("call.resolved").data;
    assert_eq!((&resumed["by"], &resumed["decision"]), (&json!("alice"), &json!("approve")), "AGENT_RESUMED");
    let host = brief().start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let turn = host.agent.settled(&host.agent.call("c", "denies", json!({})));
    let ended = stream.named("suspension.expired").data;
    assert_eq!(ended["call"], turn["calls"][0]["id"], "SUSPENSION_TIMEOUT");
}

/// §7, phase 2: a timeout per tool, after which it is rejected or, where the operator allows it, approved.
#[test]
fn art_a_timeout_denies_or_approves_as_the_tool_declares() {
    let host = brief().start();
    for (tool, outcome) in [("ends", "expired"), ("denies", "denied"), ("approves", "ok")] {
        assert_eq!(outcomes(&host.agent.settled(&host.agent.call("c", tool, json!({})))), [outcome], "{tool}");
    }
}

/// §7, phase 3: persisted. A reloaded page sees it, and another device may answer.
#[test]
fn art_a_suspension_is_answered_from_another_device() {
    let mut host = desk().start();
    let turn = pay(&host);
    host.restart();
    let phone = host.token("bob", &["approver"], None);
    let shown = |by: &Client| listed(by, "conversation=c").remove(0)["suspension"].clone();
    assert_eq!(shown(&host.approver), shown(&phone));
    answered(&phone, &suspension_of(&turn), json!({"decision": "approve"}));
    let late = host.approver.resolve(&suspension_of(&turn), json!({"decision": "deny"})).problem(409, "stale");
    assert_eq!((&late["by"], outcomes(&host.agent.settled(&turn))), (&json!("bob"), vec!["ok".to_owned()]));
}

/// §9, questions 2 and 3: a single call waits, not the plan. Several calls wait independently.
#[test]
fn art_parallel_suspensions_are_answered_in_any_order() {
    let host = desk().start();
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "arguments": {"to": "x", "amount": 1}});
    let turn =
        host.agent.submit("c", json!([call("a", "pay"), call("b", "opinion"), call("n", "note"), call("d", "pay")]));
    assert_eq!(outcomes(&turn), ["awaiting", "awaiting", "ok", "awaiting"]);
    let [first, second, third] = ids(&turn).try_into().unwrap();
    answered(&host.approver, &third, json!({"decision": "approve"}));
    answered(&host.approver, &second, json!({"decision": "answer", "data": 2}));
    answered(&host.approver, &first, json!({"decision": "deny"}));
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied", "ok", "ok", "ok"]);
}

/// §11.2, "graceful exit": the reply has the results so far and the calls that wait. A wait returns the rest once they are
/// answered, or the same turn when its time ends.
#[test]
fn art_a_reply_has_the_progress_so_far_and_a_wait_the_rest() {
    let host = desk().start();
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "arguments": {"to": "x", "amount": 1}});
    let turn = host.agent.submit("c", json!([call("n", "note"), call("p", "pay")]));
    assert_eq!(
        (outcomes(&turn), &turn["calls"][0]["content"]["ok"]),
        (vec!["ok".into(), "awaiting".into()], &json!(true))
    );
    assert_eq!(turn["pending"][0]["call"], "p");
    let waited = |ms: u32| host.agent.get(&format!("{}?wait_ms={ms}", path(&turn))).ok(200);
    assert_eq!(outcomes(&waited(1)), ["ok", "awaiting"], "nobody has answered");
    std::thread::scope(|scope| {
        let rest = scope.spawn(|| waited(60_000));
        answered(&host.approver, &suspension_of(&turn), json!({"decision": "approve"}));
        assert_eq!(outcomes(&rest.join().unwrap()), ["ok", "ok"]);
    });
}

/// §11.2, "resumption flow": the id is checked, the person's decision becomes the call's result, and the loop continues
/// the same turn with the same call ids. The model is not asked again.
#[test]
fn art_the_same_turn_continues_after_the_answer() {
    let mut host = desk().start();
    let body = json!({"calls": [{"id": "p", "tool": "pay", "arguments": {"to": "bob", "amount": 5}}]});
    let turn = host.agent.post("/v1/conversations/c/turns", &body).ok(201);
    let resubmitted = |host: &toolgate_tests::host::Host| host.agent.post("/v1/conversations/c/turns", &body).ok(200);
    host.restart();
    assert_eq!(resubmitted(&host)["pending"][0]["suspension"], turn["pending"][0]["suspension"]);
    let settled = settled_by(&host, &turn, json!({"decision": "approve"}));
    assert_eq!((&resubmitted(&host)["turn"], &resubmitted(&host)["calls"]), (&turn["turn"], &settled["calls"]));
}
