//! Jido Composer, "HITL": requests and responses field by field, gates, rejections, resuming once, persistence.

use serde_json::{Value, json};
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, path, suspension_of};

use crate::{answered, brief, content, desk, listed, pay, settled_by};

fn gate(host: &toolgate_tests::host::Host) -> Value {
    let call = json!({"id": "g", "tool": "deploy_gate", "arguments": {"version": "1.2", "environment": "prod"}});
    let context = json!({"build": {"commit": "abc"}, "secret": "hidden"});
    host.agent.submit_turn("c", &json!({"calls": [call], "context": context}))
}

/// "HumanNode in Workflows": a wait is a step and not an error, and the decision is the outcome.
#[test]
fn jido_a_human_node_waits_and_its_decision_is_the_outcome() {
    let host = desk().start();
    for decision in ["approved", "rejected"] {
        let turn = host.agent.call("w", "deploy_gate", json!({"version": "1", "environment": "prod"}));
        assert_eq!((&turn["state"], &turn["calls"][0]["content"]), (&json!("open"), &json!(null)), "no error");
        let turn = settled_by(&host, &turn, json!({"decision": decision}));
        assert_eq!(content(&turn), &json!({"ok": true, "result": {"decision": decision}}));
    }
}

/// "ApprovalRequest": all its fields.
#[test]
fn jido_a_request_has_every_field() {
    let host = desk().start();
    let turn = gate(&host);
    let asked = listed(&host.approver, "").remove(0);
    for (theirs, ours, expected) in [
        ("id", "suspension", json!(suspension_of(&turn))),
        ("name, node_name", "tool", json!("deploy_gate")),
        ("description", "title", json!("Approve the deployment")),
        ("prompt", "prompt", json!("Deploy version 1.2 to prod?")),
        ("visible_context", "context", json!({"build": {"commit": "abc"}})),
        ("allowed_responses", "allowed", json!(["approved", "rejected"])),
        ("timeout_outcome", "on_expiry", json!("error")),
        ("agent_id", "conversation", json!("c")),
        ("agent_module", "plugin", json!("desk")),
        ("workflow_state", "turn", turn["turn"].clone()),
        ("tool_call", "call", json!("g")),
        ("tool_call", "arguments", json!({"version": "1.2", "environment": "prod"})),
        ("metadata", "kind", json!("elicitation")),
    ] {
        assert_eq!(asked[ours], expected, "{theirs}");
    }
    assert_eq!(asked["response_schema"]["required"], json!(["version"]), "response_schema");
    assert!(asked["expires_at"].as_str().unwrap() > asked["created_at"].as_str().unwrap(), "timeout");
}

/// "Validation on Resume" and "ApprovalResponse": the id, the decision and the data are checked. The respondent and the
/// comment are stored.
#[test]
fn jido_a_response_is_validated_and_kept() {
    let host = desk().start();
    let turn = gate(&host);
    let stranger = host.approver.resolve("susp_01935a7c000070008000000000000001", json!({"decision": "approved"}));
    stranger.problem(409, "stale");
    for (answer, pointer) in [
        (json!({"decision": "approve"}), "/decision"),
        (json!({"decision": "approved", "data": {"version": 2}}), "/data/version"),
        (json!({"decision": "approved", "data": {}}), "/data"),
    ] {
        let refused = host.approver.resolve(&suspension_of(&turn), answer).problem(422, "invalid");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused:#}");
    }
    let answer = json!({"decision": "approved", "data": {"version": "1.3"}, "comment": "Ship it!"});
    let settled = settled_by(&host, &turn, answer);
    assert_eq!(content(&settled)["result"], json!({"decision": "approved", "data": {"version": "1.3"}}));
    let closed = host.approver.get(&format!("/v1/suspensions/{}", suspension_of(&turn))).ok(200)["closed"].clone();
    assert_eq!((&closed["decision"], &closed["data"]), (&json!("approved"), &json!({"version": "1.3"})));
    assert_eq!((&closed["by"], &closed["comment"]), (&json!("alice"), &json!("Ship it!")), "respondent, comment");
}

/// "HumanNode Fields", `context_keys`: a person sees the members of the context that the tool names, or all.
#[test]
fn jido_a_person_sees_the_context_that_the_tool_names() {
    let host = desk().start();
    let context = json!({"page": "/cart", "build": {"commit": "abc"}, "secret": "hidden"});
    let call = |tool: &str| json!({"id": tool, "tool": tool, "arguments": {"to": "bob", "amount": 1}});
    let calls = json!([call("pay"), call("deploy_gate"), call("opinion")]);
    let turn = host.agent.submit_turn("c", &json!({"calls": calls, "context": context}));
    let shown = [json!({"page": "/cart"}), json!({"build": {"commit": "abc"}}), context];
    for (one, shown) in listed(&host.approver, "").iter().zip(&shown) {
        assert_eq!(&one["context"], shown, "{}", one["tool"]);
        let display: Value = serde_json::from_str(one["display"]["context"].as_str().unwrap()).unwrap();
        assert_eq!(&display, shown, "and the displayed context too");
    }
    let pending = turn["pending"].to_string();
    assert_eq!(pending.matches("hidden").count(), 1, "{pending}");
}

/// "Dynamic Prompts": made from the arguments by a template, not by a function of the plugin.
#[test]
fn jido_a_prompt_is_made_from_the_arguments() {
    let host = desk().start();
    let prompt = |amount: u64, to: &str| {
        let turn = host.agent.call("c", "pay", json!({"to": to, "amount": amount}));
        turn["pending"][0]["prompt"].as_str().unwrap().to_owned()
    };
    assert_eq!([prompt(1, "bob"), prompt(2, "{amount}")], ["Pay 1 to bob?", "Pay 2 to {amount}?"]);
}

/// "Dynamic Approval Policy" has a reason and a risk. The tool's own risk is shown if no policy sets one.
#[test]
fn jido_an_approval_shows_the_risk() {
    let host = desk().start();
    let asked = pay(&host)["pending"][0].clone();
    assert_eq!((&asked["risk"], &asked["title"]), (&json!("high"), &json!("Pay somebody")));
    assert_eq!(host.agent.call("c", "opinion", json!({}))["pending"][0]["risk"], json!(null));
}

/// "Tool Approval Gates in Orchestrators": gated calls wait independently, and their siblings run meanwhile.
#[test]
fn jido_ungated_siblings_run_while_gated_calls_wait() {
    let host = desk().start();
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "arguments": {"to": "bob", "amount": 1}});
    let turn =
        host.agent.submit("c", json!([call("a", "pay"), call("b", "note"), call("d", "pay"), call("e", "note")]));
    assert_eq!(outcomes(&turn), ["awaiting", "ok", "awaiting", "ok"]);
    assert_eq!(turn["pending"].as_array().unwrap().len(), 2);
}

/// "Rejection Handling": the model gets the denial and its reason. The turn decides about the siblings.
#[test]
fn jido_a_rejection_affects_siblings_as_the_turn_requests() {
    let host = desk().start();
    for (rejection, state, second) in [
        ("continue_siblings", "open", "awaiting"),
        ("cancel_siblings", "settled", "cancelled_by_sibling"),
        ("abort_turn", "aborted", "cancelled_by_sibling"),
    ] {
        let call = |id: &str| json!({"id": id, "tool": "pay", "arguments": {"to": id, "amount": 1}});
        let body = json!({"calls": [call("a"), call("b")], "rejection": rejection});
        let turn = host.agent.submit_turn(rejection, &body);
        let first = turn["pending"][0]["suspension"].as_str().unwrap();
        answered(&host.approver, first, json!({"decision": "deny", "comment": "Too risky."}));
        let turn = host.agent.get(&path(&turn)).ok(200);
        assert_eq!(
            (turn["state"].as_str(), outcomes(&turn)),
            (Some(state), vec!["denied".to_owned(), second.to_owned()])
        );
        assert!(content(&turn)["error"]["message"].as_str().unwrap().contains("Too risky."), "{turn:#}");
    }
}

/// "HumanNode Fields", `timeout` and `timeout_outcome`: the tool declares the outcome of an expiry, for example an
/// answer.
#[test]
fn jido_a_timeout_has_the_outcome_that_the_tool_declares() {
    let host = brief().start();
    let turn = host.agent.settled(&host.agent.call("c", "assumes", json!({})));
    assert_eq!(content(&turn), &json!({"ok": true, "result": {"decision": "later"}}));
    let closed = &listed(&host.admin, "state=closed")[0];
    assert_eq!((&closed["state"], &closed["closed"]["by"]), (&json!("expired"), &json!("system")));
}

/// "Resume API" and "Idempotent Resume": of many concurrent answers exactly one is accepted. The same answer again is a
/// replay.
#[test]
fn jido_of_many_concurrent_answers_one_resumes() {
    let host = desk().start();
    let turn = pay(&host);
    let suspension = suspension_of(&turn);
    let people: Vec<_> = (0..6).map(|n| host.token(&format!("person{n}"), &["approver"], None)).collect();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let answer = |(n, by): (usize, &toolgate_tests::http::Client)| {
            let decision = if n % 2 == 0 { "approve" } else { "deny" };
            by.resolve(&suspension, json!({"decision": decision})).status
        };
        let tries: Vec<_> = people.iter().enumerate().map(|one| scope.spawn(move || answer(one))).collect();
        tries.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 5, "{statuses:?}");
    let winner = statuses.iter().position(|status| *status == 200).unwrap();
    let closed = listed(&host.admin, "state=closed")[0]["closed"].clone();
    assert_eq!(closed["by"], format!("person{winner}"));
    let again = people[winner].resolve(&suspension, json!({"decision": closed["decision"]})).ok(200);
    assert_eq!(again["replayed"], true);
    let outcome = if winner % 2 == 0 { "ok" } else { "denied" };
    assert_eq!(outcomes(&host.agent.settled(&turn)), [outcome]);
}

/// "Tool Approval Gates", siblings run concurrently: a call that does not end delays no sibling.
#[test]
fn jido_ungated_siblings_run_concurrently() {
    let host = Setup::with(&["lab"]).start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let calls = json!([
        {"id": "endless", "tool": "sleep", "arguments": {"ms": 3_600_000}},
        {"id": "short", "tool": "echo", "arguments": {"value": 1}},
        {"id": "gated", "tool": "gated_echo", "arguments": {"value": 2}},
    ]);
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": calls})).ok(201);
    stream.until(|event| event.name == "call.settled" && event.data["call"] == "short");
    assert_eq!(outcomes(&host.agent.get(&path(&turn)).ok(200)), ["running", "ok", "awaiting"]);
    assert_eq!(host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200)["state"], "cancelled");
}

/// "Persistence", checkpoint, thaw and resume: a suspension is unchanged after one kill and after a second one.
#[test]
fn jido_a_suspended_flow_resumes_unchanged() {
    let mut host = desk().start();
    let turn = gate(&host);
    let before = listed(&host.approver, "");
    for _ in 0..2 {
        host.restart();
        assert_eq!(listed(&host.approver, ""), before);
    }
    let turn = settled_by(&host, &turn, json!({"decision": "rejected"}));
    assert_eq!(content(&turn)["result"]["decision"], "rejected");
}
