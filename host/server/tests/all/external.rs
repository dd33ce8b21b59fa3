//! External waits: who may send the result, by which way, and how often.

use axum::body::Body;
use domain::Span;
use expect_test::expect;
use serde_json::{Value, json};
use toolgate_server::ServerSettings;

use crate::browsers::Browser;
use crate::world::{Reply, TestServer, request};

/// A world with a call that waits for a string, under the name of a signal if there is one.
async fn waiting(signal: Option<&str>) -> (TestServer, Value) {
    let world = TestServer::new();
    let wait = begin(&world, "1", signal).await;
    (world, wait)
}

/// Submits a call, and returns its suspension.
async fn begin(world: &TestServer, call: &str, signal: Option<&str>) -> Value {
    let arguments = signal.map_or_else(|| json!({}), |name| json!({"city": name}));
    let turn = submit(world, call, arguments).await;
    assert_eq!(turn["pending"].as_array().map(Vec::len), Some(1), "{turn:#}");
    turn["pending"][0].clone()
}

/// Submits a call, and returns its turn when nothing runs.
async fn submit(world: &TestServer, call: &str, arguments: Value) -> Value {
    let calls = json!({"calls": [{"id": call, "tool": "receive", "arguments": arguments}]});
    let turn = world.submit("", &calls.to_string()).await;
    let path = format!("/v1/conversations/c/turns/{}", turn.at("/turn"));
    loop {
        let turn = world.get("alice", &path).await.json();
        if turn["running"] == false {
            return turn;
        }
        tokio::task::yield_now().await;
    }
}

fn id(wait: &Value) -> &str {
    wait["suspension"].as_str().unwrap()
}

async fn link(world: &TestServer, wait: &Value, body: &str) -> String {
    world.post("alice", &format!("/v1/suspensions/{}/links", id(wait)), body).await.at("/url")
}

/// Sends a result to a link, without a token.
async fn send(world: &TestServer, link: &str, result: &str) -> Reply {
    world.post("", link, result).await
}

async fn signal(world: &TestServer, who: &str, name: &str, result: &str) -> Reply {
    world.post(who, &format!("/v1/conversations/c/signals/{name}"), result).await
}

const RESULT: &str = r#"{"decision":"result","data":"done"}"#;

#[tokio::test]
async fn wait_says_what_the_system_needs_and_asks_nobody() {
    let (world, wait) = waiting(Some("job")).await;
    let shown = json!({
        "kind": wait["kind"], "prompt": wait["prompt"], "allowed": wait["allowed"], "signal": wait["signal"],
        "metadata": wait["metadata"], "response_schema": wait["response_schema"], "needs": wait["needs"],
        "on_expiry": wait["on_expiry"], "step": wait["step"],
    });
    let expected = json!({
        "kind": "external", "prompt": "The job ends", "allowed": ["result"], "signal": "job", "metadata": {"job": 7},
        "response_schema": {"type": "string"}, "needs": [], "on_expiry": "continue", "step": 1,
    });
    assert_eq!(shown, expected);
    for who in ["alice", "bob", "root"] {
        for query in ["", "?mine=true", "?kind=approval"] {
            let listed = world.get(who, &format!("/v1/pending{query}")).await.json();
            assert_eq!(listed["suspensions"], json!([]), "{who} {query}");
        }
        for query in ["kind=external".to_owned(), format!("turn={}", wait["turn"].as_str().unwrap())] {
            let listed = world.get(who, &format!("/v1/pending?{query}")).await.json();
            assert_eq!(listed["suspensions"][0]["suspension"], wait["suspension"], "{who} {query}");
        }
        assert_eq!(world.get(who, "/v1/pending/counts").await.json()["open"], 0, "{who}");
    }
    assert_eq!(world.get("eve", "/v1/pending?kind=external").await.json()["suspensions"], json!([]));
}

#[tokio::test]
async fn only_its_caller_and_an_admin_send_the_result() {
    let (world, wait) = waiting(Some("job")).await;
    let resolve = |who: &'static str| world.resolve(who, id(&wait), RESULT);
    for (who, code) in [
        ("bob", "403 not-allowed"),
        ("carol", "403 not-allowed"),
        ("eve", "409 stale"),
        ("scoped", "409 stale"),
        ("nobody", "401 unauthorized"),
        ("", "401 unauthorized"),
    ] {
        assert_eq!(resolve(who).await.code(), code, "{who}");
    }
    for (who, code) in [
        ("bob", "403 not-allowed"),
        ("carol", "404 not-found"),
        ("eve", "404 not-found"),
        ("scoped", "404 not-found"),
        ("", "401 unauthorized"),
    ] {
        assert_eq!(signal(&world, who, "job", "\"done\"").await.code(), code, "{who}");
    }
    assert_eq!(resolve("root").await.at("/state"), "result");
    let (world, wait) = waiting(None).await;
    assert_eq!(world.resolve("alice", id(&wait), RESULT).await.at("/state"), "result");
}

#[tokio::test]
async fn result_is_marked_as_untrusted_wherever_it_appears() {
    let (world, wait) = waiting(None).await;
    let turn = wait["turn"].as_str().unwrap();
    assert_eq!(world.resolve("alice", id(&wait), RESULT).await.status, 200);
    let closed = world.get("alice", &format!("/v1/suspensions/{}", id(&wait))).await.json()["closed"].clone();
    assert_eq!((&closed["data"], &closed["trusted"]), (&json!("done"), &json!(false)), "{closed:#}");
    let path = format!("/v1/conversations/c/turns/{turn}?wait_ms=60000");
    let call = world.get("alice", &path).await.json()["calls"][0].clone();
    assert_eq!((&call["content"]["result"], &call["trusted"]), (&json!("done"), &json!(false)), "{call:#}");
}

#[tokio::test]
async fn result_that_does_not_fit_is_refused_with_its_place() {
    let (world, wait) = waiting(Some("job")).await;
    let link = link(&world, &wait, "{}").await;
    let by_link = send(&world, &link, "7").await;
    let by_name = signal(&world, "alice", "job", "7").await;
    let by_id = world.resolve("alice", id(&wait), r#"{"decision":"result","data":7}"#).await;
    for refused in [by_link, by_name, by_id] {
        assert_eq!((refused.code().as_str(), refused.at("/errors/0/pointer")), ("422 invalid", "/data".to_owned()));
    }
    for (body, code) in [("{\"a\":1,\"a\":2}", "400 bad-json"), ("", "400 bad-json"), ("1 2", "400 bad-json")] {
        assert_eq!(send(&world, &link, body).await.code(), code, "{body}");
        assert_eq!(signal(&world, "alice", "job", body).await.code(), code, "{body}");
    }
    let large = format!("\"{}\"", "x".repeat(8 << 20));
    assert_eq!(send(&world, &link, &large).await.code(), "413 too-large");
    assert_eq!(signal(&world, "alice", "job", &large).await.code(), "413 too-large");
    assert_eq!(world.resolve("alice", id(&wait), r#"{"decision":"approve"}"#).await.code(), "422 invalid");
    assert_eq!(send(&world, &link, "\"done\"").await.status, 200, "a refused result does not use the link up");
}

#[tokio::test]
async fn link_takes_one_result_without_a_token() {
    let (world, wait) = waiting(None).await;
    let (link, other) = (link(&world, &wait, "{}").await, link(&world, &wait, "{}").await);
    assert!(link.starts_with("/v1/links/"), "{link}");
    let all = futures::future::join_all((0..4).map(|n| {
        let (world, link) = (&world, &link);
        async move { send(world, link, &format!("\"{n}\"")).await.code() }
    }))
    .await;
    let mut codes = all.clone();
    codes.sort();
    assert_eq!(codes, ["200", "409 stale", "409 stale", "409 stale"]);
    let won = all.iter().position(|code| code == "200").unwrap();
    let again = send(&world, &link, &format!("\"{won}\"")).await;
    assert_eq!(again.json()["replayed"], true, "the same system may repeat its request: {}", again.text);
    assert_eq!(send(&world, &other, "\"other\"").await.code(), "409 stale");
    let read = world.get("root", &format!("/v1/suspensions/{}", id(&wait))).await;
    assert_eq!((read.at("/closed/by"), read.at("/closed/via")), ("alice".into(), "link".into()));
    let audit = world.get("root", "/v1/audit?limit=500").await;
    assert!(!audit.text.contains(link.strip_prefix("/v1/links/").unwrap()), "the audit has no link");
    let actions: Vec<String> = audit.json()["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", entry["action"].as_str().unwrap(), entry["by"].as_str().unwrap_or("-")))
        .filter(|entry| ["link.", "result"].iter().any(|begin| entry.starts_with(begin)))
        .collect();
    assert_eq!(actions, ["link.made alice", "link.made alice", "link.used alice", "result alice"]);
}

#[tokio::test]
async fn result_for_a_link_has_the_time_of_a_log_in() {
    let log_in_body = Span::from_millis(1);
    let world =
        TestServer::with(ServerSettings { body: Span::from_secs(3600), log_in_body, ..ServerSettings::default() });
    let wait = begin(&world, "1", None).await;
    let mut half = request("POST", &link(&world, &wait, "{}").await, "", Some(""));
    *half.body_mut() = Body::from_stream(futures::stream::pending::<std::io::Result<String>>());
    assert_eq!(world.send(half).await.code(), "408 too-slow");
    assert_eq!(world.get("alice", &format!("/v1/suspensions/{}", id(&wait))).await.at("/state"), "open");
}

#[tokio::test]
async fn link_that_opened_a_session_takes_no_result() {
    let (world, wait) = waiting(None).await;
    let link = link(&world, &wait, "{}").await;
    let opened = world.post("", "/v1/session/link", &json!({"link": link}).to_string()).await;
    let browser = Browser::of(&opened);
    assert_eq!(send(&world, &link, "\"done\"").await.code(), "409 link-used");
    let resolve = format!("/v1/suspensions/{}/resolve", id(&wait));
    assert_eq!(world.send(browser.own("POST", &resolve, Some(RESULT))).await.at("/state"), "result");
}

#[tokio::test]
async fn link_to_a_client_call_takes_no_result() {
    let world = TestServer::new();
    world.submit("", r#"{"calls":[{"id":"l","tool":"locate","arguments":{}}]}"#).await;
    let asked = world.get("root", "/v1/pending?kind=client_exec").await.at("/suspensions/0/suspension");
    let made = world.post("root", &format!("/v1/suspensions/{asked}/links"), "{}").await.at("/url");
    let refused = send(&world, &made.replace("/link/", "/v1/links/"), "\"here\"").await;
    assert_eq!((refused.code().as_str(), refused.at("/errors/0/pointer").as_str()), ("422 invalid", "/decision"));
    assert_eq!(world.get("root", &format!("/v1/suspensions/{asked}")).await.at("/state"), "open");
}

#[tokio::test]
async fn late_forged_or_revoked_link_is_refused() {
    let (world, wait) = waiting(None).await;
    let short = link(&world, &wait, r#"{"ttl_ms":1000}"#).await;
    let long = link(&world, &wait, "{}").await;
    world.advance(1);
    assert_eq!(send(&world, &short, "\"done\"").await.code(), "401 unauthorized", "it has expired");
    let changed = format!("{}{}", &long[..long.len() - 1], if long.ends_with('A') { 'E' } else { 'A' });
    for wrong in [&changed, "/v1/links/x", &format!("{long}x")] {
        assert_eq!(send(&world, wrong, "\"done\"").await.code(), "401 unauthorized", "{wrong}");
    }
    world.revoke("alice");
    assert_eq!(send(&world, &long, "\"done\"").await.code(), "401 unauthorized", "its caller is revoked");
    assert_eq!(world.get("root", &format!("/v1/suspensions/{}", id(&wait))).await.at("/state"), "open");
}

#[tokio::test]
async fn only_who_may_send_the_result_makes_a_link() {
    let (world, wait) = waiting(None).await;
    let path = format!("/v1/suspensions/{}/links", id(&wait));
    for (who, body, code) in [
        ("bob", "{}", "403 not-allowed"),
        ("carol", "{}", "403 not-allowed"),
        ("eve", "{}", "404 not-found"),
        ("scoped", "{}", "404 not-found"),
        ("alice", r#"{"principal":"root"}"#, "403 not-allowed"),
        ("alice", r#"{"principal":"unknown"}"#, "403 not-allowed"),
        ("root", r#"{"principal":"carol"}"#, "422 invalid"),
        ("root", r#"{"principal":"bob"}"#, "200"),
        ("root", "{}", "200"),
    ] {
        assert_eq!(world.post(who, &path, body).await.code(), code, "{who} {body}");
    }
    world.submit("", r#"{"calls":[{"id":"p","tool":"pay","arguments":{}}]}"#).await;
    let asked = world.get("root", "/v1/pending?kind=approval").await.at("/suspensions/0/suspension");
    assert_eq!(world.post("alice", &format!("/v1/suspensions/{asked}/links"), "{}").await.code(), "403 not-allowed");
    // The holder of a link to an approval answers on its page.
    let for_bob =
        world.post("root", &format!("/v1/suspensions/{asked}/links"), r#"{"principal":"bob"}"#).await.at("/url");
    let posted = for_bob.replace("/link/", "/v1/links/");
    assert_eq!(send(&world, &posted, "\"approve\"").await.code(), "422 invalid", "nobody approves without a session");
    let by_bob = world.post("root", &path, r#"{"principal":"bob"}"#).await.at("/url");
    assert_eq!(send(&world, &by_bob, "\"done\"").await.at("/state"), "result");
}

#[tokio::test]
async fn signal_reaches_the_open_wait_of_its_name() {
    let (world, first) = waiting(Some("job")).await;
    let second = begin(&world, "2", Some("other")).await;
    begin(&world, "3", None).await;
    assert_eq!(signal(&world, "alice", "unknown", "\"x\"").await.code(), "404 not-found");
    assert_eq!(signal(&world, "alice", "a%20b", "\"x\"").await.code(), "400 bad-request");
    assert_eq!(signal(&world, "alice", "job", "\"done\"").await.at("/suspension"), id(&first));
    let late = signal(&world, "alice", "job", "\"done\"").await;
    assert_eq!(
        (late.code().as_str(), late.at("/state").as_str(), late.at("/by").as_str()),
        ("409 stale", "result", "alice")
    );
    // The name is free again.
    let third = begin(&world, "4", Some("job")).await;
    assert_eq!(signal(&world, "root", "job", "\"done\"").await.at("/suspension"), id(&third));
    assert_eq!(signal(&world, "alice", "other", "\"done\"").await.at("/suspension"), id(&second));
}

#[tokio::test]
async fn two_open_waits_of_a_conversation_never_share_a_name() {
    let (world, first) = waiting(Some("job")).await;
    let calls: Vec<Value> =
        (2..6).map(|n| json!({"id": n.to_string(), "tool": "receive", "arguments": {"city": "both"}})).collect();
    let turn = world.submit("", &json!({"calls": calls}).to_string()).await.at("/turn");
    let refused = submit(&world, "9", json!({"city": "job"})).await;
    expect![[r#"{"ok":false,"error":{"code":"tool_failed","message":"another call of the conversation waits for a signal of the name `job`"}}"#]]
        .assert_eq(&refused["calls"][0]["content"].to_string());
    assert_eq!(world.get("alice", &format!("/v1/suspensions/{}", id(&first))).await.at("/state"), "open");
    let path = format!("/v1/conversations/c/turns/{turn}");
    let turn = loop {
        let turn = world.get("alice", &path).await.json();
        if turn["running"] == false {
            break turn;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(turn["pending"].as_array().map(Vec::len), Some(1), "{turn:#}");
}

#[tokio::test]
async fn wait_expires_and_its_call_continues() {
    let (world, wait) = waiting(Some("job")).await;
    let link = link(&world, &wait, r#"{"ttl_ms":604800000}"#).await;
    world.advance(24 * 60 * 60);
    let late = send(&world, &link, "\"done\"").await;
    assert_eq!((late.code().as_str(), late.at("/state").as_str()), ("409 stale", "expired"));
    assert_eq!(signal(&world, "alice", "job", "\"done\"").await.code(), "409 stale");
    let path = format!("/v1/conversations/c/turns/{}?wait_ms=60000", wait["turn"].as_str().unwrap());
    let call = world.get("alice", &path).await.json()["calls"][0].clone();
    assert_eq!((&call["content"]["result"], &call["trusted"]), (&json!("Expired"), &json!(true)), "{call:#}");
}
