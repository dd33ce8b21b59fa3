//! Requests over HTTP.

use std::sync::Arc;

use bytes::Bytes;
use domain::suspension::Decision;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use toolgate_mcp::Endpoint;
use toolgate_tests::world::settle;

use crate::world::{TestHost, about, caller, meta};

pub(crate) fn request(headers: &[(&str, &str)], body: &Value) -> Request<Bytes> {
    let mut request = Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    request = request.header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_string().into()).unwrap()
}

/// A request of the newest revision.
pub(crate) fn modern(method: &str, mut params: Value) -> Request<Bytes> {
    let name = params.get("name").or(params.get("taskId")).and_then(Value::as_str).map(str::to_owned);
    let mut all = meta();
    if let Some(own) = params.get("_meta").and_then(Value::as_object) {
        all.as_object_mut().unwrap().extend(own.clone());
    }
    params["_meta"] = all;
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    request(&headers, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

/// The whole answer.
async fn answered(host: &Endpoint, request: Request<Bytes>) -> Response<Bytes> {
    let (head, body) = host.answer(caller("alice"), request, Arc::new(())).await.into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

fn json_of(response: &Response<Bytes>) -> Value {
    serde_json::from_slice(response.body()).unwrap_or_else(|_| panic!("{response:?}"))
}

async fn answer(host: &TestHost, request: Request<Bytes>) -> (StatusCode, Value) {
    let response = answered(&host.endpoint, request).await;
    (response.status(), json_of(&response))
}

#[tokio::test]
async fn requests_need_no_session() {
    let host = TestHost::new();
    let (status, found) = answer(&host, modern("server/discover", json!({}))).await;
    assert_eq!((status, &found["result"]["capabilities"]["tools"]), (StatusCode::OK, &json!({ "listChanged": true })));
    let (status, called) =
        answer(&host, modern("tools/call", json!({ "name": "echo", "arguments": { "a": 1 } }))).await;
    assert_eq!((status, &called["result"]["structuredContent"]), (StatusCode::OK, &json!({ "a": 1 })));
}

#[tokio::test]
async fn older_revision_is_answered_without_a_session() {
    let host = TestHost::new();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let response = answered(&host.endpoint, request(&[], &begin)).await;
    assert_eq!(json_of(&response)["result"]["protocolVersion"], "2025-11-25");
    assert!(!response.headers().contains_key("mcp-session-id"));
    let version = [("mcp-protocol-version", "2025-11-25")];
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let response = answered(&host.endpoint, request(&version, &initialized)).await;
    assert_eq!((response.status(), response.body().len()), (StatusCode::ACCEPTED, 0));
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo" } });
    let (status, called) = answer(&host, request(&version, &call)).await;
    assert_eq!((status, &called["result"]["isError"]), (StatusCode::OK, &json!(false)));
}

#[tokio::test]
async fn headers_and_body_must_agree() {
    let host = TestHost::new();
    let body = |params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let call = body(json!({ "name": "pay", "arguments": {}, "_meta": meta() }));
    let version = ("mcp-protocol-version", "2026-07-28");
    for headers in [
        vec![version, ("mcp-method", "tools/list"), ("mcp-name", "pay")],
        vec![version, ("mcp-method", "tools/call"), ("mcp-name", "echo")],
        vec![version, ("mcp-name", "pay")],
        vec![("mcp-method", "tools/call"), ("mcp-name", "pay")],
    ] {
        let (status, refused) = answer(&host, request(&headers, &call)).await;
        assert_eq!((status, &refused["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32020)), "{headers:?}");
    }
    assert_eq!(host.open().await.len(), 0);
    let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/list"}"#;
    let (mut parts, _) = request(&[version], &json!(null)).into_parts();
    parts.method = http::Method::POST;
    let (status, refused) = answer(&host, Request::from_parts(parts, Bytes::from_static(twice))).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32700)));
}

#[tokio::test]
async fn client_that_leaves_and_returns_joins_its_call() {
    let host = TestHost::new();
    let pay = || modern("tools/call", json!({ "name": "pay", "arguments": {} }));
    let endpoint = host.endpoint.clone();
    let left = tokio::spawn(async move { answered(&endpoint, pay()).await });
    settle().await;
    left.abort();
    let endpoint = host.endpoint.clone();
    let returned = tokio::spawn(async move { answered(&endpoint, pay()).await });
    settle().await;
    host.decide(Decision::Approve).await;
    let done = json_of(&returned.await.unwrap());
    assert_eq!(about(&done["result"])["outcome"], "ok");
    assert_eq!(host.open().await.len(), 0);
}
