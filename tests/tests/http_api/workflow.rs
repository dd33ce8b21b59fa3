//! A workflow builds a version, deploys it with a nested call of a tool that requires approval, and verifies it.

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::guests::{plugin, rollout_grants};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::{answer, nested, waiting};

/// A rollout whose plan is approved. It may call these tools.
fn approved(service: &Server, calls: &[&str], arguments: &Value) -> (Host, Value) {
    let grants = rollout_grants("releases", &service.url("/"), calls);
    let host = Setup::default().component("releases", plugin("rollout")).tables(&grants).start();
    let turn = host.agent.call("c", "roll_out", arguments.clone());
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
    let arguments = json!({"version": "1.4.2", "settles_s": 1, "deploy": true});
    let (mut host, turn) = approved(&service, &["roll_out_deploy"], &arguments);
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
fn service_decides_about_a_version_that_is_reported_as_healthy() {
    let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    let broken = json!({"state": "rolled back", "reason": "the server answered with status 503", "plan": plan});
    for (refusal, result) in [(None, json!({"state": "done", "plan": plan})), (Some((503, "1")), broken)] {
        let service = Server::start();
        let arguments = json!({"version": "1.4.2", "settles_s": 1, "deploy": true, "signal": "health"});
        let (host, turn) = approved(&service, &["roll_out_deploy"], &arguments);
        answer(&host, &nested(&host, &turn), &json!({"decision": "approve"}), &json!({"decision": "deny"}));
        let _ = waiting(&host, &turn, 4);
        service.refuse(refusal);
        let _ = host.agent.post("/v1/conversations/c/signals/health", &json!({"healthy": true})).ok(200);
        let call = host.agent.settled(&turn)["calls"][0].clone();
        assert_eq!(call["content"]["result"], result, "{call:#}");
        let requests = service.requests();
        let requests: Vec<_> = requests.iter().map(|request| format!("{} {}", request.method, request.path)).collect();
        assert_eq!(requests, ["POST /builds", "POST /deployments", "GET /deployments/1.4.2"]);
    }
}

#[test]
fn deploy_that_is_not_granted_fails_the_call() {
    let service = Server::start();
    let (host, turn) = approved(&service, &[], &json!({"version": "1.4.2", "deploy": true}));
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["failed(tool_failed)"], "{settled:#}");
    let error = settled["calls"][0]["content"]["error"]["message"].as_str().unwrap();
    assert!(error.contains(r#"grants.calls = ["roll_out_deploy"]"#), "{error}");
    assert_eq!(sent(&service), [json!({"version": "1.4.2"})], "nothing is deployed");
}
