//! Calls end, fail, and wait for people.

use domain::suspension::Decision;
use serde_json::json;
use toolgate_tests::world::settle;

use crate::world::{TestHost, about, meta, text};

#[tokio::test]
async fn result_is_structured_and_verbatim() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let written = r#"{ "n": 12345678901234567890123,  "x": 1.0 }"#;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{written},"_meta":{}}}}}"#,
        meta()
    );
    client.write(&line).await;
    let result = client.result().await;
    assert_eq!(text(&result), written, "every digit has arrived at the tool and comes back");
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(false), &json!("complete")));
    assert_eq!(result["structuredContent"]["x"], json!(1.0));
    assert_eq!(about(&result)["outcome"], "ok");
}

#[tokio::test]
async fn unknown_tool_is_a_mistake_of_the_client() {
    let host = TestHost::new();
    let answer = host.client("alice").ask("tools/call", json!({ "name": "ecko" })).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("did you mean echo"), "{answer}");
}

#[tokio::test]
async fn gated_call_waits_and_its_outcome_is_fetched() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({ "to": "carol" })).await;
    host.end_holds().await;
    let waiting = client.result().await;
    let [suspension] = host.open().await[..] else { panic!("one suspension is open") };
    let call = about(&waiting)["call"].as_str().unwrap().to_owned();
    assert_eq!(about(&waiting)["state"], "waiting");
    assert_eq!(about(&waiting)["suspension"]["id"], suspension.to_string());
    for part in ["has not run", "http://127.0.0.1:7420/suspensions/susp_", "toolgate_wait", &call] {
        assert!(text(&waiting).contains(part), "{part}: {}", text(&waiting));
    }
    client.send_call("toolgate_wait", json!({ "call": call })).await;
    host.end_holds().await;
    assert_eq!(about(&client.result().await)["state"], "waiting");

    client.send_call("toolgate_wait", json!({ "call": call })).await;
    settle().await;
    host.decide(Decision::Approve).await;
    let done = client.result().await;
    assert_eq!(done["structuredContent"], json!({ "to": "carol" }));
    assert_eq!(done["isError"], false);
    // The outcome can be fetched again.
    let again = client.call("toolgate_wait", json!({ "call": call })).await;
    assert_eq!(about(&again), about(&done));
}

#[tokio::test]
async fn denial_is_an_error_that_the_model_reads() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({})).await;
    settle().await;
    host.decide(Decision::Deny).await;
    let denied = client.result().await;
    assert_eq!((&denied["isError"], &about(&denied)["outcome"]), (&json!(true), &json!("denied")));
    assert!(text(&denied).contains("was denied"), "{}", text(&denied));
}

#[tokio::test]
async fn question_and_long_run_say_what_they_wait_for() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("ask", json!({})).await;
    host.end_holds().await;
    let waiting = client.result().await;
    assert!(text(&waiting).contains("a person's answer"), "{}", text(&waiting));
    client.send_call("slow", json!({})).await;
    host.end_holds().await;
    let running = client.result().await;
    assert_eq!(about(&running)["state"], "running");
    assert!(text(&running).contains("still runs"), "{}", text(&running));
    host.shelf.slow.add_permits(1);
    let done = client.call("toolgate_wait", json!({ "call": about(&running)["call"] })).await;
    assert_eq!(about(&done)["outcome"], "ok");
}

#[tokio::test]
async fn cancelled_request_leaves_the_call_open() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let id = client.send("tools/call", json!({ "name": "pay", "arguments": {} })).await;
    settle().await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
    client.write(&cancelled.to_string()).await;
    settle().await;
    assert_eq!(host.open().await.len(), 1);
    drop(client);
    settle().await;
    assert_eq!(host.open().await.len(), 1, "a client that leaves changes nothing");
}

#[tokio::test]
async fn calls_of_others_are_not_found() {
    let host = TestHost::new();
    let (mut alice, mut eve) = (host.client("alice"), host.client("eve"));
    alice.send_call("pay", json!({})).await;
    host.end_holds().await;
    let call = about(&alice.result().await)["call"].clone();
    let refused = eve.call("toolgate_wait", json!({ "call": call })).await;
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("there is no such"), "{}", text(&refused));
    for arguments in [json!({}), json!({ "call": 1 }), json!({ "call": "a b" })] {
        let answer = eve.ask("tools/call", json!({ "name": "toolgate_wait", "arguments": arguments })).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}
