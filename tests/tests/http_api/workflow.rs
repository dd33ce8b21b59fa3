//! A workflow builds a version, and deploys it with a nested call of a tool that requires approval.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::guests::{plugin, rollout_grants};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::{answer, nested, waiting};

/// A rollout whose plan is approved. It may call these tools.
fn approved(service: &Server, calls: &[&str]) -> (Host, Value) {
    let grants = rollout_grants("releases", &service.url("/"), calls);
    let host = Setup::default().component("releases", plugin("rollout")).tables(&grants).start();
    let turn = host.agent.call("c", "roll_out", json!({"version": "1.4.2", "settles_s": 1, "deploy": true}));
    let place = json!({"decision": "answer", "data": {"environment": "live"}});
    answer(&host, &waiting(&host, &turn, 1), &place, &json!({"decision": "answer", "data": {"environment": "test"}}));
    answer(&host, &waiting(&host, &turn, 2), &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    (host, turn)
}

/// The values that the service got, in order.
fn sent(service: &Server) -> Vec<Value> {
    service.requests().iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect()
}

#[test]
fn deploy_waits_for_its_own_approval() {
    let service = Server::start();
    let (mut host, turn) = approved(&service, &["roll_out_deploy"]);
    let gate = nested(&host, &turn);
    host.restart();
    let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    assert_eq!((&gate["kind"], &gate["arguments"]), (&json!("approval"), &plan), "{gate:#}");
    assert_eq!(sent(&service), [json!({"version": "1.4.2"})], "nothing is deployed before");
    answer(&host, &gate, &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    let healthy = json!({"decision": "healthy"});
    answer(&host, &waiting(&host, &turn, 5), &healthy, &json!({"decision": "broken"}));
    let call = host.agent.settled(&turn)["calls"][0].clone();
    assert_eq!(call["content"]["result"], json!({"state": "done", "plan": plan}), "{call:#}");
    let deployed = host.agent.get(&path(&call["nested"][0])).ok(200);
    assert_eq!(outcomes(&deployed), ["ok"], "{deployed:#}");
    assert_eq!(sent(&service), [json!({"version": "1.4.2"}), plan]);
}

#[test]
fn deploy_that_is_not_granted_fails_the_call() {
    let service = Server::start();
    let (host, turn) = approved(&service, &[]);
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["failed(tool_failed)"], "{settled:#}");
    let error = settled["calls"][0]["content"]["error"]["message"].as_str().unwrap();
    assert!(error.contains(r#"grants.calls = ["roll_out_deploy"]"#), "{error}");
    assert_eq!(sent(&service), [json!({"version": "1.4.2"})], "nothing is deployed");
}
