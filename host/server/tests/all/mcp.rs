//! Who may send messages to `/mcp`, and from where. A port of the test answers them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use domain::{Principal, Span};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::json;
use tokio::sync::Semaphore;
use toolgate_server::{LongRequests, McpBody, McpClients, McpUnread, ServerSettings};
use toolgate_tests::world::settle;
use tower::ServiceExt as _;

use crate::browsers::{Browser, with};
use crate::world::{TestServer, request};

/// The size of an event.
const EVENT: usize = 100;

const APP: &str = "https://app.example.com";

/// Answers with the principal and the message, once there is a permit. A message with `stream` gets as many events as there are
/// permits, each with this many bytes.
struct Echo(Arc<Semaphore>);

#[async_trait]
impl McpClients for Echo {
    async fn answer(&self, by: Principal, request: Request<Bytes>, unread: Arc<dyn McpUnread>) -> Response<McpBody> {
        let text = String::from_utf8(request.into_body().to_vec()).unwrap();
        if text.contains("stream") {
            let events = futures::stream::unfold((self.0.clone(), unread), |(permits, unread)| async move {
                permits.acquire().await.unwrap().forget();
                // Too much is not sent.
                let size = if unread.charge(EVENT).is_ok() { EVENT } else { 1 };
                Some((Ok(Frame::data(Bytes::from(vec![b'{'; size]))), (permits, unread)))
            });
            return Response::new(McpBody::new(StreamBody::new(events)));
        }
        self.0.acquire().await.unwrap().forget();
        let mut response = Response::new(McpBody::new(json!({ "by": by.id.as_str(), "text": text }).to_string()));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

fn world(settings: ServerSettings) -> (TestServer, Arc<Echo>) {
    let (mut world, echo) = (TestServer::with(settings), Arc::new(Echo(Arc::new(Semaphore::new(100)))));
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
    assert_eq!(world.get("alice", "/mcp").await.json(), json!({ "by": "alice", "text": "" }), "a stream of changes");
    let put = request("PUT", "/mcp", "alice", Some("{}"));
    assert_eq!(world.send(put).await.code(), "405 method-not-allowed");
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

/// Opens a stream.
async fn open(world: &TestServer, who: &str) -> Response<Body> {
    world.router.clone().oneshot(request("POST", "/mcp", who, Some("{\"stream\":1}"))).await.unwrap()
}

/// The size of the next event. `None` at the end.
async fn next(stream: &mut Response<Body>) -> Option<usize> {
    Some(stream.body_mut().frame().await?.unwrap().into_data().unwrap().len())
}

#[tokio::test]
async fn stream_ends_when_its_token_is_revoked() {
    let (world, echo) = world(ServerSettings { recheck: Span::from_millis(10), ..ServerSettings::default() });
    let (mut revoked, mut other) = (open(&world, "alice").await, open(&world, "bob").await);
    assert_eq!((next(&mut revoked).await, next(&mut other).await), (Some(EVENT), Some(EVENT)));
    world.revoke("alice");
    // It ends although events flow.
    while next(&mut revoked).await.is_some() {}
    echo.0.add_permits(1);
    assert_eq!(next(&mut other).await, Some(EVENT));
}

#[tokio::test]
async fn held_request_ends_when_its_token_is_revoked() {
    let (world, echo) = world(ServerSettings { recheck: Span::from_millis(10), ..ServerSettings::default() });
    echo.0.forget_permits(100);
    let held = ["alice", "bob"].map(|who| tokio::spawn(world.router.clone().oneshot(message(who))));
    settle().await;
    world.revoke("alice");
    let [revoked, other] = held;
    assert_eq!(revoked.await.unwrap().unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    echo.0.add_permits(1);
    assert_eq!(other.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn streams_are_long_requests_until_they_end() {
    let long_requests = LongRequests { max: 10, reserved: 0, max_per_principal: 2 };
    let (world, _) = world(ServerSettings { long_requests, ..ServerSettings::default() });
    let (one, other) = (open(&world, "alice").await, open(&world, "alice").await);
    let mut refused = open(&world, "alice").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(next(&mut refused).await.is_some());
    assert_eq!(world.send(message("alice")).await.code(), "429 busy", "its other messages wait too");
    assert_eq!(open(&world, "bob").await.status(), StatusCode::OK);
    drop(one);
    assert_eq!(open(&world, "alice").await.status(), StatusCode::OK);
    drop(other);
}

#[tokio::test]
async fn unread_events_count_until_they_are_sent() {
    let (world, _) = world(ServerSettings { unread_bytes: 3 * EVENT, ..ServerSettings::default() });
    let mut streams = [open(&world, "alice").await, open(&world, "alice").await, open(&world, "alice").await];
    let mut sent = Vec::new();
    for stream in &mut streams {
        sent.push(stream.body_mut().frame().await.unwrap().unwrap().into_data().unwrap());
    }
    let mut last = open(&world, "alice").await;
    assert_eq!(next(&mut last).await, Some(1), "300 bytes are unread");
    assert_eq!(next(&mut open(&world, "bob").await).await, Some(EVENT));
    sent.pop();
    assert_eq!(next(&mut last).await, Some(EVENT));
    drop((sent, streams, last));
    assert_eq!(next(&mut open(&world, "alice").await).await, Some(EVENT), "nothing stays counted");
}

/// Answers with bodies that count their frames when HTTP takes them. With `stream`, the size is unknown.
struct CountsTaken(Arc<AtomicUsize>);

struct Counted {
    frames: Vec<&'static str>,
    is_stream: bool,
    taken: Arc<AtomicUsize>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        let frame = self.frames.pop();
        self.taken.fetch_add(frame.iter().count(), Ordering::Relaxed);
        Poll::Ready(frame.map(|frame| Ok(Frame::data(frame.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_stream { SizeHint::default() } else { SizeHint::with_exact(2) }
    }
}

#[async_trait]
impl McpClients for CountsTaken {
    async fn answer(&self, _: Principal, request: Request<Bytes>, _: Arc<dyn McpUnread>) -> Response<McpBody> {
        let is_stream = request.body().starts_with(b"{\"stream\"");
        let frames = if is_stream { vec!["data: {}\n\n", ":\n\n"] } else { vec!["{}"] };
        Response::new(McpBody::new(Counted { frames, is_stream, taken: self.0.clone() }))
    }
}

#[tokio::test]
async fn frame_is_asked_for_when_http_takes_it() {
    let taken = Arc::<AtomicUsize>::default();
    let mut world = TestServer::with(ServerSettings::default());
    world.answer_mcp_clients(Arc::new(CountsTaken(taken.clone())));
    let taken = || taken.load(Ordering::Relaxed);
    let mut stream = open(&world, "alice").await;
    let mut counts = Vec::new();
    while next(&mut stream).await.is_some() {
        counts.push(taken());
    }
    assert_eq!(counts, [1, 2]);
    let mut answer = world.router.clone().oneshot(message("alice")).await.unwrap();
    assert_eq!((taken(), &answer.headers()["content-length"]), (2, &"2".parse().unwrap()));
    assert_eq!((next(&mut answer).await, taken()), (Some(2), 3));
    // The clients leave.
    drop((open(&world, "alice").await, world.router.clone().oneshot(message("alice")).await.unwrap()));
    assert_eq!(taken(), 3);
}

#[tokio::test]
async fn results_of_one_principal_are_made_a_few_at_a_time() {
    struct Holds(Arc<AtomicUsize>, Arc<Semaphore>);

    #[async_trait]
    impl McpClients for Holds {
        async fn answer(&self, _: Principal, _: Request<Bytes>, unread: Arc<dyn McpUnread>) -> Response<McpBody> {
            let _reserved = unread.reserve().await;
            self.0.fetch_add(1, Ordering::Relaxed);
            self.1.acquire().await.unwrap().forget();
            self.0.fetch_sub(1, Ordering::Relaxed);
            Response::new(McpBody::new(String::new()))
        }
    }

    let (made, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let mut world = TestServer::with(ServerSettings::default());
    world.answer_mcp_clients(Arc::new(Holds(made.clone(), permits.clone())));
    let sent: Vec<_> = (0..20).map(|_| tokio::spawn(world.router.clone().oneshot(message("alice")))).collect();
    settle().await;
    assert_eq!(made.load(Ordering::Relaxed), 4);
    permits.add_permits(20);
    for answered in sent {
        assert_eq!(answered.await.unwrap().unwrap().status(), StatusCode::OK);
    }
    assert_eq!(made.load(Ordering::Relaxed), 0);
}
