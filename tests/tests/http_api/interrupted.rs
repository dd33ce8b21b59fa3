//! Calls that a kill of the host interrupts: their attempts, their idempotency keys, and their requests in doubt.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path, suspension_of};

use crate::durable::programs;

const HOUR: u64 = 3_600_000;

/// The key that a run of a call has logged. Asks until the run has logged it.
fn key(host: &Host, call: &str, run: u32) -> String {
    host.agent.until(&format!("/v1/conversations/c/calls/{call}/log"), |answer| {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let log = serde_json::from_str::<Value>(&answer.text).unwrap();
        let found = log["runs"].as_array().unwrap().iter().find(|found| found["run"] == run)?;
        Some(found["lines"][0]["message"].as_str().unwrap().to_owned())
    })
}

fn submitted(host: &Host, id: &str, tool: &str) -> Value {
    let call = json!({"id": id, "tool": tool, "arguments": {"ms": HOUR}});
    host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201)
}

#[test]
fn call_interrupted_by_a_kill_runs_again_with_the_same_key() {
    let mut host = Setup::with(&["lab"]).settings("max_attempts = 3").start();
    let turn = submitted(&host, "s", "key");
    assert_eq!(turn["running"], true);
    let first = key(&host, "s", 1);
    let other = submitted(&host, "other", "key");
    assert_ne!(key(&host, "other", 1), first, "each call has a key of its own");
    assert_eq!(host.agent.post_nothing(&format!("{}/cancel", path(&other))).ok(200)["state"], "cancelled");
    for run in [2, 3] {
        host.restart();
        assert_eq!(key(&host, "s", run), first);
        assert_eq!(host.agent.get(&path(&turn)).ok(200)["calls"][0]["attempt"], run);
    }
    // After the maximum number of interrupted attempts, the call is not tried again, because its effects are unknown.
    host.restart();
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["in_doubt"]);
}

/// The key of a call depends on the submission. So it is the same on every host, and edits cannot change it.
#[test]
fn key_is_the_same_after_edits_and_doubts() {
    let approved = |host: &Host, arguments: Value| {
        let turn = submitted(host, "g", "gated_key");
        let answer = json!({"decision": "approve", "arguments": arguments});
        assert_eq!(host.approver.resolve(&suspension_of(&turn), answer).ok(200)["ok"], true);
        (key(host, "g", 1), turn)
    };
    let (as_submitted, _) = approved(&Setup::with(&["lab"]).start(), json!({"ms": HOUR}));
    let mut host = Setup::with(&["lab"]).start();
    let (edited, turn) = approved(&host, json!({"ms": HOUR - 1}));
    assert_eq!(edited, as_submitted, "an approver's edit");
    host.restart();
    let doubt = host.agent.get(&path(&turn)).ok(200);
    assert_eq!(doubt["pending"][0]["in_doubt_attempt"], 1, "{doubt:#}");
    let asked = host.approver.get(&format!("/v1/suspensions/{}", suspension_of(&doubt))).ok(200);
    let both = [&asked["arguments"]["ms"], &asked["submitted"]["ms"]].map(Value::as_u64);
    assert_eq!(both, [Some(HOUR - 1), Some(HOUR)], "people see both: {asked:#}");
    assert_eq!(asked["display"]["submitted"], r#"{"ms":3600000}"#);
    let again = host.approver.resolve(&suspension_of(&doubt), json!({"decision": "approve"})).ok(200);
    assert_eq!((&again["ok"], key(&host, "g", 2)), (&json!(true), as_submitted), "a person has it run again");
    assert_eq!(host.agent.get(&path(&turn)).ok(200)["calls"][0]["arguments"]["ms"], HOUR - 1, "the edit is kept");
}

/// The server carries out the request, and the host is killed before it has the answer.
#[test]
fn request_interrupted_by_a_kill_is_decided_by_a_person() {
    let server = Server::start();
    server.hold(0);
    let mut host = programs(&server);
    let send = json!({"do": "send", "method": "POST", "url": server.url("/add?key=1"), "body": "x"});
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": [send]}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    host.agent.until(&path(&turn), |_| (server.requests().len() == 1).then_some(()));
    host.restart();

    let asked = host.approver.until("/v1/pending", |answer| {
        let listed = serde_json::from_str::<Value>(&answer.text).unwrap();
        listed["suspensions"].get(0).cloned()
    });
    assert_eq!((&asked["kind"], &asked["editable"], &asked["step"]), (&json!("approval"), &json!("all"), &Value::Null));
    assert_eq!((&asked["arguments"], &asked["prompt_by"]), (&json!({"1": "undecided"}), &json!("host")));
    let [request] = &asked["requests_in_doubt"].as_array().unwrap()[..] else { panic!("{asked:#}") };
    let name = format!("http POST {}", server.url("/add"));
    assert_eq!((&request["entry"], &request["request"]), (&json!(1), &json!(name)), "without its query");
    let card = host.cli(Some(&host.approver), &["show", asked["suspension"].as_str().unwrap()]).out;
    assert!(card.contains(&format!("1: {name}")) && card.contains(r#"--arguments '{"1":"DECISION"}'"#), "{card}");

    let id = asked["suspension"].as_str().unwrap();
    let by_caller = host.agent.resolve(id, json!({"decision": "approve", "arguments": {"1": "send_again"}}));
    assert_eq!(by_caller.status, 403, "{}", by_caller.text);
    let undecided = host.approver.resolve(id, json!({"decision": "approve"}));
    assert_eq!(undecided.status, 422, "{}", undecided.text);
    assert!(undecided.text.contains("/arguments/1"), "{}", undecided.text);
    let done = json!({"decision": "approve", "arguments": {"1": {"status": 201, "body": "x: 1"}}});
    assert_eq!(host.approver.resolve(id, done).ok(200)["ok"], true);
    let settled = host.agent.settled(&turn);
    assert_eq!(settled["calls"][0]["content"]["result"], json!([{"status": 201, "text": "x: 1"}]), "{settled:#}");
    assert_eq!(server.requests().len(), 1, "it is not sent again");
}
