//! The limits on event streams, and what a stream reads. A stream ends when its token is revoked.

use std::sync::Arc;

use axum::body::Body;
use dispatch::Quota;
use domain::Span;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use toolgate_server::ServerSettings;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};
use toolgate_tests::faults::MortalStore;

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

/// Reads a stream until this text.
async fn until(stream: &mut Body, expected: &str) -> String {
    let mut text = String::new();
    while !text.contains(expected) {
        text += std::str::from_utf8(&stream.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap();
    }
    text
}

/// A world with a store that counts and holds reads.
fn recorded(settings: ServerSettings) -> (TestServer, Arc<MortalStore>) {
    let store = Arc::new(MortalStore::new(Arc::new(store::MemoryStore::new())));
    (TestServer::over(store.clone(), settings, Quota::default()), store)
}

#[tokio::test]
async fn recheck_of_the_token_discards_no_read() {
    let (world, store) = recorded(ServerSettings { recheck: Span::from_millis(1), ..ServerSettings::default() });
    world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await;
    let gate = store.hold_pages();
    let mut stream = open(&world, "alice", EVENTS).await;
    let before = world.lookups();
    let rechecked = async {
        while world.lookups() < before + 5 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        frame = stream.frame() => panic!("the store has not answered: {frame:?}"),
        () = rechecked => {}
    }
    assert_eq!(store.read_of_feeds(), 1);
    gate.add_permits(1);
    stream.frame().await.unwrap().unwrap();
    assert_eq!(store.read_of_feeds(), 0, "the first page has the event");
}

#[tokio::test]
async fn stream_from_now_reads_nothing_older() {
    let (world, store) = recorded(ServerSettings::default());
    let submit = async |id: &str, tool: &str| {
        let calls = format!(r#"{{"calls":[{{"id":"{id}","tool":"{tool}","arguments":{{}}}}]}}"#);
        world.submit("?wait_ms=60000", &calls).await.at("/turn")
    };
    let mut older = Vec::new();
    for (id, tool) in [("1", "echo"), ("2", "scan"), ("3", "echo")] {
        older.push(submit(id, tool).await);
    }
    let (_, _) = (store.read_of_feeds(), store.read_of_logs());
    let [after_now, client] = ["?after=now", "?client=locate"].map(|query| format!("{EVENTS}{query}"));
    let mut streams = Vec::new();
    for (who, path) in [("alice", after_now.as_str()), ("carol", &client), ("root", "/v1/events?after=now")] {
        streams.push(open(&world, who, path).await);
    }
    assert_eq!((store.read_of_feeds(), store.read_of_logs()), (0, 0), "nothing is read before a client reads");
    let newer = submit("4", "echo").await;
    let (_, _) = (store.read_of_feeds(), store.read_of_logs());
    for stream in &mut streams {
        let text = until(stream, "event: turn.settled").await;
        assert!(text.contains(&newer) && !older.iter().any(|turn| text.contains(turn)), "{text}");
        assert!(store.read_of_feeds() <= 1 && store.read_of_logs() == 0, "{text}");
    }
}

#[tokio::test]
async fn client_stream_loads_no_call_of_another_tool() {
    let (world, store) = recorded(ServerSettings::default());
    let submit = async |id: &str, tool: &str| {
        let calls = format!(r#"{{"calls":[{{"id":"{id}","tool":"{tool}","arguments":{{}}}}]}}"#);
        world.submit("", &calls).await.at("/pending/0/suspension")
    };
    for n in 0..40 {
        submit(&format!("other-{n}"), "locate").await;
    }
    let mut waiting = Vec::new();
    for n in 0..10 {
        waiting.push(submit(&format!("mine-{n}"), "scan").await);
    }
    store.read_of_logs();
    let mut stream = open(&world, "carol", &format!("{EVENTS}?client=scan,unknown,scan")).await;
    let mut text = until(&mut stream, &waiting[9]).await;
    assert_eq!(store.read_of_logs(), 10, "{text}");
    let last = submit("last", "scan").await;
    text += &until(&mut stream, &last).await;
    let count = |suspension: &String| text.matches(&format!(r#""suspension":"{suspension}""#)).count();
    assert_eq!(waiting.iter().map(count).collect::<Vec<_>>(), [1; 10], "{text}");
    assert!(!text.contains("other-"), "{text}");
}

#[tokio::test]
async fn client_that_leaves_loads_no_call_of_another_tool() {
    let (world, store) = recorded(ServerSettings::default());
    let submit = async |id: &str, tool: &str| {
        let calls = format!(r#"{{"calls":[{{"id":"{id}","tool":"{tool}","arguments":{{}}}}]}}"#);
        world.submit("", &calls).await
    };
    for n in 0..40 {
        submit(&format!("other-{n}"), "locate").await;
    }
    let client = open(&world, "carol", &format!("{EVENTS}?client=scan")).await;
    submit("mine", "scan").await;
    store.read_of_logs();
    drop(client);
    // Its task runs on this thread, and the store is in memory.
    let mut reads = 0;
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
        reads += store.read_of_logs();
    }
    assert_eq!(reads, 1, "the call that it could carry out");
}

#[tokio::test]
async fn stream_does_not_load_a_turn_for_each_commit() {
    let (world, store) = recorded(ServerSettings::default());
    let calls: Vec<_> =
        (0..8).map(|n| format!(r#"{{"id":"{n}","tool":"pay","arguments":{{"city":"{n}"}}}}"#)).collect();
    let turn = world.submit("", &format!(r#"{{"calls":[{}]}}"#, calls.join(","))).await;
    for n in 0..8 {
        let suspension = turn.at(&format!("/pending/{n}/suspension"));
        assert_eq!(world.resolve("bob", &suspension, r#"{"decision":"deny"}"#).await.status, 200);
    }
    store.read_of_logs();
    let mut stream = open(&world, "alice", EVENTS).await;
    let mut text = String::new();
    while !text.contains("event: turn.settled") {
        text += std::str::from_utf8(&stream.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap();
    }
    assert_eq!((text.matches("event: call.settled").count(), store.read_of_logs()), (8, 0));

    // The suspension and its end are in different commits.
    let turn = world.submit("", r#"{"calls":[{"id":"9","tool":"pay","arguments":{"city":"9"}}]}"#).await;
    let cancel = format!("/v1/conversations/c/turns/{}/cancel", turn.at("/turn"));
    assert_eq!(world.post("alice", &cancel, "").await.status, 200);
    store.read_of_logs();
    while text.matches("event: turn.settled").count() < 2 {
        text += std::str::from_utf8(&stream.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap();
    }
    let withdrawn = format!(r#""withdrawn":"{}""#, turn.at("/pending/0/suspension"));
    assert_eq!((text.matches(&withdrawn).count(), store.read_of_logs()), (1, 0), "{text}");
}

#[tokio::test]
async fn list_by_decision_loads_only_turns_with_that_decision() {
    let (world, store) = recorded(ServerSettings::default());
    for (id, decision) in [("1", "approve"), ("2", "deny"), ("3", "deny")] {
        let calls = format!(r#"{{"calls":[{{"id":"{id}","tool":"pay","arguments":{{"city":"{id}"}}}}]}}"#);
        let turn = world.submit("", &calls).await;
        let answer = format!(r#"{{"decision":"{decision}"}}"#);
        assert_eq!(world.resolve("bob", &turn.at("/pending/0/suspension"), &answer).await.status, 200);
    }
    let mut read = Vec::new();
    for decision in ["deny", "expired"] {
        store.read_of_logs();
        let page = world.get("alice", &format!("/v1/pending?decision={decision}")).await;
        read.push((page.json()["suspensions"].as_array().unwrap().len(), store.read_of_logs()));
    }
    assert_eq!(read, [(2, 2), (0, 0)]);
}

#[tokio::test]
async fn events_of_a_stream_count_as_unread() {
    let world = TestServer::with(ServerSettings { unread_bytes: 1_000, ..ServerSettings::default() });
    let body = format!(r#"{{"calls":[{{"id":"1","tool":"echo","arguments":{{"t":"{}"}}}}]}}"#, "x".repeat(2_000));
    let turn = format!("/v1/conversations/c/turns/{}", world.submit("?wait_ms=60000", &body).await.at("/turn"));
    let mut stream = open(&world, "alice", EVENTS).await;
    assert_eq!(world.get("alice", &turn).await.code(), "200", "nothing was read for the stream yet");
    stream.frame().await.unwrap().unwrap();
    assert_eq!(world.get("alice", &turn).await.code(), "429 busy");
    assert_eq!(world.get("root", &turn).await.code(), "200", "a neighbour");
    drop(stream);
    assert_eq!(world.get("alice", &turn).await.code(), "200");
}

#[tokio::test]
async fn few_streams_of_a_principal_read_at_once() {
    let (world, store) = recorded(ServerSettings::default());
    world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await;
    let gate = store.hold_pages();
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(open(&world, "alice", EVENTS).await);
    }
    let mut frames: Vec<_> = streams.iter_mut().map(|stream| Box::pin(stream.frame())).collect();
    for frame in &mut frames {
        assert!(frame.as_mut().now_or_never().is_none(), "the store has not answered");
    }
    assert_eq!(store.read_of_feeds(), 4);
    gate.add_permits(1_000);
    for frame in frames {
        frame.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn turn_is_not_loaded_for_a_principal_that_reads_nothing() {
    let (world, store) = recorded(ServerSettings { unread_bytes: 1_000, ..ServerSettings::default() });
    let body = format!(r#"{{"calls":[{{"id":"1","tool":"echo","arguments":{{"t":"{}"}}}}]}}"#, "x".repeat(2_000));
    let turn = format!("/v1/conversations/c/turns/{}", world.submit("?wait_ms=60000", &body).await.at("/turn"));
    let unread = world.router.clone().oneshot(request("GET", &turn, "alice", None)).await.unwrap();
    assert_eq!((unread.status().as_u16(), store.read_of_logs() > 0), (200, true));
    assert_eq!((world.get("alice", &turn).await.code().as_str(), store.read_of_logs()), ("429 busy", 0));
}

#[tokio::test]
async fn stream_waits_until_its_principal_has_read_enough() {
    let world = TestServer::with(ServerSettings { unread_bytes: 1_000, ..ServerSettings::default() });
    let large = format!(r#"{{"calls":[{{"id":"1","tool":"echo","arguments":{{"t":"{}"}}}}]}}"#, "x".repeat(2_000));
    let large = format!("/v1/conversations/c/turns/{}", world.submit("?wait_ms=60000", &large).await.at("/turn"));
    let asks = world.submit("", r#"{"calls":[{"id":"2","tool":"ask","arguments":{}}]}"#).await;
    let mut stream = open(&world, "alice", EVENTS).await;
    let unread = world.router.clone().oneshot(request("GET", &large, "alice", None)).await.unwrap();
    assert_eq!(unread.status(), 200);
    assert_eq!(world.get("alice", EVENTS).await.code(), "429 busy", "a new stream");
    let mut next = Box::pin(stream.frame());
    for _ in 0..100 {
        assert!((&mut next).now_or_never().is_none(), "the stream waits");
        tokio::task::yield_now().await;
    }
    drop(unread);
    next.await.unwrap().unwrap();
    drop(asks);
}
