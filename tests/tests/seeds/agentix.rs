//! Agentix, `guides/tools.md`: two axes, one primitive for suspensions, client rules, results.

use serde_json::json;
use toolgate_tests::guests::fixture;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, path, suspension_of};

use crate::{answered, brief, content, desk, listed, pay, settled_by};

/// "Executor axis" and "Tool definition": every executor and both gates are declared once and listed with the tool.
#[test]
fn agentix_a_tool_is_declared_once_on_two_axes() {
    let tools = desk().start().admin.get("/v1/tools").ok(200);
    let axes = tools["tools"].as_array().unwrap().iter().map(|tool| {
        let word = |name: &str| tool[name].as_str().unwrap().to_owned();
        format!("{} {} {}", word("name"), word("executor"), word("approval"))
    });
    let axes: Vec<_> = axes.collect();
    let expected = [
        "deploy_gate human auto",
        "locate client auto",
        "note server auto",
        "opinion human auto",
        "pay server requires-approval",
        "pick client requires-approval",
        "search provider auto",
        "talk server auto",
    ];
    assert_eq!(axes, expected);
    let note = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "note").unwrap();
    assert_eq!(note["retention"], json!({"max_count": 3, "never_evict": false}));
}

/// "Approval gate", the legal matrix: circular gates, and gates of calls that cannot be stopped, are refused at
/// declaration.
#[test]
fn agentix_an_illegal_declaration_is_refused() {
    let host = Setup::default().start();
    for (executor, rule) in [("human", "gated-human"), ("provider", "gated-provider")] {
        let tools = json!([{"name": "never", "executor": executor, "approval": "requires-approval"}]);
        let refused = host.admin.put("/v1/plugins/circular", &fixture(&tools)).problem(422, "plugin-refused");
        assert_eq!(refused["findings"][0]["rule"], rule, "{refused:#}");
    }
    assert_eq!(host.admin.get("/v1/tools").ok(200)["tools"], json!([]));
}

/// "Approval gate": two phases. A question has one: its answer is the result, and nothing runs after it.
#[test]
fn agentix_a_gate_has_two_phases_and_a_question_one() {
    let host = desk().start();
    let turn = settled_by(&host, &pay(&host), json!({"decision": "approve"}));
    assert_eq!(
        (&turn["calls"][0]["attempt"], content(&turn)),
        (&json!(1), &json!({"ok": true, "result": {"to": "bob", "amount": 70}}))
    );
    let turn = host.agent.call("c", "opinion", json!({}));
    let turn = settled_by(&host, &turn, json!({"decision": "answer", "data": [1]}));
    assert_eq!((&turn["calls"][0]["attempt"], content(&turn)), (&json!(0), &json!({"ok": true, "result": [1]})));
}

/// "Approval gate": a gated client call suspends twice, two pending entries, two resolutions.
#[test]
fn agentix_gated_client_suspends_twice() {
    let host = desk().start();
    let mut page = host.page.events("/v1/conversations/c/events?client=pick");
    let turn = host.agent.call("c", "pick", json!({}));
    let approval = suspension_of(&turn);
    answered(&host.approver, &approval, json!({"decision": "approve"}));
    let asked =
        page.until(|event| event.name == "call.suspended" && event.data["kind"] == "client_exec").pop().unwrap();
    let file = asked.data["suspension"].as_str().unwrap();
    assert_ne!(file, approval);
    answered(&host.page, file, json!({"decision": "result", "data": "a.csv"}));
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
    let mut kinds: Vec<_> =
        listed(&host.admin, "state=closed&tool=pick").iter().map(|one| one["kind"].clone()).collect();
    kinds.sort_by_key(ToString::to_string);
    assert_eq!(kinds, [json!("approval"), json!("client_exec")]);
}

/// "Progressive tools": progress is live, and the one result is one event.
#[test]
fn agentix_a_streaming_tool_reports_progress_and_one_result() {
    let host = desk().start();
    let mut stream = host.agent.events("/v1/conversations/c/events");
    let turn = host.agent.call("c", "talk", json!({"a": 1}));
    assert_eq!(content(&turn)["result"], json!({"a": 1}));
    assert_eq!(stream.named("call.progress").id, None, "live, not stored");
    let log = host.agent.events("/v1/conversations/c/events").until(|event| event.name == "turn.settled");
    let count = |name: &str| log.iter().filter(|event| event.name == name).count();
    assert_eq!((count("call.settled"), count("call.progress")), (1, 0));
}

/// "Schema pass-through": the plugin's own text comes out, to the byte.
#[test]
fn agentix_a_schema_is_passed_on_verbatim() {
    let schema = r#"{"type":"object", "x-order":[3,2.50,1e2], "properties":{"z":{"type":"string"},"a":true}}"#;
    let host = Setup::default().component("odd", fixture(&json!([{"name": "odd", "parameters": schema}]))).start();
    for format in ["toolgate", "openai", "anthropic", "mcp"] {
        let text = host.admin.get(&format!("/v1/tools?format={format}")).text;
        assert!(text.contains(schema), "{format}: {text}");
    }
}

/// "The suspension/resolution primitive": a turn mixes calls, and it is returned only when none of its calls waits.
/// People see the calls that wait for people or clients.
#[test]
fn agentix_a_mixed_turn_resumes_when_nothing_waits() {
    let host = desk().start();
    let calls = json!([
        {"id": "n", "tool": "note", "arguments": {}},
        {"id": "q", "tool": "opinion", "arguments": {}},
        {"id": "p", "tool": "pay", "arguments": {"to": "bob", "amount": 1}},
        {"id": "s", "tool": "search", "arguments": {}, "result": "found"},
    ]);
    let turn = host.agent.submit("c", calls);
    assert_eq!(outcomes(&turn), ["ok", "awaiting", "awaiting", "ok"]);
    let executors = turn["calls"].as_array().unwrap().iter().map(|call| call["executor"].as_str().unwrap());
    assert_eq!(executors.collect::<Vec<_>>(), ["server", "human", "server", "provider"]);
    let open = listed(&host.approver, "conversation=c");
    let shapes: Vec<_> = open
        .iter()
        .map(|one| [&one["call"], &one["executor"], &one["kind"]].map(|word| word.as_str().unwrap()))
        .collect();
    assert_eq!(shapes, [["q", "human", "elicitation"], ["p", "server", "approval"]]);
    assert_eq!(open[1]["prompt"], "Pay 1 to bob?");
    let [question, approval] = [0, 1].map(|n: usize| open[n]["suspension"].as_str().unwrap());
    answered(&host.approver, question, json!({"decision": "answer", "data": "yes"}));
    let between = host.agent.get(&path(&turn)).ok(200);
    assert_eq!((&between["state"], &between["calls"][2]["content"]), (&json!("open"), &json!(null)));
    answered(&host.approver, approval, json!({"decision": "deny"}));
    let turn = host.agent.settled(&turn);
    assert_eq!(outcomes(&turn), ["ok", "ok", "denied", "ok"]);
    let statuses = [&between, &turn].map(|turn| [1, 2].map(|n| turn["calls"][n]["status"].clone()));
    assert_eq!(statuses, [["resolved", "awaiting"], ["resolved", "errored"]]);
    assert!(turn["calls"].as_array().unwrap().iter().all(|call| call["content"].is_object()));
}

/// "Resolver interface": double clicks, resubmits and unknown ids are stale and have no effect.
#[test]
fn agentix_a_second_unknown_or_late_answer_is_stale() {
    let host = desk().start();
    let turn = pay(&host);
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "deny", "comment": "no"}));
    let other = host.admin.resolve(&suspension_of(&turn), json!({"decision": "approve"})).problem(409, "stale");
    assert_eq!((&other["state"], &other["by"]), (&json!("deny"), &json!("alice")));
    let unknown = host.approver.resolve("susp_01935a7c000070008000000000000001", json!({"decision": "approve"}));
    assert_eq!(unknown.problem(409, "stale")["state"], "unknown");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["denied"]);
}

/// "Resolver interface": the reply comes before the resumed work has ended. The answer is stored by that time.
#[test]
fn agentix_the_reply_does_not_wait_for_what_it_resumes() {
    let host = Setup::with(&["lab"]).tables("[[policy]]\ntools = \"sleep\"\nrule = \"ask\"").start();
    let turn = host.agent.call("c", "sleep", json!({"ms": 3_600_000}));
    answered(&host.approver, &suspension_of(&turn), json!({"decision": "approve"}));
    let running = host.agent.get(&path(&turn)).ok(200);
    assert_eq!((outcomes(&running), &running["pending"]), (vec!["running".to_owned()], &json!([])));
    assert_eq!(host.agent.post_nothing(&format!("{}/cancel", path(&turn))).ok(200)["state"], "cancelled");
}

/// "Addressing and revival": an answer resumes a conversation after a kill of the host. Any holder of the id may send
/// it, here the command line.
#[test]
fn agentix_an_answer_resumes_a_killed_conversation() {
    let mut host = desk().start();
    let turn = pay(&host);
    host.restart();
    let said = host.cli(Some(&host.approver), &["approve", &suspension_of(&turn)]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

/// "Timeout and idempotency": an expiry is a result that the model can handle, and a late answer is stale.
#[test]
fn agentix_an_expiry_is_a_result_that_a_model_can_handle() {
    let host = brief().start();
    let turn = host.agent.settled(&host.agent.call("c", "unanswered", json!({})));
    assert_eq!((outcomes(&turn), &content(&turn)["error"]["code"]), (vec!["expired".to_owned()], &json!("expired")));
    let closed = &listed(&host.admin, "state=closed")[0];
    let late = host.approver.resolve(closed["suspension"].as_str().unwrap(), json!({"decision": "answer", "data": 1}));
    assert_eq!(late.problem(409, "stale")["state"], "expired");
}

/// "Resolved: client is human with JS as the user", the security rule: a client's result is checked and never trusted.
#[test]
fn agentix_a_clients_result_is_checked_and_not_trusted() {
    let host = desk().start();
    let page = host.page.events("/v1/conversations/c/events?client=locate");
    let turn = host.agent.call("c", "locate", json!({}));
    let result = |latitude| json!({"decision": "result", "data": {"latitude": latitude}});
    host.page.resolve(&suspension_of(&turn), result(json!("north"))).problem(422, "invalid");
    answered(&host.page, &suspension_of(&turn), result(json!(52.5)));
    let turn = host.agent.settled(&turn);
    assert_eq!(
        (&turn["calls"][0]["trusted"], &turn["calls"][0]["content"]["result"]),
        (&json!(false), &json!({"latitude": 52.5}))
    );
    drop(page);
}

/// The same section, "two edge rules": without a client, a call ends soon. Of two clients, the second answer is stale.
#[test]
fn agentix_no_client_fails_fast_and_a_second_answer_is_stale() {
    let host = desk().settings("client_grace_ms = 40").start();
    let turn = host.agent.settled(&host.agent.call("alone", "locate", json!({})));
    assert_eq!((outcomes(&turn), &content(&turn)["ok"]), (vec!["unavailable".to_owned()], &json!(false)));
    let phone = host.token("phone", &["client"], None);
    let tabs = [&host.page, &phone].map(|tab| tab.events("/v1/conversations/c/events?client=locate"));
    let turn = host.agent.call("c", "locate", json!({}));
    answered(&phone, &suspension_of(&turn), json!({"decision": "result", "data": {"latitude": 1}}));
    let late = host.page.resolve(&suspension_of(&turn), json!({"decision": "result", "data": {"latitude": 2}}));
    assert_eq!(late.problem(409, "stale")["by"], "phone");
    for mut tab in tabs {
        let resolved = tab.named("call.resolved").data;
        assert_eq!((&resolved["by"], &resolved["data"]), (&json!("phone"), &json!({"latitude": 1})));
    }
}

/// "Result convention": the body has the content for the model, for every outcome.
#[test]
fn agentix_every_result_says_ok_or_an_error_in_its_body() {
    let host = desk().start();
    let turn = host.agent.submit(
        "c",
        json!([
            {"id": "a", "tool": "note", "arguments": {"x": 1}},
            {"id": "b", "tool": "nobody", "arguments": {}},
            {"id": "d", "tool": "pay", "arguments": {}},
            {"id": "s", "tool": "search", "arguments": {}, "error": "unreachable"},
        ]),
    );
    let contents: Vec<_> = turn["calls"].as_array().unwrap().iter().map(|call| call["content"].clone()).collect();
    assert_eq!(contents[0], json!({"ok": true, "result": {"x": 1}}));
    for (n, code) in [(1, "unknown_tool"), (2, "invalid_arguments"), (3, "tool_failed")] {
        assert_eq!((&contents[n]["ok"], &contents[n]["error"]["code"]), (&json!(false), &json!(code)));
        assert!(!contents[n]["error"]["message"].as_str().unwrap().is_empty());
    }
}
