//! A request that asks for the same as an open call joins it.

use domain::suspension::Decision;
use serde_json::json;
use toolgate_tests::world::settle;

use crate::world::{TestHost, about};

#[tokio::test]
async fn same_requests_at_once_are_one_call() {
    let host = TestHost::new();
    let (mut one, mut other) = (host.client("alice"), host.client("alice"));
    one.send_call("pay", json!({ "a": 1, "b": 2 })).await;
    other.send_call("pay", json!({ "b": 2, "a": 1 })).await;
    settle().await;
    host.decide(Decision::Approve).await;
    let (first, second) = (one.result().await, other.result().await);
    assert_eq!((&first["isError"], about(&first)), (&json!(false), about(&second)));
}

#[tokio::test]
async fn other_callers_and_arguments_are_other_calls() {
    let host = TestHost::new();
    let (mut alice, mut eve) = (host.client("alice"), host.client("eve"));
    alice.send_call("pay", json!({ "a": 1 })).await;
    alice.send_call("pay", json!({ "a": 2 })).await;
    eve.send_call("pay", json!({ "a": 1 })).await;
    settle().await;
    assert_eq!(host.open().await.len(), 3);
}

#[tokio::test]
async fn missed_outcome_is_given_to_the_next_same_request() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({})).await;
    host.end_holds().await;
    let waiting = client.result().await;
    host.decide(Decision::Approve).await;
    settle().await;
    let done = client.call("pay", json!({})).await;
    assert_eq!(about(&done)["turn"], about(&waiting)["turn"]);
    assert_eq!(about(&done)["outcome"], "ok");
    // The client has the outcome now. So the next request is a new call, which a person approves again.
    client.send_call("pay", json!({})).await;
    settle().await;
    assert_eq!(host.open().await.len(), 1);
}

#[tokio::test]
async fn old_outcome_is_not_given_to_a_new_request() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({})).await;
    host.end_holds().await;
    client.result().await;
    host.decide(Decision::Deny).await;
    settle().await;
    host.advance(60 * 60 + 1);
    client.send_call("pay", json!({})).await;
    settle().await;
    assert_eq!(host.open().await.len(), 1);
}

#[tokio::test]
async fn call_that_waited_before_a_restart_is_joined() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    for _ in 0..3 {
        // These end before the restart.
        client.call("echo", json!({})).await;
    }
    client.send_call("pay", json!({})).await;
    host.end_holds().await;
    let waiting = client.result().await;
    let host = host.restart();
    let mut client = host.client("alice");
    client.send_call("pay", json!({})).await;
    settle().await;
    assert_eq!(host.open().await.len(), 1);
    host.advance(1);
    host.decide(Decision::Approve).await;
    assert_eq!(about(&client.result().await)["turn"], about(&waiting)["turn"]);
    let fourth = client.call("echo", json!({})).await;
    assert!(about(&fourth)["call"].as_str().unwrap().ends_with("-4"), "{fourth}");
}

#[tokio::test]
async fn approval_between_a_restart_and_the_request_counts() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({})).await;
    host.end_holds().await;
    let waiting = client.result().await;
    let host = host.restart();
    host.advance(1);
    host.decide(Decision::Approve).await;
    settle().await;
    let done = host.client("alice").call("pay", json!({})).await;
    assert_eq!(about(&done)["turn"], about(&waiting)["turn"]);
    assert_eq!(host.open().await.len(), 0);
}

#[tokio::test]
async fn chosen_id_names_one_call() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let params = |n: u8| json!({ "name": "echo", "arguments": { "n": n }, "_meta": { "dev.toolgate/callId": "mine" } });
    let first = client.ask("tools/call", params(1)).await;
    let again = client.ask("tools/call", params(1)).await;
    assert_eq!(first["result"], again["result"], "also after the client has received the outcome");
    assert_eq!(about(&first["result"])["call"], "mine");
    assert_eq!(client.ask("tools/call", params(2)).await["error"]["code"], -32602);
    for id in [json!(1), json!("a b"), json!(""), json!("mcp-000000000000000000000000000000ab-1")] {
        let params = json!({ "name": "echo", "_meta": { "dev.toolgate/callId": id } });
        assert_eq!(client.ask("tools/call", params).await["error"]["code"], -32602, "{id}");
    }
}
