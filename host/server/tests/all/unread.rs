//! Every response counts for its reader until it was read, and few are made at once.

use std::sync::Arc;

use axum::response::Response;
use dispatch::Quota;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use toolgate_server::ServerSettings;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::world::settle;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

/// A world in which a principal may have this many bytes unread, with a store that counts and holds reads.
fn limited(unread_bytes: usize) -> (TestServer, Arc<MortalStore>) {
    let store = Arc::new(MortalStore::new(Arc::new(store::MemoryStore::new())));
    let settings = ServerSettings { unread_bytes, ..ServerSettings::default() };
    (TestServer::over(store.clone(), settings, Quota::default()), store)
}

/// A response whose body is not read.
async fn unread(world: &TestServer, who: &str, method: &str, path: &str) -> Response {
    let body = match (method, path) {
        ("POST", "/v1/pending/resolve") => Some(r#"{"answers":[{"suspension":"none","decision":"deny"}]}"#),
        ("POST", _) => Some(""),
        _ => None,
    };
    let response = world.router.clone().oneshot(request(method, path, who, body)).await.unwrap();
    assert_eq!(response.status(), 200, "{method} {path}");
    response
}

/// A call with a text of this length.
fn calls(tool: &str, id: &str, length: usize) -> String {
    format!(r#""calls":[{{"id":"{id}","tool":"{tool}","arguments":{{"t":"{}"}}}}]"#, "x".repeat(length))
}

/// Submits a call, and returns the path of its turn.
async fn turn(world: &TestServer, tool: &str, id: &str, length: usize) -> String {
    let reply = world.submit("?wait_ms=60000", &format!("{{{}}}", calls(tool, id, length))).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    format!("/v1/conversations/c/turns/{}", reply.at("/turn"))
}

/// Makes a standing approval of bob for a call with a text of this length, and returns its path.
async fn standing(world: &TestServer, id: &str, length: usize) -> String {
    let asks = world.submit("", &format!("{{{}}}", calls("pay", id, length))).await;
    let approve = r#"{"decision":"approve","standing":{"ttl_ms":60000,"uses":1,"pin":"all"}}"#;
    assert_eq!(world.resolve("bob", &asks.at("/pending/0/suspension"), approve).await.status, 200);
    let list = world.get("bob", "/v1/standing-approvals").await.json();
    let newest = list["standing_approvals"].as_array().unwrap().last().unwrap();
    format!("/v1/standing-approvals/{}", newest["id"].as_str().unwrap())
}

#[tokio::test]
async fn every_response_counts_until_it_was_read() {
    let (world, _) = limited(1);
    let ended = turn(&world, "echo", "1", 1).await;
    let asks = world.submit("", r#"{"calls":[{"id":"2","tool":"pay","arguments":{"city":"Bern"}}]}"#).await;
    let suspension = format!("/v1/suspensions/{}", asks.at("/pending/0/suspension"));
    let standing = standing(&world, "3", 1).await;
    for (who, method, path) in [
        ("alice", "GET", ended.clone()),
        ("alice", "GET", format!("{ended}?log=true&wait_ms=1")),
        ("alice", "POST", format!("{ended}/cancel")),
        ("alice", "GET", "/v1/conversations/c/turns".to_owned()),
        ("alice", "GET", "/v1/conversations/c/calls/1/log".to_owned()),
        ("alice", "GET", "/v1/conversations/c/calls/1/journal".to_owned()),
        ("alice", "GET", "/v1/conversations".to_owned()),
        ("bob", "GET", "/v1/pending".to_owned()),
        ("carol", "GET", "/v1/pending?mine=true".to_owned()),
        ("bob", "GET", "/v1/pending/counts".to_owned()),
        ("bob", "GET", suspension),
        ("bob", "GET", "/v1/standing-approvals".to_owned()),
        ("bob", "DELETE", standing),
        ("bob", "POST", "/v1/pending/resolve".to_owned()),
        ("alice", "GET", "/v1/tools".to_owned()),
        ("alice", "GET", "/v1/tools?format=openai".to_owned()),
        ("alice", "GET", "/v1/session".to_owned()),
        ("root", "GET", "/v1/plugins".to_owned()),
        ("root", "GET", "/v1/status".to_owned()),
        ("root", "GET", "/v1/hosts".to_owned()),
        ("root", "GET", "/v1/audit".to_owned()),
        ("root", "GET", "/v1/audit/chain".to_owned()),
    ] {
        let held = unread(&world, who, method, &path).await;
        let refused = world.get(who, "/v1/tools").await;
        assert_eq!(refused.code(), "429 busy", "{method} {path}");
        assert!(refused.at("/detail").contains("`unread_bytes`"), "{}", refused.text);
        assert_eq!(world.get("eve", "/v1/tools").await.status, 200, "a neighbour");
        drop(held);
        assert_eq!(world.get(who, "/v1/tools").await.status, 200, "{method} {path}");
    }
}

#[tokio::test]
async fn unread_cancels_of_a_principal_are_limited() {
    let (world, _) = limited(1_000);
    let large = turn(&world, "echo", "large", 2_000).await;
    let open = turn(&world, "pay", "open", 10).await;
    let held = unread(&world, "alice", "POST", &format!("{large}/cancel")).await;
    let refused = world.post("alice", &format!("{open}/cancel"), "").await;
    assert_eq!(refused.code(), "429 busy");
    assert!(refused.at("/detail").starts_with("the turn has ended"), "{}", refused.text);
    assert_eq!(world.get("root", &open).await.at("/state"), "cancelled", "it is cancelled nevertheless");
    drop(held);
    assert_eq!(world.post("alice", &format!("{open}/cancel"), "").await.at("/state"), "cancelled");
}

#[tokio::test]
async fn unread_revocations_of_a_principal_are_limited() {
    let (world, _) = limited(1_000);
    let (first, second) = (standing(&world, "1", 2_000).await, standing(&world, "2", 2_100).await);
    let held = unread(&world, "bob", "DELETE", &first).await;
    let refused = world.send(request("DELETE", &second, "bob", None)).await;
    assert_eq!(refused.code(), "429 busy");
    assert!(refused.at("/detail").starts_with("the standing approval is revoked"), "{}", refused.text);
    let list = world.get("root", "/v1/standing-approvals").await.json();
    assert_eq!(list["standing_approvals"][1]["revoked_by"], "bob", "{list}");
    drop(held);
    assert_eq!(world.send(request("DELETE", &second, "bob", None)).await.at("/state"), "revoked");
}

#[tokio::test]
async fn several_answers_are_refused_before_any_counts() {
    let (world, _) = limited(1_000);
    let asks = world.submit("", &format!("{{{}}}", calls("pay", "1", 2_000))).await;
    let suspension = asks.at("/pending/0/suspension");
    let held = unread(&world, "bob", "GET", "/v1/pending").await;
    let answers = format!(r#"{{"answers":[{{"suspension":"{suspension}","decision":"deny"}}]}}"#);
    assert_eq!(world.post("bob", "/v1/pending/resolve", &answers).await.code(), "429 busy");
    assert_eq!(world.get("root", &format!("/v1/suspensions/{suspension}")).await.at("/state"), "open");
    drop(held);
    let resolved = world.post("bob", "/v1/pending/resolve", &answers).await;
    assert_eq!(resolved.at("/answers/0/ok/state"), "deny", "{}", resolved.text);
}

#[tokio::test]
async fn turn_that_waits_is_not_kept_in_memory() {
    let (world, store) = limited(1 << 20);
    let open = turn(&world, "pay", "open", 10).await;
    let path = format!("{open}?wait_ms=60000");
    let mut waits = Box::pin(unread(&world, "alice", "GET", &path));
    assert!((&mut waits).now_or_never().is_none());
    store.read_of_logs();
    world.get("root", &open).await;
    assert_eq!(store.read_of_logs(), 1, "nobody keeps it");
    assert_eq!(world.post("alice", &format!("{open}/cancel"), "").await.at("/state"), "cancelled");
    store.read_of_logs();
    assert!(waits.now_or_never().is_some(), "the commit wakes the request");
    assert_eq!(store.read_of_logs(), 0, "it stays for the request until it is read");
}

#[tokio::test]
async fn ended_turn_is_not_kept_for_a_slow_reader() {
    let (world, store) = limited(1_000);
    let (large, open) = (turn(&world, "echo", "large", 2_000).await, turn(&world, "pay", "open", 10).await);
    let path = format!("{open}?wait_ms=60000");
    let mut waits = Box::pin(unread(&world, "alice", "GET", &path));
    assert!((&mut waits).now_or_never().is_none());
    let held = unread(&world, "alice", "GET", &large).await;
    assert_eq!(world.post("root", &format!("{open}/cancel"), "").await.at("/state"), "cancelled");
    assert!((&mut waits).now_or_never().is_none(), "it has too much unread");
    store.read_of_logs();
    world.get("root", &open).await;
    assert_eq!(store.read_of_logs(), 1);
    drop(held);
    assert!(waits.now_or_never().is_some());
}

#[tokio::test]
async fn turn_that_ends_before_it_is_read_is_not_kept() {
    let (world, _) = limited(10_000);
    let large = turn(&world, "echo", "large", 4_200).await;
    let held = unread(&world, "alice", "GET", &large).await;
    let (turns, body) = ("/v1/conversations/c/turns", format!("{{{}}}", calls("pay", "open", 10)));
    let submit = request("POST", &format!("{turns}?wait_ms=60000&until=settled"), "alice", Some(&body));
    let mut waits = Box::pin(world.router.clone().oneshot(submit));
    while world.host.handle().counts().open_turns == 0 {
        assert!((&mut waits).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    settle().await;
    assert!((&mut waits).now_or_never().is_none(), "it has too much unread");
    let open = world.get("root", turns).await.at("/turns/0/turn");
    assert_eq!(world.post("root", &format!("{turns}/{open}/cancel"), "").await.at("/state"), "cancelled");
    assert!((&mut waits).now_or_never().is_none(), "it still has");
    assert_eq!(world.host.handle().turns_in_memory(), 0);
    drop(held);
    assert_eq!(waits.await.unwrap().status(), 201);
}

#[tokio::test]
async fn few_turns_are_loaded_at_once_for_a_principal() {
    let (world, store) = limited(1 << 20);
    let submit = |conversation: &str, who: &str, id: usize| {
        let path = format!("/v1/conversations/{conversation}/turns?wait_ms=60000");
        let body = format!("{{{}}}", calls("echo", &id.to_string(), 10));
        world.router.clone().oneshot(request("POST", &path, who, Some(&body)))
    };
    for id in 0..8 {
        assert_eq!(submit("c", "alice", id).await.unwrap().status(), 201);
    }
    assert_eq!(submit("d", "eve", 0).await.unwrap().status(), 201);
    let gate = store.hold_logs();
    store.read_of_logs();
    let mut again: Vec<_> = (0..8).map(|id| Box::pin(submit("c", "alice", id))).collect();
    assert!(again.iter_mut().all(|replay| replay.now_or_never().is_none()));
    settle().await;
    assert_eq!(store.read_of_logs(), 4, "the others wait for a permit");
    let mut neighbour = Box::pin(submit("d", "eve", 0));
    assert!((&mut neighbour).now_or_never().is_none());
    settle().await;
    assert_eq!(store.read_of_logs(), 1);
    gate.add_permits(16);
    for replay in again.into_iter().chain([neighbour]) {
        assert_eq!(replay.await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn unread_pages_of_a_principal_are_limited() {
    let (world, store) = limited(1_000);
    for id in ["1", "2", "3"] {
        turn(&world, "pay", id, 2_000).await;
    }
    let held = unread(&world, "bob", "GET", "/v1/pending").await;
    store.read_of_logs();
    for path in ["/v1/pending", "/v1/pending?mine=true", "/v1/conversations/c/turns", "/v1/tools"] {
        assert_eq!((world.get("bob", path).await.code().as_str(), store.read_of_logs()), ("429 busy", 0), "{path}");
    }
    drop(held);
    assert_eq!(world.get("bob", "/v1/pending").await.status, 200);
}

#[tokio::test]
async fn answers_are_taken_while_responses_are_unread() {
    let (world, _) = limited(1_000);
    let asks = world.submit("", &format!("{{{}}}", calls("pay", "1", 2_000))).await;
    let held = unread(&world, "bob", "GET", "/v1/pending").await;
    let resolved = world.resolve("bob", &asks.at("/pending/0/suspension"), r#"{"decision":"deny"}"#).await;
    assert_eq!(resolved.status, 200, "{}", resolved.text);
    drop(held);
}

#[tokio::test]
async fn few_reads_of_a_principal_load_at_once() {
    let (world, store) = limited(64 << 20);
    let mut paths = Vec::new();
    for n in 0..20 {
        let path = turn(&world, "pay", &n.to_string(), 10).await;
        paths.push(if n % 2 == 0 { path } else { format!("{path}/cancel") });
    }
    let gate = store.hold_logs();
    store.read_of_logs();
    let send = |path: &String| {
        let (method, body) = if path.ends_with("/cancel") { ("POST", Some("")) } else { ("GET", None) };
        world.router.clone().oneshot(request(method, path, "alice", body))
    };
    let mut responses: Vec<_> = paths.iter().map(|path| Box::pin(send(path))).collect();
    for _ in 0..100 {
        for response in &mut responses {
            assert!(response.as_mut().now_or_never().is_none(), "the store has not answered");
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(store.read_of_logs(), 4);
    gate.add_permits(1_000);
    // Each is read before the next, as a client does that reads all of them.
    for response in futures::future::join_all(responses).await {
        assert_eq!(response.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn pending_events_of_a_principal_are_reads() {
    let (world, store) = limited(64 << 20);
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = unread(&world, "bob", "GET", "/v1/pending/events").await.into_body();
        stream.frame().await.unwrap().unwrap();
        streams.push(stream);
    }
    turn(&world, "pay", "1", 10).await;
    let gate = store.hold_logs();
    let mut events: Vec<_> = streams.iter_mut().map(|stream| Box::pin(stream.frame())).collect();
    for event in &mut events {
        assert!(event.as_mut().now_or_never().is_none(), "the store has not answered");
    }
    let mut fifth = Box::pin(world.get("bob", "/v1/tools"));
    for _ in 0..100 {
        assert!((&mut fifth).now_or_never().is_none(), "four of bob read");
        tokio::task::yield_now().await;
    }
    gate.add_permits(1_000);
    for event in events {
        let event = event.await.unwrap().unwrap().into_data().unwrap();
        assert!(String::from_utf8_lossy(&event).starts_with("event: pending.opened"));
    }
    drop(streams);
    assert_eq!(fifth.await.status, 200);
}

#[tokio::test]
async fn waited_turn_is_given_when_its_caller_has_read_enough() {
    let (world, store) = limited(1_000);
    let large = turn(&world, "echo", "large", 2_000).await;
    let body = format!("{{{}}}", calls("slow", "slow", 2_000));
    let submit = request("POST", "/v1/conversations/c/turns?wait_ms=60000", "alice", Some(&body));
    let mut waiting = Box::pin(world.router.clone().oneshot(submit));
    for _ in 0..100 {
        assert!((&mut waiting).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    let held = unread(&world, "alice", "GET", &large).await;
    world.shelf.slow.add_permits(1);
    while world.host.handle().counts().open_turns > 0 || world.host.handle().turns_in_memory() > 0 {
        assert!((&mut waiting).now_or_never().is_none(), "it waits");
        tokio::task::yield_now().await;
    }
    store.read_of_logs();
    let kept = world.shelf.pins("slow");
    drop(held);
    let given = waiting.await.unwrap();
    assert_eq!((given.status().as_u16(), store.read_of_logs()), (201, 1));
    assert_eq!(kept, world.shelf.pins("slow"), "no turn was kept in memory");
    let text = given.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains(r#""state":"settled""#));
}

#[tokio::test]
async fn submissions_are_refused_before_they_have_an_effect() {
    let (world, store) = limited(5_000);
    let submit = |id: &str| {
        let body = format!(r#"{{{},"context":{{"note":"{}"}}}}"#, calls("pay", id, 1_000), "x".repeat(1_000));
        Box::pin(world.router.clone().oneshot(request("POST", "/v1/conversations/c/turns", "alice", Some(&body))))
    };
    let gate = store.hold();
    let mut first = submit("1");
    assert!((&mut first).now_or_never().is_none(), "it is not stored yet");
    assert_eq!(submit("2").await.unwrap().status(), 429, "both responses together would be too large");
    gate.add_permits(1);
    let first = first.await.unwrap();
    assert_eq!((first.status().as_u16(), world.host.handle().counts().open_turns), (201, 1));
    drop(first);
    assert_eq!(submit("2").await.unwrap().status(), 201);
}

#[tokio::test]
async fn ephemeral_results_are_dropped_rather_than_kept_unread() {
    let (world, _) = limited(6_000);
    let submit = |id: &str| {
        let body = format!(r#"{{{},"ephemeral":true}}"#, calls("slow", id, 1_400));
        Box::pin(world.send(request("POST", "/v1/conversations/c/turns", "alice", Some(&body))))
    };
    let body = format!(r#"{{{},"ephemeral":true}}"#, calls("slow", "0", 1_400));
    let unread = request("POST", "/v1/conversations/c/turns", "alice", Some(&body));
    let (mut held, mut refused) = (Box::pin(world.router.clone().oneshot(unread)), submit("1"));
    while world.host.handle().counts().running_calls < 2 {
        assert!((&mut held).now_or_never().is_none() && (&mut refused).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    world.shelf.slow.add_permits(3);
    let held = held.await.unwrap();
    let refused = refused.await;
    assert_eq!((held.status().as_u16(), refused.code().as_str()), (201, "429 busy"));
    assert!(refused.at("/detail").starts_with("the calls of this ephemeral turn have run"), "{}", refused.text);
    drop(held);
    assert_eq!(submit("2").await.status, 201);
}

#[tokio::test]
async fn client_is_given_waiting_calls_only_as_it_reads() {
    let (world, store) = limited(1_000);
    turn(&world, "locate", "1", 2_000).await;
    let open = async || {
        let path = "/v1/conversations/c/events?client=locate";
        unread(&world, "carol", "GET", path).await.into_body()
    };
    store.read_of_logs();
    let (mut first, mut second) = (open().await, open().await);
    assert_eq!(store.read_of_logs(), 0, "nothing was read for them yet");
    for stream in [&mut first, &mut second] {
        let position = stream.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(position.starts_with(b"id: ") && !String::from_utf8_lossy(&position).contains("data"));
    }
    assert_eq!(store.read_of_logs(), 0);
    let frame = first.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&frame).contains(r#""snapshot":true"#));
    store.read_of_logs();
    let mut next = Box::pin(second.frame());
    for _ in 0..100 {
        assert!((&mut next).now_or_never().is_none(), "it waits");
        tokio::task::yield_now().await;
    }
    assert_eq!(store.read_of_logs(), 0);
    drop((frame, first));
    next.await.unwrap().unwrap();
}
