//! Tests with a real listener.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolgate_server::Connections;

use crate::world::TestServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_ends_streams_and_waits_and_then_the_server() {
    let world = TestServer::new();
    let turn = world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await.at("/turn");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (close, closing) = oneshot::channel::<()>();
    let serving =
        tokio::spawn(toolgate_server::serve(listener, world.router.clone(), Connections::default(), None, async {
            closing.await.unwrap_or(());
        }));

    let ask = move |path: String, begun: oneshot::Sender<()>| {
        tokio::task::spawn_blocking(move || {
            let mut connection = TcpStream::connect(address).unwrap();
            let request = format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer alice\r\nconnection: close\r\n\r\n"
            );
            connection.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            let mut first = [0; 1];
            if path.ends_with("events") {
                connection.read_exact(&mut first).unwrap();
                text.push(char::from(first[0]));
            }
            begun.send(()).unwrap();
            connection.read_to_string(&mut text).unwrap();
            text
        })
    };
    let (begun, streaming) = oneshot::channel();
    let stream = ask("/v1/conversations/c/events".to_owned(), begun);
    streaming.await.unwrap();
    let (begun, waiting) = oneshot::channel();
    let wait = ask(format!("/v1/conversations/c/turns/{turn}?wait_ms=60000"), begun);
    waiting.await.unwrap();
    // The stream counts as open, and the wait keeps the turn in memory, before anything closes.
    while world.host.handle().turns_in_memory() == 0 {
        tokio::task::yield_now().await;
    }
    close.send(()).unwrap();
    let (stream, wait) = (stream.await.unwrap(), wait.await.unwrap());
    assert!(stream.contains("event: call.suspended"), "{stream}");
    assert!(wait.starts_with("HTTP/1.1 200") && wait.contains("\"state\":\"open\""), "{wait}");
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_are_counted_by_route_and_never_by_path() {
    let world = TestServer::new();
    world.submit("", r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#).await;
    world.submit("", r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#).await;
    world.get("alice", "/some/strange/path").await;
    assert_eq!(world.get("alice", "/metrics").await.code(), "403 not-allowed");
    let text = world.get("root", "/metrics").await.text;
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
    let route =
        r#"toolgate_http_requests_total{method="POST",route="/v1/conversations/{conversation}/turns",status="201"}"#;
    assert_eq!(line(route), format!("{route} 1"));
    assert_eq!(line(r#"toolgate_turns_submitted_total{how="new"}"#).split(' ').next_back(), Some("1"));
    assert_eq!(line(r#"toolgate_turns_submitted_total{how="replayed"}"#).split(' ').next_back(), Some("1"));
    assert_eq!(line("toolgate_live_tools").split(' ').next_back(), Some("6"));
    assert!(text.contains(r#"route="none",status="404""#) && !text.contains("strange"), "{text}");
}
