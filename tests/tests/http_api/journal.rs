//! The journal of a durable call over HTTP: what it shows, to whom, and that the receipt keeps its length and digest.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::http::outcomes;
use toolgate_tests::steps::{answer, waiting};

use crate::durable::programs;

const JOURNAL: &str = "/v1/conversations/c/calls/p/journal";

/// Each entry: its number, its run, the steps before it, its function and its state.
fn shown(journal: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let entry = |entry: &Value| {
        let [number, run, steps, function, state] =
            ["number", "run", "after_step", "function", "state"].map(|name| text(&entry[name]));
        format!("{number} run {run} after {steps}: {function}, {state}")
    };
    journal["entries"].as_array().unwrap().iter().map(entry).collect()
}

#[test]
fn journal_shows_what_a_call_did_without_its_values() {
    let server = Server::start();
    let host = programs(&server);
    let secret = "a value that nobody else sees";
    let url = server.url("/add?token=of-the-query");
    let program = json!([
        {"do": "set", "key": "k", "value": secret}, {"do": "get", "key": "k"}, {"do": "get", "key": "k"},
        {"do": "ask", "prompt": "Go on?\nIt costs nothing."},
        {"do": "send", "method": "POST", "url": url, "body": secret},
    ]);
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let asked = waiting(&host, &turn, 1);
    let waits = host.agent.get(JOURNAL).ok(200);
    assert_eq!((&waits["status"], &waits["steps"][0]["state"]), (&json!("awaiting"), &json!("open")), "{waits:#}");
    answer(&host, &asked, &json!({"decision": "answer", "data": "yes"}), &json!({"decision": "answer", "data": "no"}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");

    let journal = host.agent.get(JOURNAL).ok(200);
    let post = format!("http POST {}", server.url("/add"));
    assert_eq!(
        shown(&journal),
        [
            "0 run 1 after 0: configuration, done".to_owned(),
            "1 run 1 after 0: key-value set, done".to_owned(),
            "2 run 1 after 0: key-value get, done".to_owned(),
            "3 run 1 after 0: key-value get, done".to_owned(),
            format!("4 run 2 after 1: {post}, begun"),
            format!("5 run 2 after 1: {post}, done"),
        ],
        "{journal:#}"
    );
    let [step] = &**journal["steps"].as_array().unwrap() else { panic!("{journal:#}") };
    let of_step = ["kind", "prompt", "state", "by"].map(|name| step[name].as_str().unwrap());
    assert_eq!(of_step, ["elicitation", "Go on?", "answer", "alice"], "{step:#}");
    let text = journal.to_string();
    assert!(!text.contains("nobody else") && !text.contains("of-the-query"), "{text}");
    let entry = |number: usize| &journal["entries"][number];
    assert_eq!(entry(2)["digest"], entry(3)["digest"], "the same result");
    assert_ne!(entry(2)["digest"], entry(1)["digest"]);
    assert_eq!((&entry(4)["bytes"], &entry(4)["digest"]), (&Value::Null, &Value::Null));

    let page = host.agent.get(&format!("{JOURNAL}?after=1&limit=2")).ok(200);
    assert_eq!((&page["length"], &page["next"], &page["steps"]), (&json!(6), &json!(3), &Value::Null), "{page:#}");
    assert_eq!(page["entries"], json!([entry(2), entry(3)]), "the digests are the same on each page");
    assert_eq!(host.agent.get(&format!("{JOURNAL}?after=5")).ok(200)["next"], Value::Null);
    host.agent.get(&format!("{JOURNAL}?limit=501")).problem(400, "bad-request");
    host.token("other", &["caller"], None).get(JOURNAL).problem(404, "not-found");

    let receipt = &settled["calls"][0]["receipt"]["journal"];
    assert_eq!(receipt["entries"], 6, "{settled:#}");
    assert!(receipt["digest"].as_str().unwrap().starts_with("sha256:"), "{receipt}");
}

#[test]
fn card_of_a_step_shows_the_steps_before_it() {
    let host = programs(&Server::start());
    let program = json!([{"do": "ask", "prompt": "Where?"}, {"do": "approve", "value": "live", "who": ["principal:alice"], "quorum": 1}]);
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let asked = waiting(&host, &turn, 1);
    answer(
        &host,
        &asked,
        &json!({"decision": "answer", "data": "left"}),
        &json!({"decision": "answer", "data": "right"}),
    );
    let proposed = waiting(&host, &turn, 2);
    let id = proposed["suspension"].as_str().unwrap();
    let card = host.approver.get(&format!("/v1/suspensions/{id}")).ok(200);
    let [before] = &**card["earlier"].as_array().unwrap() else { panic!("{card:#}") };
    let of_step = ["kind", "prompt", "state", "by"].map(|name| before[name].as_str().unwrap());
    assert_eq!((before["step"].as_u64(), of_step), (Some(1), ["elicitation", "Where?", "answer", "alice"]));
    assert!(before["at"].is_string() && !before.to_string().contains("left"), "without the answer: {before}");
    let first = asked["suspension"].as_str().unwrap();
    assert_eq!(host.approver.get(&format!("/v1/suspensions/{first}")).ok(200)["earlier"], Value::Null);
}
