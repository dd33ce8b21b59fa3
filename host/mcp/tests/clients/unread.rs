//! Messages that a client has yet to read are counted, and an outcome that it did not get stays its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolgate_mcp::Unread;
use toolgate_tests::world::settle;

use crate::http::modern;
use crate::streams::{Body, followed};
use crate::tasks::{knowing, task};
use crate::world::{TestHost, about, caller, text};

/// A client that has read nothing for a while.
struct Full(AtomicBool);

#[async_trait]
impl Unread for Full {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn charge(&self, bytes: usize) -> Result<Box<dyn Send + Sync>, String> {
        assert!(bytes > 100, "{bytes}");
        if self.0.load(Ordering::Relaxed) { Err("read the others first".to_owned()) } else { ().charge(bytes) }
    }
}

#[tokio::test]
async fn outcome_that_was_not_sent_is_not_received() {
    let host = TestHost::new();
    let unread = Arc::new(Full(AtomicBool::new(true)));
    let call = async || {
        let call = modern("tools/call", json!({ "name": "echo", "arguments": { "a": 1 } }));
        let response = host.endpoint.answer(caller("alice"), call, unread.clone()).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice::<Value>(&body).unwrap()["result"].take()
    };
    let refused = call().await;
    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("read the others first. Make the same call again"), "{refused}");
    unread.0.store(false, Ordering::Relaxed);
    let (first, second) = (call().await, call().await);
    assert_eq!(first["structuredContent"], json!({ "a": 1 }));
    assert_eq!((number(&first), number(&second)), ("1".to_owned(), "2".to_owned()), "the first got the same call");
}

/// Counts messages until they are sent: each has a permit.
#[derive(Clone)]
struct Counts(Arc<Semaphore>);

impl Counts {
    const MAX: usize = 100;

    fn new() -> Self {
        Self(Arc::new(Semaphore::new(Self::MAX)))
    }

    fn unsent(&self) -> usize {
        Self::MAX - self.0.available_permits()
    }
}

#[async_trait]
impl Unread for Counts {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        Box::new(())
    }

    fn charge(&self, _: usize) -> Result<Box<dyn Send + Sync>, String> {
        Ok(Box::new(self.0.clone().try_acquire_owned().unwrap()))
    }
}

/// The number of the call of a result.
fn number(result: &Value) -> String {
    about(result)["call"].as_str().unwrap().rsplit('-').next().unwrap().to_owned()
}

/// The number of the call of the result in an answer.
async fn read(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    number(&serde_json::from_slice::<Value>(&body).unwrap()["result"])
}

#[tokio::test]
async fn outcome_is_received_when_http_takes_it() {
    let (host, counts) = (TestHost::new(), Counts::new());
    let call = async || {
        let call = modern("tools/call", json!({ "name": "echo", "arguments": { "a": 1 } }));
        host.endpoint.answer(caller("alice"), call, Arc::new(counts.clone())).await
    };
    let (left, first) = (call().await, call().await);
    assert_eq!(counts.unsent(), 2);
    drop(left);
    assert_eq!((read(call().await).await.as_str(), counts.unsent()), ("1", 1), "nothing was sent before");
    assert_eq!((read(first).await.as_str(), counts.unsent()), ("1", 0));
    assert_eq!(read(call().await).await, "2");
}

#[tokio::test]
async fn events_carry_their_own_counts() {
    let (host, counts) = (TestHost::new(), Counts::new());
    let ask = |params: Value| {
        let (endpoint, unread, call) = (host.endpoint.clone(), counts.clone(), modern("tools/call", params));
        tokio::spawn(async move { endpoint.answer(caller("alice"), call, Arc::new(unread)).await })
    };
    let asked = ask(followed("work"));
    settle().await;
    // They look like the end of an event, and like a comment.
    for (fraction, text) in [(0.1, "data: {}\n\n"), (0.2, ":"), (0.3, "{")] {
        host.report(fraction, text).await;
    }
    let mut body = asked.await.unwrap().into_body();
    let next = async |body: &mut Body| {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        serde_json::from_slice::<Value>(frame.strip_prefix(b"data: ").unwrap()).unwrap()
    };
    for left in [3, 2, 1] {
        assert_eq!(counts.unsent(), left);
        next(&mut body).await;
    }
    host.end_work();
    settle().await;
    assert_eq!(counts.unsent(), 1, "the result");
    // The client has not received it, so the same request joins the call.
    let other = ask(json!({ "name": "work", "arguments": {} })).await.unwrap();
    assert_eq!((number(&next(&mut body).await["result"]).as_str(), counts.unsent()), ("1", 1));
    assert_eq!((read(other).await.as_str(), counts.unsent()), ("1", 0));
    assert!(body.frame().await.is_none());
}

/// Reserves the memory for one load at a time.
struct OneAtATime(Arc<Semaphore>, AtomicUsize);

#[async_trait]
impl Unread for OneAtATime {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        let reserved = self.0.clone().acquire_owned().await.unwrap();
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::new(reserved)
    }

    fn charge(&self, _: usize) -> Result<Box<dyn Send + Sync>, String> {
        assert_eq!(self.0.available_permits(), 0, "the turn is still loaded");
        Ok(Box::new(()))
    }
}

#[tokio::test]
async fn each_load_of_a_turn_is_reserved() {
    let host = TestHost::new();
    let loads = Arc::new(Semaphore::new(0));
    let echo = json!({ "name": "echo", "arguments": {} });
    let id = json!({ "name": "echo", "arguments": {}, "_meta": { "dev.toolgate/callId": "chosen" } });
    let wait = |name| json!({ "name": name, "arguments": { "call": "chosen" } });
    for (params, least, most) in [
        // Whether there was such a call, the new one, and its state until it has ended.
        (echo.clone(), 3, 4),
        (echo, 2, 2),
        (id.clone(), 2, 3),
        (id, 2, 2),
        (wait("toolgate_wait"), 2, 2),
        (wait("toolgate_state"), 1, 1),
    ] {
        let unread = Arc::new(OneAtATime(loads.clone(), AtomicUsize::new(0)));
        let (endpoint, counts) = (host.endpoint.clone(), unread.clone());
        let request = modern("tools/call", params.clone());
        let answer = tokio::spawn(async move { endpoint.answer(caller("alice"), request, unread).await });
        settle().await;
        assert!(!answer.is_finished(), "it loads without a permit");
        loads.add_permits(1);
        // The client leaves before it reads the answer.
        drop(answer.await.unwrap());
        assert_eq!(loads.available_permits(), 1, "each reservation ends");
        loads.forget_permits(1);
        let count = counts.1.load(Ordering::Relaxed);
        assert!((least..=most).contains(&count), "{params}: {count}");
    }
    let id = task(&host, &mut host.client("alice"), "pay").await["taskId"].take();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unread = Arc::new(OneAtATime(loads.clone(), AtomicUsize::new(0)));
        let request = modern(method, knowing(json!({ "taskId": id, "inputResponses": {} })));
        let endpoint = host.endpoint.clone();
        let answer = tokio::spawn(async move { endpoint.answer(caller("alice"), request, unread).await });
        settle().await;
        assert!(!answer.is_finished(), "{method}");
        loads.add_permits(1);
        assert_eq!(answer.await.unwrap().status(), StatusCode::OK, "{method}");
        loads.forget_permits(1);
    }
}

#[tokio::test]
async fn refused_reports_are_not_sent() {
    let (host, unread) = (TestHost::new(), Arc::new(Full(AtomicBool::new(true))));
    let (endpoint, request) = (host.endpoint.clone(), modern("tools/call", followed("work")));
    let full = unread.clone();
    let asked = tokio::spawn(async move { endpoint.answer(caller("alice"), request, full).await });
    settle().await;
    host.report(0.5, &"a report ".repeat(20)).await;
    unread.0.store(false, Ordering::Relaxed);
    host.end_work();
    let response = asked.await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json", "there was no report");
}

/// Reserves the memory for a few loads, and for more when there are permits.
struct Slow(Semaphore);

#[async_trait]
impl Unread for Slow {
    async fn reserve(&self) -> Box<dyn Send + Sync> {
        self.0.acquire().await.unwrap().forget();
        Box::new(())
    }

    fn charge(&self, _: usize) -> Result<Box<dyn Send + Sync>, String> {
        Ok(Box::new(()))
    }
}

#[tokio::test]
async fn ended_turn_is_not_kept_for_a_slow_client() {
    let host = TestHost::new();
    // Whether there was such a call, and the new one.
    let unread = Arc::new(Slow(Semaphore::new(2)));
    let (endpoint, slow) = (host.endpoint.clone(), unread.clone());
    let request = modern("tools/call", json!({ "name": "work", "arguments": {} }));
    let answer = tokio::spawn(async move { endpoint.answer(caller("alice"), request, slow).await });
    settle().await;
    assert_eq!((unread.0.available_permits(), host.host.handle().turns_in_memory()), (0, 1), "it runs");
    host.end_work();
    settle().await;
    assert!(!answer.is_finished(), "its result is not read");
    assert_eq!(host.host.handle().turns_in_memory(), 0);
    unread.0.add_permits(10);
    assert_eq!(read(answer.await.unwrap()).await, "1");
}
