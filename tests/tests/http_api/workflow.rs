//! A workflow deploys with a nested call of a tool that requires approval.

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path};
use toolgate_tests::steps::{answer, nested, waiting};

/// A rollout whose plan is approved.
fn approved(tables: &str) -> (Host, Value) {
    let host = Setup::with(&["rollout"]).tables(tables).start();
    let turn = host.agent.call("c", "roll_out", json!({"version": "1.4.2", "settles_s": 1, "deploy": true}));
    let place = json!({"decision": "answer", "data": {"environment": "live"}});
    answer(&host, &waiting(&host, &turn, 1), &place, &json!({"decision": "answer", "data": {"environment": "test"}}));
    answer(&host, &waiting(&host, &turn, 2), &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    (host, turn)
}

#[test]
fn deploy_waits_for_its_own_approval() {
    let tables = "[plugin.rollout]\ncomponent = \"any\"\ngrants.calls = [\"roll_out_deploy\"]";
    let (mut host, turn) = approved(tables);
    let gate = nested(&host, &turn);
    host.restart();
    let plan = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    assert_eq!((&gate["kind"], &gate["arguments"]), (&json!("approval"), &plan), "{gate:#}");
    answer(&host, &gate, &json!({"decision": "approve"}), &json!({"decision": "deny"}));
    let healthy = json!({"decision": "healthy"});
    answer(&host, &waiting(&host, &turn, 5), &healthy, &json!({"decision": "broken"}));
    let call = host.agent.settled(&turn)["calls"][0].clone();
    assert_eq!(call["content"]["result"], json!({"state": "done", "plan": plan}), "{call:#}");
    let deployed = host.agent.get(&path(&call["nested"][0])).ok(200);
    assert_eq!(outcomes(&deployed), ["ok"], "{deployed:#}");
}

#[test]
fn deploy_that_is_not_granted_fails_the_call() {
    let (host, turn) = approved("");
    let settled = host.agent.settled(&turn);
    assert_eq!(outcomes(&settled), ["failed(tool_failed)"], "{settled:#}");
    let error = settled["calls"][0]["content"]["error"]["message"].as_str().unwrap();
    assert!(error.contains(r#"grants.calls = ["roll_out_deploy"]"#), "{error}");
}
