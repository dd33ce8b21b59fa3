//! Every legal cell of the matrix, from submission to result, and a turn that mixes them.

use serde_json::json;
use toolgate_tests::host::Setup;
use toolgate_tests::http::{outcomes, suspension_of};

use crate::{balance, ledger_host, stats, transfer};

#[test]
fn a_server_tool_runs_at_once() {
    let host = Setup::with(&["textkit"]).start();
    let turn = host.agent.submit("c", json!([stats("a")]));
    assert_eq!((turn["state"].as_str(), outcomes(&turn)), (Some("settled"), vec!["ok".to_owned()]));
    let call = &turn["calls"][0];
    assert_eq!((&call["executor"], &call["approval"]), (&json!("server"), &json!("auto")));
    assert_eq!((&call["trusted"], &call["attempt"]), (&json!(true), &json!(1)));
    assert_eq!(call["content"]["result"]["words"], 6);
}

#[test]
fn each_call_has_a_fresh_instance() {
    let host = Setup::with(&["lab"]).start();
    let call = |id: &str| json!({"id": id, "tool": "identity", "arguments": {}});
    let turns = [json!([call("a"), call("b")]), json!([call("c")])].map(|calls| host.agent.submit("c", calls));
    let calls = turns.iter().flat_map(|turn| turn["calls"].as_array().unwrap());
    let counted: Vec<_> = calls.map(|call| &call["content"]["result"]["calls"]).collect();
    assert_eq!(counted, [1, 1, 1], "no call sees what an earlier one counted");
}

#[test]
fn a_gated_server_tool_runs_once_it_is_approved() {
    let host = ledger_host("");
    let turn = host.agent.submit("c", json!([transfer("t", 250)]));
    assert_eq!((outcomes(&turn), &turn["calls"][0]["content"]), (vec!["awaiting".to_owned()], &json!(null)));
    assert_eq!(balance(&host, "bob"), 1000);
    let asked = &turn["pending"][0];
    assert_eq!((&asked["kind"], &asked["allowed"]), (&json!("approval"), &json!(["approve", "deny"])));
    assert_eq!(asked["prompt"], "Transfer 250 cents from alice to bob?");
    let answer = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve", "comment": "fine"}));
    assert_eq!(answer.ok(200)["replayed"], false);
    let turn = host.agent.settled(&turn);
    assert_eq!(outcomes(&turn), ["ok"]);
    assert_eq!((&turn["calls"][0]["approver"], &turn["caller"]), (&json!("alice"), &json!("agent")));
    assert_eq!((balance(&host, "alice"), balance(&host, "bob")), (750, 1250));
}

#[test]
fn answer_to_a_question_is_the_result() {
    let host = Setup::with(&["ask"]).start();
    let turn = host.agent.call("c", "ask_user", json!({"question": "Tea?", "choices": ["yes", "no"]}));
    let asked = &turn["pending"][0];
    assert_eq!((&asked["kind"], &asked["prompt"]), (&json!("elicitation"), &json!("The agent asks: Tea?")));
    assert_eq!(asked["response_schema"]["required"], json!(["answer"]));
    let answer = json!({"decision": "answer", "data": {"answer": "yes"}});
    assert_eq!(host.approver.resolve(&suspension_of(&turn), answer.clone()).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    assert_eq!(turn["calls"][0]["content"], json!({"ok": true, "result": answer}));
    assert_eq!(turn["calls"][0]["trusted"], true);
}

#[test]
fn attached_client_runs_a_call() {
    let host = Setup::with(&["browser"]).start();
    let mut page = host.page.events("/v1/conversations/c/events?client=get_location");
    let turn = host.agent.call("c", "get_location", json!({}));
    let asked = page.named("call.suspended");
    assert_eq!((&asked.data["kind"], &asked.data["turn"]), (&json!("client_exec"), &turn["turn"]));
    let suspension = asked.data["suspension"].as_str().unwrap().to_owned();
    let place = json!({"latitude": 52.5, "longitude": 13.4, "accuracy": 20});
    assert_eq!(host.page.resolve(&suspension, json!({"decision": "result", "data": place})).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    assert_eq!((outcomes(&turn), &turn["calls"][0]["content"]["result"]), (vec!["ok".to_owned()], &place));
    assert_eq!(turn["calls"][0]["trusted"], false);
}

#[test]
fn late_client_gets_open_suspensions_and_may_fail_them() {
    let host = Setup::with(&["browser"]).start();
    let turn = host.agent.call("c", "get_location", json!({}));
    let first = host.page.events("/v1/conversations/c/events?client=get_location").take();
    assert_eq!((first.data["snapshot"].as_bool(), &first.id), (Some(true), &None));
    let answer = json!({"decision": "error", "data": "denied", "comment": "the user said no"});
    assert_eq!(host.page.resolve(first.data["suspension"].as_str().unwrap(), answer).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    assert_eq!(outcomes(&turn), ["failed(tool_failed)"]);
    assert_eq!(turn["calls"][0]["content"]["error"]["message"], "the user said no");
}

#[test]
fn gated_client_tool_waits_twice_with_separate_answers() {
    let host = Setup::with(&["browser"]).start();
    let mut page = host.page.events("/v1/conversations/c/events?client=pick_file");
    let turn = host.agent.call("c", "pick_file", json!({"purpose": "the invoice"}));
    let approval = suspension_of(&turn);
    assert_eq!(turn["pending"][0]["prompt"], "The agent wants one of your files: the invoice");
    host.page.resolve(&approval, json!({"decision": "approve"})).problem(403, "not-allowed");
    assert_eq!(host.approver.resolve(&approval, json!({"decision": "approve"})).ok(200)["ok"], true);
    let asked =
        page.until(|event| event.name == "call.suspended" && event.data["kind"] == "client_exec").pop().unwrap();
    let file = asked.data["suspension"].as_str().unwrap().to_owned();
    assert_ne!(file, approval);
    // A second click on the approval is a replay. It does not answer the client's suspension.
    assert_eq!(host.approver.resolve(&approval, json!({"decision": "approve"})).ok(200)["replayed"], true);
    host.approver.resolve(&file, json!({"decision": "result", "data": {}})).problem(403, "not-allowed");
    let picked = json!({"name": "a.csv", "media_type": "text/csv", "content": "YQ=="});
    assert_eq!(host.page.resolve(&file, json!({"decision": "result", "data": picked})).ok(200)["ok"], true);
    let turn = host.agent.settled(&turn);
    assert_eq!((outcomes(&turn), &turn["calls"][0]["approver"]), (vec!["ok".to_owned()], &json!("alice")));
}

#[test]
fn a_provider_call_is_recorded_with_its_result_or_refused() {
    let host = Setup::with(&["websearch"]).start();
    let call = |id: &str| json!({"id": id, "tool": "web_search", "arguments": {"query": "weather"}});
    let with = |id: &str, member: &str, value: serde_json::Value| {
        let mut call = call(id);
        call[member] = value;
        call
    };
    let calls = json!([with("a", "result", json!(["rain"])), with("b", "error", json!("unreachable"))]);
    let turn = host.agent.submit("c", calls);
    assert_eq!(outcomes(&turn), ["ok", "failed(tool_failed)"]);
    assert_eq!((&turn["calls"][0]["trusted"], &turn["calls"][0]["attempt"]), (&json!(false), &json!(0)));
    host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call("d")]})).problem(422, "invalid");
    let both = with("e", "result", json!(1));
    let both = json!({"calls": [{"id": "e", "tool": "web_search", "arguments": both["arguments"], "result": 1, "error": "x"}]});
    host.agent.post("/v1/conversations/c/turns", &both).problem(422, "invalid");
}

#[test]
fn siblings_are_independent_and_results_are_in_order() {
    let setup = Setup::with(&["ledger", "textkit", "ask", "browser", "websearch", "crunch"]);
    let host = crate::opened(setup.start());
    let mut page = host.page.events("/v1/conversations/c/events?client=get_location");
    let points = json!([[0, 0], [0, 1], [9, 9], [9, 8]]);
    let calls = json!([
        transfer("t", 100),
        {"id": "q", "tool": "ask_user", "arguments": {"question": "When?"}},
        {"id": "l", "tool": "get_location", "arguments": {}},
        stats("s"),
        {"id": "w", "tool": "web_search", "arguments": {"query": "x"}, "result": []},
        {"id": "k", "tool": "cluster", "arguments": {"points": points, "clusters": 2}},
        {"id": "u", "tool": "text_stat", "arguments": {}},
        {"id": "v", "tool": "text_stats", "arguments": {"words": 1}},
    ]);
    let turn = host.agent.submit("c", calls);
    let running =
        ["awaiting", "awaiting", "awaiting", "ok", "ok", "ok", "failed(unknown_tool)", "failed(invalid_arguments)"];
    assert_eq!(outcomes(&turn), running);
    let nearest = turn["calls"][6]["content"]["error"]["message"].as_str().unwrap();
    assert!(nearest.contains("did you mean text_stats?"), "{nearest}");
    let asked = |call: &str| {
        let pending = turn["pending"].as_array().unwrap().iter().find(|open| open["call"] == call);
        pending.unwrap()["suspension"].as_str().unwrap().to_owned()
    };
    let place = json!({"latitude": 1, "longitude": 2, "accuracy": 3});
    let page_event = page.until(|event| event.name == "call.suspended" && event.data["kind"] == "client_exec").pop();
    assert_eq!(page_event.unwrap().data["call"], "l");
    assert_eq!(host.page.resolve(&asked("l"), json!({"decision": "result", "data": place})).ok(200)["ok"], true);
    assert_eq!(host.approver.resolve(&asked("q"), json!({"decision": "decline"})).ok(200)["ok"], true);
    assert_eq!(
        host.approver.resolve(&asked("t"), json!({"decision": "deny", "comment": "too much"})).ok(200)["ok"],
        true
    );
    let turn = host.agent.settled(&turn);
    let ended = ["denied", "ok", "ok", "ok", "ok", "ok", "failed(unknown_tool)", "failed(invalid_arguments)"];
    assert_eq!(outcomes(&turn), ended);
    let order: Vec<_> = turn["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(order, ["t", "q", "l", "s", "w", "k", "u", "v"]);
    assert!(turn["calls"][0]["content"]["error"]["message"].as_str().unwrap().contains("too much"));
    assert_eq!(balance(&host, "bob"), 1000);
}
