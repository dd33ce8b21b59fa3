//! Cards: a page that a client shows beside a call.

use domain::suspension::Decision;
use serde_json::{Value, json};
use toolgate_tests::world::settle;

use crate::world::{TestHost, about, text};

const URI: &str = "ui://toolgate/call.html";

#[tokio::test]
async fn tools_whose_calls_may_wait_for_people_have_the_card() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let list = client.ask("tools/list", json!({})).await["result"].take();
    let shown: Vec<_> =
        list["tools"].as_array().unwrap().iter().filter(|tool| tool["_meta"]["ui"] != Value::Null).collect();
    assert!(shown.iter().all(|tool| tool["_meta"]["ui"]["resourceUri"] == URI), "{list}");
    let names: Vec<_> = shown.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["ask", "choose", "pay", "toolgate_wait"]);

    let resources = client.ask("resources/list", json!({})).await;
    assert_eq!(resources["result"]["resources"][0]["uri"], URI);
    let read = client.ask("resources/read", json!({ "uri": URI })).await;
    let page = &read["result"]["contents"][0];
    assert_eq!((&page["uri"], &page["mimeType"]), (&json!(URI), &json!("text/html;profile=mcp-app")));
    assert!(page["text"].as_str().unwrap().contains("toolgate_state"), "{page}");
    assert_eq!(page["_meta"]["ui"]["csp"], Value::Null, "the page needs no network");
    let unknown = client.ask("resources/read", json!({ "uri": "file:///etc/passwd" })).await;
    assert_eq!(unknown["error"]["message"], "there is no such resource");
}

/// The params of a request of a client that shows cards.
fn shows_cards(mut params: Value) -> Value {
    let ui = json!({ "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": { "extensions": ui } });
    params
}

#[tokio::test]
async fn only_clients_that_show_cards_see_their_tool() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    for (params, seen) in [(json!({}), false), (shows_cards(json!({})), true)] {
        let list = client.ask("tools/list", params).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let state = tools.iter().find(|tool| tool["name"] == "toolgate_state");
        assert_eq!(state.is_some(), seen, "{list}");
        assert!(state.is_none_or(|state| state["_meta"]["ui"]["visibility"] == json!(["app"])), "models do not see it");
    }
}

#[tokio::test]
async fn card_reads_the_state_and_takes_no_result_from_the_model() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send_call("pay", json!({ "amount": 7 })).await;
    host.end_holds().await;
    let waiting = client.result().await;
    let state = json!({ "call": about(&waiting)["call"] });
    let shown = client.call("toolgate_state", state.clone()).await;
    assert_eq!(about(&shown), about(&waiting));
    assert_eq!(text(&shown), about(&waiting)["says"]);

    let other = host.client("mallory").call("toolgate_state", state.clone()).await;
    assert_eq!(other["isError"], true, "{other}");

    host.decide(Decision::Approve).await;
    settle().await;
    let shown = client.call("toolgate_state", state).await;
    assert_eq!((about(&shown)["outcome"].as_str(), text(&shown)), (Some("ok"), "It has ended: ok."), "no result");
    let again = client.call("pay", json!({ "amount": 7 })).await;
    assert_eq!(about(&again)["turn"], about(&waiting)["turn"], "the model has not received it before");
    assert_eq!(again["structuredContent"], json!({ "amount": 7 }));
}
