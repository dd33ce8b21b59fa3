//! While plugins are being loaded, an unknown name is no error of the call, and a list of tools is not complete.

use std::sync::atomic::Ordering;

use crate::world::TestServer;

const UNKNOWN: &str = r#"{"calls":[{"id":"a","tool":"echo","arguments":{}},{"id":"b","tool":"ecko","arguments":{}}]}"#;
const KNOWN: &str = r#"{"calls":[{"id":"c","tool":"echo","arguments":{}}]}"#;

#[tokio::test]
async fn an_unknown_tool_is_final_once_all_plugins_are_loaded() {
    let world = TestServer::new();
    world.shelf.left.store(2, Ordering::SeqCst);
    let reply = world.submit("", UNKNOWN).await;
    assert_eq!((reply.status.as_u16(), reply.at("/code")), (503, "loading".to_owned()));
    assert_eq!(reply.headers["retry-after"], "1");
    assert!(reply.at("/detail").contains("\"ecko\"") && reply.at("/detail").contains("2 left"), "{}", reply.text);
    assert_eq!(world.get("alice", "/v1/conversations/c/turns").await.status, 404, "nothing was recorded");
    assert_eq!(world.submit("?wait_ms=60000", KNOWN).await.at("/state"), "settled", "other calls run");

    world.shelf.left.store(0, Ordering::SeqCst);
    let reply = world.submit("?wait_ms=60000", UNKNOWN).await;
    assert_eq!(reply.at("/calls/1/content/error/code"), "unknown_tool", "{}", reply.text);
    world.shelf.left.store(1, Ordering::SeqCst);
    let again = world.submit("?wait_ms=60000", UNKNOWN).await;
    assert_eq!((again.status.as_u16(), again.at("/turn")), (200, reply.at("/turn")), "it is recorded");
}

#[tokio::test]
async fn an_incomplete_list_of_tools_is_given_on_request() {
    let world = TestServer::new();
    world.shelf.left.store(1, Ordering::SeqCst);
    let reply = world.get("alice", "/v1/tools?format=openai").await;
    assert_eq!((reply.status.as_u16(), reply.at("/code")), (503, "loading".to_owned()));
    assert_eq!(world.get("alice", "/v1/tools?partial=true").await.status, 200);
    assert_eq!(world.get("root", "/v1/plugins").await.status, 200);
    world.shelf.left.store(0, Ordering::SeqCst);
    assert_eq!(world.get("alice", "/v1/tools?format=openai").await.status, 200);
}

#[tokio::test]
async fn starting_host_is_healthy_and_not_ready() {
    let world = TestServer::new();
    world.shelf.left.store(1, Ordering::SeqCst);
    assert_eq!(world.get("", "/healthz").await.status, 200);
    let reply = world.get("", "/readyz").await;
    assert_eq!((reply.code().as_str(), reply.headers["retry-after"].to_str().unwrap()), ("503 loading", "1"));
    world.shelf.left.store(0, Ordering::SeqCst);
    let ready = world.get("", "/readyz").await;
    assert_eq!((ready.code().as_str(), ready.at("/status").as_str()), ("200", "ok"));
}
