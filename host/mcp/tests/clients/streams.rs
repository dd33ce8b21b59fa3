//! Notifications before an answer: the progress of a call, and the changes that a client listens to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use domain::event::PluginChange;
use domain::suspension::Decision;
use futures::FutureExt as _;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::{Value, json};
use toolgate_mcp::Unread;
use toolgate_tests::world::settle;

use crate::http::{modern, request};
use crate::tasks::{knowing, task};
use crate::world::{Client, TestHost, about, caller};

pub(crate) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// The params of a call whose client wants progress.
pub(crate) fn followed(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } })
}

fn listing(tasks: &[&Value]) -> Value {
    knowing(json!({ "notifications": { "toolsListChanged": true, "taskIds": tasks, "resourcesListChanged": true } }))
}

/// The messages in the events of a stream, up to its end.
async fn messages(response: Response<Body>) -> Vec<Value> {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let events = str::from_utf8(&body).unwrap().split("\n\n").filter(|event| !event.is_empty());
    let data = |event: &str| event.strip_prefix("data:").unwrap_or_else(|| panic!("{event:?}")).to_owned();
    events.map(|event| serde_json::from_str(&data(event)).unwrap()).collect()
}

fn progress(message: &Value) -> (&Value, &Value, &str) {
    assert_eq!(message["method"], "notifications/progress", "{message}");
    let params = &message["params"];
    assert_eq!(params["progressToken"], "p");
    (&params["progress"], &params["total"], params["message"].as_str().unwrap())
}

#[tokio::test]
async fn progress_arrives_while_the_call_runs() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send("tools/call", followed("work")).await;
    settle().await;
    host.report(0.5, "half\nof \u{202e}it").await;
    assert_eq!(progress(&client.receive().await), (&json!(50.0), &json!(100.0), "half\\nof \\u{202e}it"));
    host.report(0.25, "back").await;
    assert_eq!(progress(&client.receive().await), (&json!(50.01), &json!(100.0), "back"), "values increase");
    host.report(1.0, "done").await;
    host.end_work();
    assert_eq!(progress(&client.receive().await).2, "done");
    assert_eq!(client.result().await["isError"], false);
}

#[tokio::test]
async fn answer_with_progress_is_a_stream_over_http() {
    let host = TestHost::new();
    let ask = |params| {
        let endpoint = host.endpoint.clone();
        let request = modern("tools/call", params);
        tokio::spawn(async move { endpoint.answer(caller("alice"), request, Arc::new(())).await })
    };
    let asked = ask(followed("work"));
    settle().await;
    host.report(0.0, "begin").await;
    let response = asked.await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    host.report(1.0, "end").await;
    host.end_work();
    let found = messages(response).await;
    assert_eq!(found.iter().map(progress_or_result).collect::<Vec<_>>(), ["begin", "end", "result"]);

    let asked = ask(json!({ "name": "work", "arguments": { "no": "token" } }));
    settle().await;
    host.report(0.0, "begin").await;
    host.end_work();
    let response = asked.await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json", "nobody asked for progress");
}

fn progress_or_result(message: &Value) -> &str {
    if message["result"].is_object() { "result" } else { progress(message).2 }
}

#[tokio::test]
async fn client_that_does_not_read_misses_old_progress() {
    let host = TestHost::new();
    let (endpoint, request) = (host.endpoint.clone(), modern("tools/call", followed("work")));
    let asked = tokio::spawn(async move { endpoint.answer(caller("alice"), request, Arc::new(())).await });
    settle().await;
    for number in 0..500 {
        host.report(f64::from(number) / 500.0, &number.to_string()).await;
        if number % 25 == 0 {
            host.advance(1);
        }
    }
    let response = asked.await.unwrap();
    host.end_work();
    let found = messages(response).await;
    let reported: Vec<_> = found.iter().map(progress_or_result).collect();
    // 16 in the channel of the response, and 16 that follow.
    assert!(reported.len() <= 40, "{reported:?}");
    assert_eq!(reported[reported.len() - 2..], ["499", "result"]);
}

#[tokio::test]
async fn progress_of_one_request_has_a_pace() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client.send("tools/call", followed("work")).await;
    settle().await;
    for number in 0..50 {
        host.report(f64::from(number) / 50.0, &number.to_string()).await;
    }
    let mut count = 0;
    while client.received().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 10, "no time has passed");
    host.advance(1);
    assert_eq!(progress(&client.receive().await).2, "49");
}

#[tokio::test]
async fn task_has_its_last_progress_as_status_text() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    client
        .send("tools/call", {
            let mut params = knowing(json!({ "name": "work", "arguments": {} }));
            params["_meta"]["progressToken"] = "p".into();
            params
        })
        .await;
    settle().await;
    host.report(0.4, "4 of \u{202e}10").await;
    host.advance(2);
    let created = client.result().await;
    let message = r#"It still runs. It last reported 40 %: "4 of \u{202e}10"."#;
    assert!(created["statusMessage"].as_str().unwrap().ends_with(message), "{created}");
    host.report(0.5, "").await;
    let working = client.ask("tasks/get", knowing(json!({ "taskId": created["taskId"] }))).await;
    assert!(working["result"]["statusMessage"].as_str().unwrap().ends_with("It last reported 50 %."), "{working}");
    host.end_work();
    settle().await;
    let done = client.ask("tasks/get", knowing(json!({ "taskId": created["taskId"] }))).await;
    assert_eq!((&done["result"]["status"], &done["result"]["statusMessage"]), (&json!("completed"), &Value::Null));
}

#[tokio::test]
async fn changes_of_tools_reach_clients_that_listen() {
    let host = TestHost::new();
    let (mut listens, mut other) = (host.client("alice"), host.client("alice"));
    let id = listens.send("subscriptions/listen", listing(&[])).await;
    let subscription = json!({ "io.modelcontextprotocol/subscriptionId": id });
    let first = listens.receive().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"], json!({ "notifications": { "toolsListChanged": true }, "_meta": subscription }));
    let none = json!({ "notifications": { "promptsListChanged": true } });
    other.send("subscriptions/listen", none).await;
    assert_eq!(other.receive().await["params"]["notifications"], json!({}));

    host.change_plugin(PluginChange::Rejected { findings: Vec::new() }).await;
    assert_eq!(listens.received().await, None, "the tools are the same");
    for change in [PluginChange::Loaded { tools: Vec::new() }, PluginChange::Unloaded] {
        host.change_plugin(change).await;
        let changed = listens.receive().await;
        assert_eq!(changed["method"], "notifications/tools/list_changed");
        assert_eq!(changed["params"]["_meta"], subscription);
    }
    assert_eq!((listens.received().await, other.received().await), (None, None));
    let wrong = other.ask("subscriptions/listen", json!({})).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

#[tokio::test]
async fn older_clients_get_changes_of_tools_without_asking() {
    let host = TestHost::new();
    let mut client = host.client("alice");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    client.write(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()).await;
    assert_eq!(client.result().await["capabilities"]["tools"], json!({ "listChanged": true }));
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    settle().await;

    let get = |version: &'static str, accept: &'static str| {
        let request = Request::get("/mcp").header("accept", accept).header("mcp-protocol-version", version);
        host.endpoint.answer(caller("alice"), request.body(Bytes::new()).unwrap(), Arc::new(()))
    };
    let mut stream = get("2025-11-25", "text/event-stream").await;
    let event = tokio::spawn(async move { stream.body_mut().frame().await.unwrap().unwrap().into_data().unwrap() });
    settle().await;
    for (version, accept) in [("2026-07-28", "text/event-stream"), ("2025-11-25", "text/html")] {
        assert_eq!(get(version, accept).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    host.change_plugin(PluginChange::Unloaded).await;
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    assert_eq!(event.await.unwrap(), "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    let listen = request(
        &[("mcp-protocol-version", "2025-11-25")],
        &json!({
            "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": { "notifications": {} },
        }),
    );
    let refused = host.endpoint.answer(caller("alice"), listen, Arc::new(())).await;
    let refused = refused.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&refused).unwrap()["error"]["code"], -32601);
}

/// A client that may have too much unread.
struct Busy(AtomicBool);

#[async_trait]
impl Unread for Busy {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn charge(&self, bytes: usize) -> Result<Box<dyn Send + Sync>, String> {
        if self.0.load(Ordering::Relaxed) { Err("read the others first".to_owned()) } else { ().charge(bytes) }
    }
}

#[tokio::test]
async fn change_waits_for_a_client_with_too_much_unread() {
    let (host, unread) = (TestHost::new(), Arc::new(Busy(AtomicBool::new(true))));
    let request = Request::get("/mcp").header("accept", "text/event-stream").body(Bytes::new()).unwrap();
    let mut stream = host.endpoint.answer(caller("alice"), request, unread.clone()).await;
    let frame = tokio::spawn(async move { stream.body_mut().frame().await.unwrap().unwrap().into_data().unwrap() });
    settle().await;
    host.change_plugin(PluginChange::Unloaded).await;
    assert!(!frame.is_finished());
    unread.0.store(false, Ordering::Relaxed);
    host.advance(1);
    settle().await;
    let event = frame.now_or_never().expect("the change").unwrap();
    assert!(event.ends_with(b"tools/list_changed\"}\n\n"), "{event:?}");
}

#[tokio::test]
async fn change_beside_a_keep_alive_is_not_lost() {
    let host = TestHost::new();
    let request = Request::get("/mcp").header("accept", "text/event-stream").body(Bytes::new()).unwrap();
    let mut stream = host.endpoint.answer(caller("alice"), request, Arc::new(())).await;
    let frame = tokio::spawn(async move {
        let comment = stream.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        (comment, stream)
    });
    settle().await;
    host.advance_millis(14_900);
    host.begin_change(PluginChange::Unloaded).await;
    host.advance_millis(100);
    let (comment, mut stream) = frame.await.unwrap();
    assert_eq!(comment, ":\n\n");
    let frame = tokio::spawn(async move { stream.body_mut().frame().await.unwrap().unwrap().into_data().unwrap() });
    settle().await;
    host.advance_millis(200);
    settle().await;
    let event = frame.now_or_never().expect("a change").unwrap();
    assert!(event.ends_with(b"tools/list_changed\"}\n\n"), "{event:?}");
}

/// The next notification about a task: its id and its status.
async fn status(client: &mut Client) -> (Value, String) {
    let mut message = client.receive().await;
    assert_eq!(message["method"], "notifications/tasks", "{message}");
    let params = message["params"].take();
    (params["taskId"].clone(), params["status"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn states_of_tasks_reach_their_own_client_only() {
    let host = TestHost::new();
    let (mut alice, mut listens, mut eve) = (host.client("alice"), host.client("alice"), host.client("eve"));
    let id = task(&host, &mut alice, "pay").await["taskId"].take();
    let made_up = json!("turn_0");
    listens.send("subscriptions/listen", listing(&[&id, &made_up])).await;
    assert_eq!(listens.receive().await["params"]["notifications"]["taskIds"], json!([id]));
    assert_eq!(status(&mut listens).await, (id.clone(), "working".to_owned()));
    eve.send("subscriptions/listen", listing(&[&id, &made_up])).await;
    assert_eq!(eve.receive().await["params"]["notifications"], json!({ "toolsListChanged": true }));

    host.decide(Decision::Approve).await;
    let done = loop {
        let message = listens.receive().await;
        if message["params"]["status"] == "completed" {
            break message;
        }
    };
    assert_eq!(about(&done["params"]["result"])["outcome"], "ok");
    assert_eq!((listens.received().await, eve.received().await), (None, None));

    // One that has ended is reported at once.
    listens.send("subscriptions/listen", listing(&[&id])).await;
    listens.receive().await;
    assert_eq!(status(&mut listens).await, (id, "completed".to_owned()));
}

#[tokio::test]
async fn progress_of_a_task_reaches_clients_that_listen() {
    let host = TestHost::new();
    let (mut alice, mut listens) = (host.client("alice"), host.client("alice"));
    let id = task(&host, &mut alice, "work").await["taskId"].take();
    listens.send("subscriptions/listen", listing(&[&id])).await;
    listens.receive().await;
    listens.receive().await;
    host.report(0.5, "half").await;
    let message = listens.receive().await;
    assert!(message["params"]["statusMessage"].as_str().unwrap().contains("\"half\""), "{message}");
    let many: Vec<_> = (0..65).map(|number| json!(format!("turn_{number}"))).collect();
    let refused = alice.ask("subscriptions/listen", listing(&many.iter().collect::<Vec<_>>())).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test]
async fn states_of_tasks_have_a_pace() {
    let host = TestHost::new();
    let (mut alice, mut listens) = (host.client("alice"), host.client("alice"));
    let id = task(&host, &mut alice, "work").await["taskId"].take();
    listens.send("subscriptions/listen", listing(&[&id])).await;
    listens.receive().await;
    for number in 0..30 {
        host.report(f64::from(number) / 50.0, &number.to_string()).await;
    }
    let mut count = 0;
    while listens.received().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 10, "no time has passed");
    host.advance(1);
    let last = listens.receive().await;
    assert!(last["params"]["statusMessage"].as_str().unwrap().contains("\"29\""), "{last}");
}

#[tokio::test]
async fn client_without_tasks_listens_to_none() {
    let host = TestHost::new();
    let (mut alice, mut listens) = (host.client("alice"), host.client("alice"));
    let id = task(&host, &mut alice, "pay").await["taskId"].take();
    listens.send("subscriptions/listen", json!({ "notifications": { "taskIds": [id] } })).await;
    assert_eq!(listens.receive().await["params"]["notifications"], json!({}));
    let most: Vec<_> = (0..64).map(|number| json!(format!("turn_{number}"))).collect();
    listens.send("subscriptions/listen", listing(&most.iter().collect::<Vec<_>>())).await;
    assert_eq!(listens.receive().await["method"], "notifications/subscriptions/acknowledged", "64 are not too many");
}
