//! A host that ends soon, and a host that cannot read its tokens.

use crate::world::TestServer;

const TURN: &str = r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#;

#[tokio::test]
async fn drained_host_refuses_turns_and_is_not_ready() {
    let world = TestServer::new();
    let waits = world.submit("", r#"{"calls":[{"id":"p","tool":"pay","arguments":{"city":"Bern"}}]}"#).await;
    let drained = world.post("root", "/v1/drain", "").await;
    assert_eq!((drained.code(), drained.json()["draining"].as_bool()), ("200".to_owned(), Some(true)));
    let resolve = format!("/v1/suspensions/{}/resolve", waits.at("/pending/0/suspension"));
    for (who, path, body) in [
        ("alice", "/v1/conversations/c/turns", TURN),
        (
            "alice",
            "/v1/conversations/c/turns",
            r#"{"ephemeral":true,"calls":[{"id":"2","tool":"echo","arguments":{}}]}"#,
        ),
        ("bob", &resolve, r#"{"decision":"approve"}"#),
    ] {
        let refused = world.post(who, path, body).await;
        assert_eq!(refused.code(), "503 draining", "{path}");
        assert_eq!(refused.headers["retry-after"], "5");
        assert_eq!(refused.json()["retry_after"], 5);
    }
    assert_eq!(world.get("", "/readyz").await.code(), "503 draining");
    for path in ["/healthz", "/v1/pending", "/v1/conversations/c/turns"] {
        assert_eq!(world.get("alice", path).await.code(), "200", "reads go on: {path}");
    }
}

#[tokio::test]
async fn unreadable_tokens_are_no_wrong_tokens() {
    let world = TestServer::new();
    world.make_tokens_readable(false);
    let log_in = world.post("", "/v1/session", r#"{"token":"alice"}"#).await;
    assert_eq!(log_in.code(), "503 store-failed");
    for who in ["", "alice", "nobody"] {
        assert_eq!(world.get(who, "/v1/tools").await.code(), "503 store-failed", "{who}");
    }
    assert_eq!(world.get("", "/healthz").await.code(), "200");
    assert_eq!(world.get("", "/readyz").await.code(), "503 store-failed");
    world.make_tokens_readable(true);
    assert_eq!(world.get("", "/readyz").await.code(), "200");
    assert_eq!(world.get("alice", "/v1/tools").await.code(), "200");
    assert_eq!(world.get("nobody", "/v1/tools").await.code(), "401 unauthorized");
}
