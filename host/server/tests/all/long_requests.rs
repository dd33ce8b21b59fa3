//! Event streams and requests that wait get only part of the connections. Approvers and admins have a reserve.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use dispatch::Quota;
use futures::FutureExt as _;
use toolgate_server::{LongRequests, ServerSettings};
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

const EVENTS: &str = "/v1/conversations/c/events";
const ASK: &str = r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#;

fn world(max: usize, reserved: usize, max_per_principal: usize) -> Arc<TestServer> {
    let long_requests = LongRequests { max, reserved, max_per_principal };
    Arc::new(TestServer::with_quota(ServerSettings { long_requests, ..ServerSettings::default() }, Quota::default()))
}

async fn stream(world: &TestServer, who: &str, path: &str) -> Response<Body> {
    let response = asked(world, who, path).await;
    assert_eq!(response.status(), 200, "{who}");
    response
}

/// A response of which nothing is read. A stream has no end.
async fn asked(world: &TestServer, who: &str, path: &str) -> Response<Body> {
    world.router.clone().oneshot(request("GET", path, who, None)).await.unwrap()
}

/// A request of alice that waits for her turn, which only an answer ends.
async fn wait(world: &Arc<TestServer>) -> tokio::task::JoinHandle<u16> {
    let turn = world.submit("", ASK).await.at("/turn");
    let waiting = tokio::spawn({
        let world = world.clone();
        async move { world.get("alice", &format!("/v1/conversations/c/turns/{turn}?wait_ms=60000")).await.status.as_u16() }
    });
    // A turn counts while a request waits for it.
    while world.host.handle().turns_in_memory() == 0 {
        tokio::task::yield_now().await;
    }
    waiting
}

#[tokio::test]
async fn long_requests_of_callers_leave_a_reserve() {
    let world = world(3, 1, 3);
    let waiting = wait(&world).await;
    let first = stream(&world, "carol", EVENTS).await;
    let refused = world.get("eve", "/v1/conversations/hers/events").await;
    assert_eq!((refused.code().as_str(), refused.headers["retry-after"].to_str().unwrap()), ("429 busy", "5"));
    assert!(refused.at("/detail").contains("2 event streams and waiting requests are open"), "{}", refused.text);
    assert!(refused.at("/detail").contains("`long_requests`"), "{}", refused.text);
    // The reserve is for approvers and admins, and has an end too.
    let approver = stream(&world, "bob", "/v1/pending/events").await;
    let refused = world.get("root", "/v1/events").await;
    assert_eq!(refused.code(), "429 busy");
    assert!(refused.at("/detail").contains("3 event streams and waiting requests are open"), "{}", refused.text);
    for who in ["eve", "bob", "root"] {
        assert_eq!(world.get(who, "/v1/tools").await.status, 200, "short requests go on");
    }
    drop(approver);
    drop(stream(&world, "root", "/v1/events").await);
    drop(first);
    drop(stream(&world, "eve", "/v1/conversations/hers/events").await);
    waiting.abort();
    assert!(waiting.await.is_err());
    let _both = [stream(&world, "carol", EVENTS).await, stream(&world, "alice", EVENTS).await];
}

#[tokio::test]
async fn requests_of_callers_leave_a_reserve() {
    let world = Arc::new(TestServer::with(ServerSettings { requests: 1, ..ServerSettings::default() }));
    let waiting = wait(&world).await;
    let refused = world.get("eve", "/v1/tools").await;
    assert_eq!(refused.code(), "429 busy");
    assert!(refused.at("/detail").contains("1 requests are in flight"), "{}", refused.text);
    for who in ["bob", "root"] {
        assert_eq!(world.get(who, "/v1/tools").await.status, 200, "{who}");
    }
    waiting.abort();
    assert!(waiting.await.is_err());
    assert_eq!(world.get("eve", "/v1/tools").await.status, 200);
}

#[tokio::test]
async fn one_principal_has_a_share_of_the_long_requests() {
    let world = world(9, 0, 1);
    let stream_of_alice = stream(&world, "alice", EVENTS).await;
    for (query, body) in
        [("?wait_ms=1", ASK), ("", r#"{"calls":[{"id":"2","tool":"echo","arguments":{}}],"ephemeral":true}"#)]
    {
        let refused = world.submit(query, body).await;
        assert_eq!(refused.code(), "429 busy");
        assert!(refused.at("/detail").contains("alice has 1 event streams and waiting requests"), "{}", refused.text);
        assert!(refused.at("/detail").contains("`long_requests_per_principal`"), "{}", refused.text);
    }
    assert_eq!(world.host.handle().counts().open_turns, 0, "a refused request has no effect");
    let turn = world.submit("", ASK).await;
    assert_eq!(turn.code(), "201", "it does not wait");
    let read = format!("/v1/conversations/c/turns/{}", turn.at("/turn"));
    assert_eq!(world.get("alice", &format!("{read}?wait_ms=1")).await.code(), "429 busy");
    assert_eq!(world.get("alice", &read).await.status, 200);
    drop(stream(&world, "eve", "/v1/conversations/hers/events").await);
    let metrics = world.get("root", "/metrics").await.text;
    assert!(metrics.contains(r#"toolgate_refused_busy_total{bound="long_requests"} 3"#), "{metrics}");
    drop(stream_of_alice);
    drop(stream(&world, "alice", EVENTS).await);
}

#[tokio::test]
async fn principals_with_many_leave_some_to_others() {
    let world = world(16, 0, 16);
    let mut of_carol = Vec::new();
    for _ in 0..14 {
        of_carol.push(stream(&world, "carol", EVENTS).await);
    }
    assert_eq!(asked(&world, "carol", EVENTS).await.status(), 429);
    let refused = world.get("carol", EVENTS).await;
    assert!(refused.at("/detail").contains("with more than 8 of its own"), "{}", refused.text);
    let hers = "/v1/conversations/hers/events";
    let _of_eve = [stream(&world, "eve", hers).await, stream(&world, "eve", hers).await];
    assert_eq!(asked(&world, "eve", hers).await.status(), 429, "this part has an end too");
    of_carol.truncate(8);
    drop(stream(&world, "carol", EVENTS).await);
}

#[tokio::test]
async fn approver_with_many_may_use_all_of_the_reserve() {
    let world = world(16, 1, 16);
    let mut of_bob = Vec::new();
    for _ in 0..16 {
        of_bob.push(stream(&world, "bob", "/v1/pending/events").await);
    }
    assert_eq!(asked(&world, "root", "/v1/events").await.status(), 429);
}

#[tokio::test]
async fn principals_with_many_requests_leave_some_to_others() {
    let world = Arc::new(TestServer::with(ServerSettings { requests: 16, ..ServerSettings::default() }));
    let turn = world.submit("", ASK).await.at("/turn");
    let path = format!("/v1/conversations/c/turns/{turn}?wait_ms=60000");
    let wait = || Box::pin(world.router.clone().oneshot(request("GET", &path, "alice", None)));
    let mut waiting: Vec<_> = (0..14).map(|_| wait()).collect();
    assert!(waiting.iter_mut().all(|waits| waits.now_or_never().is_none()));
    let refused = world.get("alice", "/v1/tools").await;
    assert_eq!(refused.code(), "429 busy");
    assert!(refused.at("/detail").contains("14 requests are in flight"), "{}", refused.text);
    assert_eq!(world.get("eve", "/v1/tools").await.status, 200);
}
