//! The limits on event streams. A stream ends when its token is revoked.

use axum::body::Body;
use dispatch::Quota;
use domain::Span;
use http_body_util::BodyExt as _;
use toolgate_server::ServerSettings;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

const EVENTS: &str = "/v1/conversations/c/events";

async fn open(world: &TestServer, who: &str, path: &str) -> Body {
    let response = world.router.clone().oneshot(request("GET", path, who, None)).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test]
async fn streams_of_a_principal_are_limited_until_one_ends() {
    let world = TestServer::with_quota(ServerSettings::default(), Quota { event_streams: 2, ..Quota::default() });
    let first = open(&world, "alice", EVENTS).await;
    let _second = open(&world, "alice", EVENTS).await;
    let refused = world.get("alice", EVENTS).await;
    assert_eq!((refused.code().as_str(), refused.json()["retry_after"].as_u64()), ("429 busy", Some(5)));
    assert!(refused.at("/detail").contains("quota.event_streams"));
    // An attached client that is refused is not attached.
    let _neighbour = open(&world, "carol", &format!("{EVENTS}?client=locate")).await;
    drop(first);
    drop(open(&world, "alice", EVENTS).await);
    let metrics = world.get("root", "/metrics").await.text;
    assert!(metrics.contains(r#"toolgate_refused_busy_total{bound="event_streams"} 1"#), "{metrics}");
}

#[tokio::test]
async fn streams_of_all_principals_together_are_limited() {
    let world = TestServer::with(ServerSettings { event_streams: 2, ..ServerSettings::default() });
    let first = open(&world, "alice", EVENTS).await;
    let _second = open(&world, "root", "/v1/events").await;
    assert_eq!(world.get("carol", EVENTS).await.code(), "429 busy");
    assert_eq!(world.get("carol", "/v1/tools").await.status, 200, "other requests are accepted");
    drop(first);
    drop(open(&world, "carol", EVENTS).await);
}

#[tokio::test]
async fn stream_ends_when_its_token_is_revoked() {
    let world = TestServer::with(ServerSettings { recheck: Span::from_millis(10), ..ServerSettings::default() });
    let silent = open(&world, "root", "/v1/events").await;
    let mut telling = open(&world, "alice", EVENTS).await;
    let untouched = open(&world, "carol", EVENTS).await;
    world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await;
    telling.frame().await.unwrap().unwrap();
    world.revoke("root");
    world.revoke("alice");
    // Both streams end.
    silent.collect().await.unwrap();
    telling.collect().await.unwrap();
    assert_eq!(world.get("alice", EVENTS).await.code(), "401 unauthorized");
    let mut untouched = untouched;
    assert!(untouched.frame().await.unwrap().is_ok());
}
