//! Turns are submitted, read, waited for and cancelled.

use std::sync::Arc;

use dispatch::ports::Clock as _;
use dispatch::{Mode, RetentionRules};
use domain::Span;
use expect_test::expect;
use http_body_util::BodyExt as _;
use toolgate_server::ServerSettings;
use toolgate_tests::faults::MortalStore;
use tower::ServiceExt as _;

use crate::world::{TestServer, request};

const MIXED: &str = r#"{"calls":[
    {"id":"e","tool":"echo","arguments":{"n": 1.0,  "s":"\u00e9"}},
    {"id":"p","tool":"pay","arguments":{"city":"Bern"}},
    {"id":"w","tool":"web_search","arguments":{},"result":null},
    {"id":"x","tool":"ecko","arguments":{}},
    {"id":"y","tool":"echo","arguments":{"city":7}}
],"context":{"note":"hi"},"rejection":"cancel_siblings"}"#;

#[tokio::test]
async fn the_log_of_a_call_is_read_alone_and_with_its_turn() {
    let world = TestServer::new();
    let reply = world.submit("", r#"{"calls":[{"id":"s","tool":"slow","arguments":{}}]}"#).await;
    let path = format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
    world.shelf.slow.add_permits(1);
    world.get("alice", &format!("{path}?wait_ms=60000")).await;
    let log = world.get("alice", "/v1/conversations/c/calls/s/log").await;
    expect![[r#"
        {"turn":"turn_00000000000000000000000000000002","call":"s","status":"resolved","runs":[{"run":1,"left_out":0,"lines":[{"line":1,"at":"2026-01-01T00:00:00.000Z","level":"info","message":"it begins"}]}]}
    "#]]
    .assert_eq(&format!("{}\n", log.text));
    let turn = world.get("alice", &format!("{path}?log=true")).await.json();
    assert_eq!(turn["calls"][0]["log"], log.json()["runs"]);
    assert_eq!(world.get("alice", &path).await.json()["calls"][0].get("log"), None, "only on request");
    assert_eq!(world.get("alice", &format!("{path}?log=true&format=anthropic")).await.code(), "400 bad-request");
    for path in ["/v1/conversations/c/calls/x/log", "/v1/conversations/d/calls/s/log"] {
        assert_eq!(world.get("alice", path).await.code(), "404 not-found", "{path}");
    }
}

#[tokio::test]
async fn submitted_turn_is_returned_completely() {
    let world = TestServer::new();
    let reply = world.submit("?wait_ms=60000", MIXED).await;
    let location = format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
    assert_eq!(reply.headers["location"], location);
    // Arguments and results pass verbatim, white space included.
    assert!(reply.text.contains(r#""arguments":{"n": 1.0,  "s":"\u00e9"}"#), "{}", reply.text);
    assert!(reply.text.contains(r#""result":{"n": 1.0,  "s":"\u00e9"}"#), "{}", reply.text);
    let mut turn = reply.json();
    let mut lines = String::new();
    for list in ["calls", "pending"] {
        let items = turn.as_object_mut().unwrap().shift_remove(list).unwrap();
        lines += &format!("{list}\n");
        items.as_array().unwrap().iter().for_each(|item| lines += &format!("  {item}\n"));
    }
    lines += &turn.to_string();
    expect![[r#"
        calls
          {"id":"e","tool":"echo","arguments":{"n":1.0,"s":"é"},"executor":"server","approval":"auto","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","status":"resolved","outcome":"ok","trusted":true,"content":{"ok":true,"result":{"n":1.0,"s":"é"}},"attempt":1}
          {"id":"p","tool":"pay","arguments":{"city":"Bern"},"executor":"server","approval":"requires-approval","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","status":"awaiting","outcome":null,"content":null,"attempt":0,"suspension":"susp_00000000000000000000000000000003"}
          {"id":"w","tool":"web_search","arguments":{},"executor":"provider","approval":"auto","plugin":"shelf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","status":"resolved","outcome":"ok","trusted":false,"content":{"ok":true,"result":null},"attempt":0}
          {"id":"x","tool":"ecko","arguments":{},"status":"errored","outcome":"failed","content":{"ok":false,"error":{"code":"unknown_tool","message":"there is no tool \"ecko\"; did you mean echo?"}},"attempt":0}
          {"id":"y","tool":"echo","arguments":{"city":7},"status":"errored","outcome":"failed","content":{"ok":false,"error":{"code":"invalid_arguments","message":"the arguments do not fit the tool's schema: at /city: a string is expected"}},"attempt":0}
        pending
          {"suspension":"susp_00000000000000000000000000000003","conversation":"c","turn":"turn_00000000000000000000000000000002","call":"p","number":1,"tool":"pay","plugin":"shelf","executor":"server","kind":"approval","state":"open","prompt":"pay?","prompt_by":"host","arguments":{"city":"Bern"},"arguments_digest":"sha256:9ad9d1db359cb62596c5d18e2b6395a325c91d01bd2aeeb20768e541b8d18260","context":{"note":"hi"},"caller":"alice","allowed":["approve","deny"],"editable":["city"],"needs":[],"standing":{"max_ttl_ms":86400000,"max_uses":100},"created_at":"2026-01-01T00:00:00.000Z","expires_at":"2026-01-01T01:00:00.000Z","on_expiry":"error","digest":"sha256:d6f9a8a75f5d615ed3fc185596a841d910a52db1ed94002f36d68538963c94cf","component":"sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa","declaration":"sha256:9350872d712a127c494d7dc35e46b0bc9e62e288239708e581dfc3a1400154a4"}
        {"turn":"turn_00000000000000000000000000000002","conversation":"c","caller":"alice","state":"open","running":false,"rejection":"cancel_siblings","context":{"note":"hi"},"started_at":"2026-01-01T00:00:00.000Z","replayed":false,"ephemeral":false}"#]].assert_eq(&lines);
}

#[tokio::test]
async fn same_calls_are_the_same_turn_and_others_conflict() {
    let world = TestServer::new();
    let body = r#"{"calls":[{"id":"1","tool":"echo","arguments":{"a":1,"b":2}}]}"#;
    let first = world.submit("", body).await;
    let again =
        world.submit("?wait_ms=60000", r#"{"calls":[{"arguments":{"b":2, "a":1},"tool":"echo","id":"1"}]}"#).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 200));
    assert_eq!(first.at("/turn"), again.at("/turn"));
    assert_eq!((&first.json()["replayed"], &again.json()["replayed"]), (&false.into(), &true.into()));
    for other in [
        r#"{"calls":[{"id":"1","tool":"echo","arguments":{"a":2}}]}"#,
        r#"{"calls":[{"id":"1","tool":"pay","arguments":{"a":1,"b":2}}]}"#,
        r#"{"calls":[{"id":"0","tool":"echo","arguments":{}},{"id":"1","tool":"echo","arguments":{"a":1,"b":2}}]}"#,
    ] {
        let reply = world.submit("", other).await;
        assert_eq!(reply.code(), "409 call-id-taken");
        assert_eq!(reply.at("/call"), "1");
    }
    // Another principal's conversation is not found, and ids are unique only within a conversation.
    let theirs = world.post("eve", "/v1/conversations/c/turns", body).await;
    assert_eq!(theirs.code(), "404 not-found");
    assert_eq!(world.post("eve", "/v1/conversations/d/turns", body).await.status, 201);
}

#[tokio::test]
async fn ephemeral_turn_is_returned_and_not_stored() {
    let world = TestServer::new();
    let reply = world.submit("", r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}],"ephemeral":true}"#).await;
    assert_eq!((reply.status.as_u16(), reply.at("/state")), (201, "settled".into()));
    assert_eq!(reply.json()["ephemeral"], true);
    assert!(!reply.headers.contains_key("location"));
    let read = world.get("alice", &format!("/v1/conversations/c/turns/{}", reply.at("/turn"))).await;
    assert_eq!(read.code(), "404 not-found");
    // A turn that waits is stored, even if the request says ephemeral.
    let reply = world.submit("", r#"{"calls":[{"id":"2","tool":"ask","arguments":{}}],"ephemeral":true}"#).await;
    assert_eq!(reply.json()["ephemeral"], false);
}

#[tokio::test]
async fn list_by_state_reads_only_the_turns_in_it() {
    let store = Arc::new(MortalStore::new(Arc::new(store::MemoryStore::new())));
    let world = TestServer::with_store(store.clone());
    for (id, tool) in [("a", "echo"), ("b", "pay"), ("c", "echo"), ("d", "echo")] {
        let body = format!(r#"{{"calls":[{{"id":"{id}","tool":"{tool}","arguments":{{}}}}]}}"#);
        assert!(world.submit("?wait_ms=60000", &body).await.status.is_success());
    }
    for (state, count) in [("open", 1), ("settled", 3), ("aborted", 0)] {
        store.read_of_logs();
        let listed = world.get("alice", &format!("/v1/conversations/c/turns?state={state}")).await.json();
        assert_eq!((listed["turns"].as_array().map(Vec::len), store.read_of_logs()), (Some(count), count), "{state}");
    }
}

#[tokio::test]
async fn wait_ends_at_the_requested_state_or_time() {
    let world = TestServer::new();
    let reply = world.submit("", r#"{"calls":[{"id":"1","tool":"slow","arguments":{}}]}"#).await;
    assert_eq!(reply.json()["running"], true);
    let path = format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
    let wait = format!("{path}?wait_ms=99999999");
    let waiting = world.get("alice", &wait);
    let let_go = async { world.shelf.slow.add_permits(1) };
    let (reply, ()) = tokio::join!(waiting, let_go);
    assert_eq!(reply.at("/state"), "settled");

    let reply = world.submit("?wait_ms=60000", r#"{"calls":[{"id":"2","tool":"ask","arguments":{}}]}"#).await;
    assert_eq!((reply.at("/state"), reply.json()["running"].clone()), ("open".into(), false.into()));
    let path = format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
    let wait = format!("{path}?wait_ms=99999999");
    let waiting = world.get("alice", &wait);
    // This is the maximum wait.
    let pass = async { world.advance(60) };
    let (reply, ()) = tokio::join!(waiting, pass);
    assert_eq!(reply.at("/state"), "open");
    assert_eq!(world.get("alice", &format!("{path}?wait_ms=60000&until=quiet")).await.at("/state"), "open");
}

#[tokio::test]
async fn disconnect_during_a_wait_leaves_nothing_behind() {
    let world = TestServer::new();
    let turn = world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await.at("/turn");
    let path = format!("/v1/conversations/c/turns/{turn}?wait_ms=60000");
    let waiting = tokio::spawn(world.router.clone().oneshot(request("GET", &path, "alice", None)));
    while world.host.handle().turns_in_memory() == 0 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.is_err());
    assert_eq!(world.host.handle().turns_in_memory(), 0);
}

#[tokio::test]
async fn cancelled_turn_gives_every_call_an_outcome() {
    let world = TestServer::new();
    let calls = r#"{"calls":[{"id":"1","tool":"slow","arguments":{}},{"id":"2","tool":"ask","arguments":{}}]}"#;
    let turn = world.submit("", calls).await.at("/turn");
    let path = format!("/v1/conversations/c/turns/{turn}/cancel");
    assert_eq!(world.post("bob", &path, "").await.code(), "403 not-allowed");
    assert_eq!(world.post("eve", &path, "").await.code(), "404 not-found");
    for _ in 0..2 {
        let reply = world.post("alice", &path, "").await;
        assert_eq!((reply.status.as_u16(), reply.at("/state")), (200, "cancelled".into()));
        assert_eq!(
            (reply.at("/calls/0/outcome"), reply.at("/calls/1/outcome")),
            ("cancelled".into(), "cancelled".into())
        );
        assert_eq!(reply.at("/calls/0/content/error/code"), "cancelled");
    }
}

#[tokio::test]
async fn result_appears_once_in_an_answer() {
    let world = TestServer::new();
    let body = r#"{"calls":[{"id":"1","tool":"echo","arguments":{}},{"id":"2","tool":"unknown","arguments":{}}]}"#;
    let turn = world.submit("?wait_ms=60000", body).await;
    let content = &turn.json()["calls"][0]["content"];
    assert_eq!((turn.at("/state").as_str(), &content["ok"]), ("settled", &serde_json::json!(true)));
    assert_eq!(turn.text.matches(r#""result":"#).count(), 1, "{}", turn.text);
    assert_eq!(turn.text.matches(r#""unknown_tool""#).count(), 1, "{}", turn.text);
}

#[tokio::test]
async fn unread_turns_of_a_principal_are_limited() {
    let world = TestServer::with(ServerSettings { unread_bytes: 1_000, ..ServerSettings::default() });
    let read = async |text: &str| {
        let body = format!(r#"{{"calls":[{{"id":"{}","tool":"echo","arguments":{{"t":"{text}"}}}}]}}"#, text.len());
        let turn = world.submit("?wait_ms=60000", &body).await.at("/turn");
        format!("/v1/conversations/c/turns/{turn}")
    };
    let (large, small) = (read(&"x".repeat(2_000)).await, read("x").await);
    let open = async |path: &str| world.router.clone().oneshot(request("GET", path, "alice", None)).await.unwrap();
    let unread = open(&large).await;
    assert_eq!(unread.status(), 200, "one turn of any size");
    let refused = world.get("alice", &small).await;
    assert_eq!((refused.code().as_str(), refused.headers["retry-after"].to_str().unwrap()), ("429 busy", "5"));
    assert!(refused.at("/detail").contains("`unread_bytes`"), "{}", refused.text);
    let submitted = world.submit("", r#"{"calls":[{"id":"new","tool":"ask","arguments":{}}]}"#).await;
    assert_eq!((submitted.code().as_str(), world.host.handle().counts().open_turns), ("429 busy", 0));
    assert_eq!(world.get("root", &large).await.status, 200, "a neighbour");
    let bytes = unread.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(world.get("alice", &small).await.code(), "429 busy", "its bytes are still in memory");
    drop(bytes);
    let both = [open(&small).await, open(&small).await];
    assert!(both.iter().all(|response| response.status() == 200));
}

#[tokio::test]
async fn repeated_submission_counts_as_unread_before_it_is_written() {
    let body = format!(r#"{{"calls":[{{"id":"a","tool":"echo","arguments":{{"t":"{}"}}}}]}}"#, "x".repeat(2_000));
    let one = TestServer::new().submit("?wait_ms=60000", &body).await.text.len();
    let world = TestServer::with(ServerSettings { unread_bytes: one + 100, ..ServerSettings::default() });
    assert_eq!(world.submit("?wait_ms=60000", &body).await.status, 201);
    let submit = || request("POST", "/v1/conversations/c/turns", "alice", Some(&body));
    let unread = world.router.clone().oneshot(submit()).await.unwrap();
    assert_eq!(unread.status(), 200);
    assert_eq!(world.submit("", &body).await.code(), "429 busy");
    drop(unread);
    assert_eq!(world.submit("", &body).await.status, 200);
}

#[tokio::test]
async fn removed_turn_is_reported_with_time_and_rule() {
    let store = Arc::new(store::MemoryStore::new());
    let world = TestServer::with_store(store.clone());
    let body = r#"{"calls":[{"id":"1","tool":"echo","arguments":{"a":1}}]}"#;
    let turn = world.submit("?wait_ms=60000", body).await.at("/turn");
    let path = format!("/v1/conversations/c/turns/{turn}");
    world.submit("?wait_ms=60000", r#"{"calls":[{"id":"2","tool":"ask","arguments":{}}]}"#).await;
    world.advance(24 * 60 * 60);
    let rules = RetentionRules { turns: Some(Span::from_secs(24 * 60 * 60)), ..RetentionRules::default() };
    let pruned =
        dispatch::prune(store.clone(), store.clone(), store, rules, world.clock.now(), Mode::Remove).await.unwrap();
    assert_eq!(pruned.removed.values().map(|amount| amount.turns).sum::<u64>(), 1, "the open turn stays");

    let mut seen = String::new();
    for (who, method, path, body) in [
        ("alice", "GET", path.clone(), None),
        ("alice", "POST", format!("{path}/cancel"), None),
        ("alice", "POST", "/v1/conversations/c/turns".to_owned(), Some(body)),
        (
            "alice",
            "POST",
            "/v1/conversations/c/turns".to_owned(),
            Some(r#"{"calls":[{"id":"1","tool":"pay","arguments":{}}]}"#),
        ),
        ("bob", "GET", path.clone(), None),
        ("eve", "GET", path.clone(), None),
        ("alice", "GET", path.replace("/c/", "/d/"), None),
    ] {
        let reply = world.send(request(method, &path, who, body)).await;
        let json = reply.json();
        let members = ["at", "rule", "call"].map(|name| json[name].as_str().unwrap_or("-").to_owned());
        seen += &format!("{who} {method} {}\n  {}\n", reply.code(), members.join(", "));
    }
    expect![[r#"
        alice GET 410 removed
          2026-01-02T00:00:00.000Z, ended turns are kept for 1 day, -
        alice POST 410 removed
          2026-01-02T00:00:00.000Z, ended turns are kept for 1 day, -
        alice POST 410 removed
          2026-01-02T00:00:00.000Z, ended turns are kept for 1 day, 1
        alice POST 410 removed
          2026-01-02T00:00:00.000Z, ended turns are kept for 1 day, 1
        bob GET 410 removed
          2026-01-02T00:00:00.000Z, ended turns are kept for 1 day, -
        eve GET 404 not-found
          -, -, -
        alice GET 404 not-found
          -, -, -
    "#]]
    .assert_eq(&seen);
}
