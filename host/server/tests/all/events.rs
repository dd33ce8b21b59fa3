//! Event streams: their events, the order, and how a stream resumes.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use expect_test::expect;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

/// An open stream.
struct Tail {
    body: Body,
    text: String,
}

/// One received event.
struct ReceivedEvent {
    id: Option<String>,
    event: String,
    data: Value,
}

impl Tail {
    async fn open(world: &TestServer, who: &str, path: &str, last: Option<&str>) -> Self {
        let mut asked: Request<Body> = request("GET", path, who, None);
        if let Some(last) = last {
            asked.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let response = world.router.clone().oneshot(asked).await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        Self { body: response.into_body(), text: String::new() }
    }

    async fn next(&mut self) -> ReceivedEvent {
        loop {
            let message = self.message().await;
            let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(event) = field("event: ") {
                let data = serde_json::from_str(&field("data: ").unwrap_or_default()).unwrap();
                return ReceivedEvent { id: field("id: "), event, data };
            }
        }
    }

    /// The lines up to the next empty one. They need not be an event.
    async fn message(&mut self) -> String {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let message = message.to_owned();
                self.text = rest.to_owned();
                return message;
            }
            // Fails the test if the stream sends nothing.
            let frame = tokio::time::timeout(Duration::from_secs(20), self.body.frame()).await.unwrap();
            self.text += std::str::from_utf8(&frame.unwrap().unwrap().into_data().unwrap()).unwrap();
        }
    }

    /// The next events, each as its id and name.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut received = Vec::new();
        for _ in 0..count {
            let next = self.next().await;
            received.push(format!("{} {}", next.id.unwrap_or("-".into()), next.event));
        }
        received
    }
}

const EVENTS: &str = "/v1/conversations/c/events";
const PAY: &str =
    r#"{"calls":[{"id":"e","tool":"echo","arguments":{}},{"id":"p","tool":"pay","arguments":{"city":"Bern"}}]}"#;

#[tokio::test]
async fn stream_resumes_after_any_event_of_a_turn() {
    let world = TestServer::new();
    let turn = world.submit("?wait_ms=60000", PAY).await;
    let approve = r#"{"decision":"approve","arguments":{"city":"Rome"}}"#;
    world.resolve("bob", &turn.at("/pending/0/suspension"), approve).await;
    let path = format!("/v1/conversations/c/turns/{}?wait_ms=60000", turn.at("/turn"));
    assert_eq!(world.get("alice", &path).await.at("/state"), "settled");

    let mut all = Vec::new();
    let mut lines = String::new();
    let mut tail = Tail::open(&world, "alice", EVENTS, None).await;
    while !lines.contains("turn.settled") {
        let received = tail.next().await;
        assert_eq!(received.data["event"], received.event);
        let id = received.id.unwrap();
        lines += &format!("{id} {}\n", received.data);
        all.push(format!("{id} {}", received.event));
    }
    expect![[r#"
        1-1 {"event":"turn.started","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","conversation":"c","caller":"alice","rejection":"continue_siblings"}
        1-2 {"event":"call.requested","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"e","tool":"echo","arguments":{},"executor":"server","approval":"auto","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa"}
        1-3 {"event":"call.requested","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"p","tool":"pay","arguments":{"city":"Bern"},"executor":"server","approval":"requires-approval","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa"}
        1-4 {"event":"call.started","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"e","tool":"echo","attempt":1}
        1-5 {"event":"call.suspended","at":"2026-01-01T00:00:00.000Z","suspension":"susp_00000000000000000000000000000003","conversation":"c","turn":"turn_00000000000000000000000000000002","call":"p","number":1,"tool":"pay","plugin":"shelf","executor":"server","kind":"approval","state":"open","prompt":"pay?","prompt_by":"host","arguments":{"city":"Bern"},"arguments_digest":"sha256:9ad9d1db359cb62596c5d18e2b6395a325c91d01bd2aeeb20768e541b8d18260","caller":"alice","allowed":["approve","deny"],"editable":["city"],"needs":[],"standing":{"max_ttl_ms":86400000,"max_uses":100},"created_at":"2026-01-01T00:00:00.000Z","expires_at":"2026-01-01T01:00:00.000Z","on_expiry":"error","digest":"sha256:d6f9a8a75f5d615ed3fc185596a841d910a52db1ed94002f36d68538963c94cf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","declaration":"sha256:9350872d712a127c494d7dc35e46b0bc9e62e288239708e581dfc3a1400154a4"}
        2-1 {"event":"call.settled","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"e","tool":"echo","status":"resolved","outcome":"ok","trusted":true,"content":{"ok":true,"result":{}}}
        3-1 {"event":"call.resolved","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"p","suspension":"susp_00000000000000000000000000000003","by":"bob","decision":"approve","arguments":{"city":"Rome"},"edited":true,"via":"api"}
        3-2 {"event":"call.started","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"p","tool":"pay","attempt":1}
        4-1 {"event":"call.settled","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"p","tool":"pay","status":"resolved","outcome":"ok","trusted":true,"content":{"ok":true,"result":{"city":"Rome"}}}
        4-2 {"event":"turn.settled","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","state":"settled"}
    "#]].assert_eq(&lines);
    for (seen, last) in all.iter().enumerate() {
        let last = last.split(' ').next().unwrap();
        let rest = &all[seen + 1..];
        let mut tail = Tail::open(&world, "alice", EVENTS, Some(last)).await;
        assert_eq!(tail.take(rest.len()).await, rest, "after {last}");
    }
    let after = format!("{EVENTS}?after={}", all[2].split(' ').next().unwrap());
    assert_eq!(Tail::open(&world, "alice", &after, None).await.take(2).await, all[3..5]);
    let mut now = Tail::open(&world, "alice", &format!("{EVENTS}?after=now"), None).await;
    let begin = now.message().await;
    world.submit("", r#"{"calls":[{"id":"n","tool":"ask","arguments":{}}]}"#).await;
    let first = now.next().await;
    // A reader whose connection breaks before the first event resumes at the begin.
    let begin = begin.strip_prefix("id: ").unwrap();
    let mut again = Tail::open(&world, "alice", &format!("{EVENTS}?after=now"), Some(begin)).await;
    let second = again.next().await;
    assert_eq!((first.event.as_str(), first.id), ("turn.started", second.id));
}

#[tokio::test]
async fn progress_logs_and_ephemeral_turns_have_no_event_id() {
    let world = TestServer::new();
    let mut tail = Tail::open(&world, "alice", EVENTS, None).await;
    let ephemeral = r#"{"calls":[{"id":"s","tool":"slow","arguments":{}}],"ephemeral":true}"#;
    let submitted = world.submit("", ephemeral);
    let followed = async {
        let mut received = String::new();
        for n in 0..7 {
            let next = tail.next().await;
            assert_eq!(next.id, None);
            received += &format!("{}\n", next.data);
            if n == 4 {
                world.shelf.slow.add_permits(1);
            }
        }
        received
    };
    let (reply, received) = tokio::join!(submitted, followed);
    assert_eq!(reply.at("/state"), "settled");
    expect![[r#"
        {"event":"turn.started","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","conversation":"c","caller":"alice","rejection":"continue_siblings"}
        {"event":"call.requested","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"s","tool":"slow","arguments":{},"executor":"server","approval":"auto","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa"}
        {"event":"call.started","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"s","tool":"slow","attempt":1}
        {"event":"call.log","turn":"turn_00000000000000000000000000000002","call":"s","run":1,"line":1,"level":"info","message":"it begins"}
        {"event":"call.progress","turn":"turn_00000000000000000000000000000002","call":"s","message":"half","fraction":0.5,"data":[1]}
        {"event":"call.settled","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","call":"s","tool":"slow","status":"resolved","outcome":"ok","trusted":true,"content":{"ok":true,"result":{}}}
        {"event":"turn.settled","at":"2026-01-01T00:00:00.000Z","turn":"turn_00000000000000000000000000000002","state":"settled"}
    "#]].assert_eq(&received);
}

/// Between two events, the stream keeps less of an ephemeral turn than its events show.
#[tokio::test]
async fn later_events_of_an_ephemeral_turn_are_complete() {
    let world = TestServer::new();
    let mut tail = Tail::open(&world, "alice", EVENTS, None).await;
    let calls = r#"{"id":"s","tool":"slow","arguments":{"n":1}},{"id":"t","tool":"slow","arguments":{"n":2}}"#;
    let ephemeral = format!(r#"{{"calls":[{calls}],"ephemeral":true,"context":{{"note":"hi"}}}}"#);
    let submitted = world.submit("", &ephemeral);
    let followed = async {
        let mut settled = Vec::new();
        loop {
            let next = tail.next().await;
            match next.event.as_str() {
                "call.progress" => world.shelf.slow.add_permits(1),
                "call.settled" => settled.push((next.data["call"].clone(), next.data["content"]["result"].clone())),
                "turn.settled" => break (settled, next.data["state"].clone()),
                _ => {}
            }
        }
    };
    let (_, (mut settled, state)) = tokio::join!(submitted, followed);
    settled.sort_by_key(|(call, _)| call.to_string());
    let result = |call: &str, n: u64| (serde_json::json!(call), serde_json::json!({"n": n}));
    assert_eq!((settled, state), (vec![result("s", 1), result("t", 2)], serde_json::json!("settled")));
}

#[tokio::test]
async fn client_gets_open_suspensions_and_then_new_events() {
    let world = TestServer::new();
    let locate = |id: &str| format!(r#"{{"calls":[{{"id":"{id}","tool":"locate","arguments":{{}}}}]}}"#);
    let first = world.submit("", &locate("1")).await.at("/pending/0/suspension");
    world.submit("", r#"{"calls":[{"id":"q","tool":"ask","arguments":{}}]}"#).await;

    let path = format!("{EVENTS}?client=locate,other");
    let mut client = Tail::open(&world, "carol", &path, None).await;
    let received = client.next().await;
    assert_eq!((received.id, received.event.as_str()), (None, "call.suspended"));
    assert_eq!((&received.data["snapshot"], &received.data["suspension"]), (&true.into(), &first.clone().into()));
    let second = world.submit("", &locate("2")).await.at("/pending/0/suspension");
    let mut seen = client.next().await;
    while seen.event != "call.suspended" {
        seen = client.next().await;
    }
    assert_eq!((&seen.data["suspension"], seen.data.get("snapshot")), (&second.into(), None));

    // The host waits while a client is attached. The grace begins when the last one leaves.
    world.advance(30);
    let reply = world.resolve("carol", &first, r#"{"decision":"result","data":{"lat":47}}"#).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn client_gets_each_open_suspension_once() {
    let world = TestServer::new();
    let turn = |ids: &[String]| {
        let call = |id: &String| format!(r#"{{"id":"{id}","tool":"locate","arguments":{{}}}}"#);
        format!(r#"{{"calls":[{}]}}"#, ids.iter().map(call).collect::<Vec<_>>().join(","))
    };
    let ids: Vec<_> = (0..20).map(|n| format!("c{n}")).collect();
    let reply = world.submit("", &turn(&ids)).await;
    let mut expected: Vec<Value> = (0..20).map(|n| reply.at(&format!("/pending/{n}/suspension")).into()).collect();

    let mut client = Tail::open(&world, "carol", &format!("{EVENTS}?client=locate"), None).await;
    // Both happen while the client reads nothing: the answered suspension is not sent, and the new one is sent once.
    let answered = expected.pop().unwrap();
    let reply = world.resolve("carol", answered.as_str().unwrap(), r#"{"decision":"result","data":{"lat":47}}"#).await;
    assert_eq!(reply.status, 200);
    expected.push(world.submit("", &turn(&["late".into()])).await.at("/pending/0/suspension").into());

    let mut received = Vec::new();
    let mut is_ending = false;
    loop {
        let seen = client.next().await;
        if seen.event == "call.suspended" {
            received.push(seen.data["suspension"].clone());
        } else if !is_ending {
            is_ending = true;
            world.submit("", &turn(&["end".into()])).await;
        } else if seen.event == "call.requested" && seen.data["call"] == "end" {
            break;
        }
    }
    assert_eq!(received, expected);
}

#[tokio::test]
async fn streams_require_the_right_to_read() {
    let world = TestServer::new();
    world.submit("", PAY).await;
    assert_eq!(world.get("", EVENTS).await.code(), "401 unauthorized");
    assert_eq!(world.get("eve", EVENTS).await.code(), "404 not-found");
    assert_eq!(world.get("alice", &format!("{EVENTS}?client=locate")).await.code(), "403 not-allowed");
    let many = vec!["locate"; 129].join(",");
    for client in ["", &many] {
        assert_eq!(world.get("carol", &format!("{EVENTS}?client={client}")).await.code(), "400 bad-request");
    }
    assert_eq!(world.get("alice", &format!("{EVENTS}?after=x")).await.code(), "400 bad-request");
    assert_eq!(world.get("", "/v1/events").await.code(), "401 unauthorized");

    let mut host = Tail::open(&world, "root", "/v1/events", None).await;
    let loaded = domain::event::PluginEvent {
        plugin: domain::PluginName::new("p").unwrap(),
        component: domain::Digest::of("p"),
        change: domain::event::PluginChange::Rejected { findings: vec!["it is gated".into()] },
        at: domain::Timestamp::from_millis(0),
        by: None,
        grants: Vec::new(),
    };
    world.host.handle().plugin_changed(loaded.clone()).await.unwrap();
    let received = host.next().await;
    assert_eq!((received.event.as_str(), &received.data["findings"][0]), ("plugin.rejected", &"it is gated".into()));
    let mut after = Tail::open(&world, "root", "/v1/events", received.id.as_deref()).await;
    let unloaded = domain::event::PluginEvent { change: domain::event::PluginChange::Unloaded, ..loaded };
    world.host.handle().plugin_changed(unloaded).await.unwrap();
    assert_eq!(after.next().await.event, "plugin.unloaded");
}

#[tokio::test]
async fn ends_of_turns_reach_those_who_may_see_them() {
    const TURNS: [(&str, &str); 4] = [("alice", "c"), ("eve", "other"), ("scoped", "theirs"), ("alice", "c")];
    let world = TestServer::new();
    let mut early = Tail::open(&world, "alice", "/v1/events", None).await;
    for (number, (who, conversation)) in TURNS.iter().enumerate() {
        let body = format!(r#"{{"calls":[{{"id":"e-{number}","tool":"echo","arguments":{{}}}}]}}"#);
        let path = format!("/v1/conversations/{conversation}/turns?wait_ms=60000");
        assert_eq!(world.post(who, &path, &body).await.at("/state"), "settled");
        let ephemeral = body.replace("\"calls\"", "\"ephemeral\":true,\"calls\"").replace("e-", "f-");
        assert_eq!(world.post(who, &path, &ephemeral).await.at("/state"), "settled");
    }
    let unloaded = domain::event::PluginEvent {
        plugin: domain::PluginName::new("p").unwrap(),
        component: domain::Digest::of("p"),
        change: domain::event::PluginChange::Unloaded,
        at: domain::Timestamp::from_millis(0),
        by: None,
        grants: Vec::new(),
    };
    world.host.handle().plugin_changed(unloaded).await.unwrap();
    // A last turn for each, after which the stream has nothing more.
    let last = [("eve", "other"), ("scoped", "theirs"), ("alice", "c")];
    for (who, conversation) in last {
        let path = format!("/v1/conversations/{conversation}/turns?wait_ms=60000");
        world.post(who, &path, r#"{"calls":[{"id":"last","tool":"echo","arguments":{}}]}"#).await;
    }
    let ended = TURNS.iter().chain(&last).map(|(who, conversation)| format!("{who} in {conversation}"));
    let all: Vec<String> = ended.collect();
    let of = |who: &str| all.iter().filter(|line| line.starts_with(who)).cloned().collect::<Vec<_>>();
    let mut with_plugin = all.clone();
    with_plugin.insert(TURNS.len(), "plugin.unloaded".into());
    for (who, expected) in [
        ("alice", of("alice")),
        ("eve", of("eve")),
        ("scoped", of("scoped")),
        ("bob", all.clone()),
        ("carol", all.clone()),
        ("root", with_plugin),
    ] {
        let mut tail = Tail::open(&world, who, "/v1/events", None).await;
        let (mut received, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..expected.len() {
            let next = tail.next().await;
            ids.push(next.id.unwrap());
            let word = |name: &str| next.data[name].as_str().unwrap_or_default().to_owned();
            received.push(match next.event.as_str() {
                "turn.settled" => format!("{} in {}", word("caller"), word("conversation")),
                other => other.to_owned(),
            });
        }
        assert_eq!(received, expected, "{who}");
        for (seen, id) in ids.iter().enumerate().take(ids.len() - 1) {
            let next = Tail::open(&world, who, "/v1/events", Some(id)).await.next().await;
            assert_eq!(next.id.as_ref(), Some(&ids[seen + 1]), "{who} after {id}");
        }
    }
    for _ in of("alice") {
        let next = early.next().await;
        assert_eq!((next.event.as_str(), &next.data["state"]), ("turn.settled", &"settled".into()));
        assert_eq!(next.data["caller"], "alice");
    }
}
