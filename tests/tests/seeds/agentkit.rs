//! AgentKit, "Tool Approval & HITL Workflow": enforced policies, stored approvals, and an agent that asks.

use serde_json::{Value, json};
use toolgate_tests::http::{outcomes, suspension_of};

use crate::{answered, brief, content, desk, listed, pay, settled_by};

/// "Pattern 1: Deterministic Policy Enforcement", a static list of sensitive tools: the model does not decide whether
/// to ask.
#[test]
fn agentkit_a_policy_intercepts_a_call_before_it_runs() {
    let host = desk().tables("[[policy]]\ntools = \"not*\"\nrule = \"ask\"").start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let turn = host.agent.call("c", "note", json!({"text": "x"}));
    assert_eq!((outcomes(&turn), &turn["pending"][0]["kind"]), (vec!["awaiting".to_owned()], &json!("approval")));
    let turn = settled_by(&host, &turn, json!({"decision": "approve"}));
    assert_eq!(content(&turn)["result"], json!({"text": "x"}), "the proposed call");
    let names: Vec<_> =
        stream.until(|event| event.name == "turn.settled").into_iter().map(|event| event.name).collect();
    let at = |name: &str| names.iter().position(|other| other == name).unwrap();
    assert!(at("call.suspended") < at("call.resolved") && at("call.resolved") < at("call.started"), "{names:?}");
}

/// The same, step 4 of the example: other calls proceed, and each sensitive call is decided independently.
#[test]
fn agentkit_several_calls_are_decided_independently() {
    let host = desk().start();
    let call = |id: &str, amount: u64| json!({"id": id, "tool": "pay", "arguments": {"to": "bob", "amount": amount}});
    let turn =
        host.agent.submit("c", json!([call("a", 1), {"id": "n", "tool": "note", "arguments": {}}, call("b", 2)]));
    assert_eq!(outcomes(&turn), ["awaiting", "ok", "awaiting"]);
    let of = |call: &str| listed(&host.approver, "").into_iter().find(|one| one["call"] == call).unwrap();
    answered(&host.approver, of("b")["suspension"].as_str().unwrap(), json!({"decision": "approve"}));
    answered(&host.approver, of("a")["suspension"].as_str().unwrap(), json!({"decision": "deny"}));
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied", "ok", "ok"]);
}

/// The same: a denied call gets the result "access denied", so that the conversation continues.
#[test]
fn agentkit_a_denied_call_has_a_result_and_the_turn_continues() {
    let host = desk().start();
    let turn = settled_by(&host, &pay(&host), json!({"decision": "deny"}));
    let result = &turn["calls"][0];
    assert_eq!((&turn["state"], &result["content"]["ok"]), (&json!("settled"), &json!(false)));
    assert_eq!(result["content"]["error"]["code"], "denied");
    assert_eq!(outcomes(&host.agent.call("c", "note", json!({}))), ["ok"]);
}

/// "Database Persistence", `savePendingApproval`: every field of the record, before and after.
#[test]
fn agentkit_a_pending_approval_is_a_record_with_every_field() {
    let host = desk().start();
    let turn = pay(&host);
    let read = |suspension: &str| host.approver.get(&format!("/v1/suspensions/{suspension}")).ok(200);
    let record = read(&suspension_of(&turn));
    for (theirs, ours, expected) in [
        ("approvalId, eventIdToWaitFor", "suspension", json!(suspension_of(&turn))),
        ("threadId", "conversation", json!("c")),
        ("toolName", "tool", json!("pay")),
        ("toolInput", "arguments", json!({"to": "bob", "amount": 70})),
        ("toolCallId", "call", turn["calls"][0]["id"].clone()),
        ("status", "state", json!("open")),
    ] {
        assert_eq!(record[ours], expected, "{theirs}");
    }
    let times = ["created_at", "expires_at"].map(|name| record[name].as_str().unwrap().to_owned());
    assert!(times[0] < times[1], "createdAt, expiresAt: {times:?}");
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "approve"}));
    let record = read(&suspension_of(&turn));
    assert_eq!((&record["state"], &record["closed"]["by"]), (&json!("approve"), &json!("alice")), "status, resolvedBy");
    assert!(record["closed"]["at"].as_str().unwrap() >= times[0].as_str(), "resolvedAt");
}

/// The same, `listPendingApprovals`: by thread, by user and by status. The pages are not in the design.
#[test]
fn agentkit_approvals_are_listed_by_thread_user_and_status() {
    let host = desk().start();
    let other = host.token("robot", &["caller"], None);
    let one = |by: &toolgate_tests::http::Client, conversation: &str| {
        suspension_of(&by.call(conversation, "pay", json!({"to": "bob", "amount": 1})))
    };
    let [first, second, third] = [one(&host.agent, "a"), one(&host.agent, "b"), one(&other, "r")];
    answered(&host.approver, &second, json!({"decision": "deny"}));
    let ids = |query: &str| -> Vec<String> {
        listed(&host.approver, query).iter().map(|one| one["suspension"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("", vec![&first, &third]),
        ("conversation=a", vec![&first]),
        ("caller=agent", vec![&first]),
        ("caller=robot", vec![&third]),
        ("state=closed", vec![&second]),
        ("state=all", vec![&first, &second, &third]),
        ("state=all&caller=agent", vec![&first, &second]),
        ("conversation=a&caller=robot", vec![]),
        ("kind=elicitation", vec![]),
        ("tool=pay&limit=1", vec![&first]),
    ] {
        assert_eq!(ids(query).iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let page = host.approver.get("/v1/pending?limit=1").ok(200);
    assert_eq!(ids(&format!("after={}", page["next"].as_str().unwrap())), [third]);
}

/// The same, "survives browser refreshes and server restarts" and "users can return later".
#[test]
fn agentkit_an_approval_survives_a_restart_and_is_given_later() {
    let mut host = desk().start();
    let turn = pay(&host);
    let before = listed(&host.approver, "");
    host.restart();
    assert_eq!(listed(&host.approver, ""), before);
    assert_eq!(outcomes(&settled_by(&host, &turn, json!({"decision": "approve"}))), ["ok"]);
}

/// The same, "all approval decisions are auditable": who, when, what, over which arguments and why.
#[test]
fn agentkit_every_decision_is_in_the_audit() {
    let mut host = desk().start();
    let turn = settled_by(&host, &pay(&host), json!({"decision": "deny", "comment": "too much"}));
    host.restart();
    let audit = host.admin.get("/v1/audit").ok(200);
    let entry = |action: &str| -> Value {
        audit["entries"].as_array().unwrap().iter().find(|entry| entry["action"] == action).unwrap().clone()
    };
    let denied = entry("deny");
    assert_eq!((&denied["by"], &denied["comment"]), (&json!("alice"), &json!("too much")));
    assert_eq!((&denied["turn"], &denied["call"]), (&turn["turn"], &turn["calls"][0]["id"]));
    assert!(denied["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(entry("call.settled")["outcome"], "denied");
}

/// "HITL Orchestrator", step 2: the page receives a request with everything it shows, and its end.
#[test]
fn agentkit_a_page_gets_a_request_and_its_end() {
    let host = desk().start();
    let mut stream = host.approver.events("/v1/conversations/c/events");
    let turn = pay(&host);
    let asked = stream.named("call.suspended").data;
    assert_eq!((&asked["suspension"], &asked["tool"]), (&json!(suspension_of(&turn)), &json!("pay")));
    assert_eq!(asked["arguments"], json!({"to": "bob", "amount": 70}));
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "deny"}));
    assert_eq!(stream.named("call.resolved").data["suspension"], asked["suspension"]);
}

/// The same, step 3: `approved ?? false`. A decision that never comes is not an approval.
#[test]
fn agentkit_a_timeout_is_not_an_approval() {
    let host = brief().start();
    for tool in ["ends", "denies"] {
        let turn = host.agent.settled(&host.agent.call("c", tool, json!({})));
        assert_eq!((&turn["calls"][0]["attempt"], &content(&turn)["ok"]), (&json!(0), &json!(false)), "{tool}");
    }
}
