//! Who may send messages to `/mcp`, and from where. A port of the test answers them.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use domain::Principal;
use serde_json::json;
use tokio::sync::Semaphore;
use toolgate_server::{LongRequests, McpBody, McpClients, McpUnread, ServerSettings};
use toolgate_tests::world::settle;
use tower::ServiceExt as _;

use crate::browsers::{Browser, with};
use crate::world::{TestServer, request};

const APP: &str = "https://app.example.com";

/// Answers with the principal and the message, once there is a permit.
struct Echo(Semaphore);

#[async_trait]
impl McpClients for Echo {
    async fn answer(&self, by: Principal, request: Request<Bytes>, _: McpUnread) -> Response<McpBody> {
        self.0.acquire().await.unwrap().forget();
        let text = String::from_utf8(request.into_body().to_vec()).unwrap();
        let mut response = Response::new(McpBody::new(json!({ "by": by.id.as_str(), "text": text }).to_string()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn world(settings: ServerSettings) -> (TestServer, Arc<Echo>) {
    let (mut world, echo) = (TestServer::with(settings), Arc::new(Echo(Semaphore::new(100))));
    world.answer_mcp_clients(echo.clone());
    (world, echo)
}

fn message(who: &str) -> Request<Body> {
    request("POST", "/mcp", who, Some("{}"))
}

#[tokio::test]
async fn message_is_of_the_principal_of_its_token() {
    let (world, _) = world(ServerSettings::default());
    let reply = world.send(message("alice")).await;
    assert_eq!(reply.json(), json!({ "by": "alice", "text": "{}" }));
    assert_eq!(world.send(message("")).await.code(), "401 unauthorized");
    assert_eq!(world.send(message("nobody")).await.code(), "401 unauthorized");
    assert_eq!(world.get("alice", "/mcp").await.code(), "405 method-not-allowed");
}

#[tokio::test]
async fn page_of_an_unnamed_origin_is_refused() {
    let settings = ServerSettings { origins: vec![APP.to_owned()], ..ServerSettings::default() };
    let (world, _) = world(settings);
    for origin in ["https://evil.example.com", "null", "http://app.example.com", "http://localhost:7717", ""] {
        let reply = world.router.clone().oneshot(with(message("alice"), "origin", origin)).await.unwrap();
        assert_eq!(reply.status(), StatusCode::FORBIDDEN, "{origin}");
        // Without a token too: a page learns nothing about tokens.
        let reply = world.router.clone().oneshot(with(message(""), "origin", origin)).await.unwrap();
        assert_eq!(reply.status(), StatusCode::FORBIDDEN, "{origin}");
    }
    let reply = world.router.clone().oneshot(with(message("alice"), "origin", APP)).await.unwrap();
    assert_eq!(reply.status(), StatusCode::OK);
}

#[tokio::test]
async fn session_of_a_browser_is_no_credential() {
    let (world, _) = world(ServerSettings::default());
    let browser = Browser::log_in(&world, "root").await;
    let reply = world.send(browser.own("POST", "/mcp", Some("{}"))).await;
    assert_eq!(reply.code(), "401 unauthorized");
}

#[tokio::test]
async fn host_without_the_port_has_no_such_path() {
    assert_eq!(TestServer::new().send(message("alice")).await.code(), "404 not-found");
}

#[tokio::test]
async fn messages_have_a_size_and_count_as_waits() {
    let long_requests = LongRequests { max: 10, reserved: 0, max_per_principal: 1 };
    let (world, echo) = world(ServerSettings { turn_bytes: 64, long_requests, ..ServerSettings::default() });
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(64));
    assert_eq!(world.send(request("POST", "/mcp", "alice", Some(&large))).await.code(), "413 too-large");
    echo.0.forget_permits(100);
    let first = tokio::spawn(world.router.clone().oneshot(message("alice")));
    settle().await;
    assert_eq!(world.send(message("alice")).await.code(), "429 busy");
    echo.0.add_permits(1);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}
