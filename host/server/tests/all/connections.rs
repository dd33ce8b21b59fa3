//! Slow and silent clients. Each limit on a connection is reached from a raw socket, and a neighbour is not affected.
//! Tests never sleep; they wait for the host to act.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use dispatch::Quota;
use domain::Span;
use tokio::net::TcpListener;
use toolgate_server::{Connections, ServerSettings};

use crate::world::{TestServer, request};

/// Longer than any test of this file takes.
const NEVER: Span = Span::from_secs(3600);

pub(crate) fn patient() -> Connections {
    Connections { head: NEVER, stall: NEVER, ..Connections::default() }
}

/// Serves the world on a port of its own, until the test ends.
async fn serve(world: &TestServer, bounds: Connections) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(toolgate_server::serve(listener, world.router.clone(), bounds, None, std::future::pending()));
    address
}

/// Runs blocking work on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn head(method: &str, path: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer alice\r\n{more}\r\n")
}

/// Sends this and reads until the host closes the connection.
async fn exchange(address: SocketAddr, sent: Vec<u8>) -> String {
    blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(&sent).unwrap();
        until_closed(&mut connection)
    })
    .await
}

/// Reads until the host closes or resets the connection.
pub(crate) fn until_closed(connection: &mut TcpStream) -> String {
    let mut said = Vec::new();
    match connection.read_to_end(&mut said) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("{error}"),
    }
    String::from_utf8(said).unwrap()
}

async fn assert_a_neighbour_is_served(address: SocketAddr) {
    let answer = exchange(address, head("GET", "/v1/tools", "connection: close\r\n").into_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_heads_and_idle_connections_are_closed() {
    let world = TestServer::new();
    let address = serve(&world, Connections { head: Span::from_millis(100), ..patient() }).await;
    for begun in ["", "GET /v1/tools HTTP/1.1\r\nx-slow: "] {
        assert_eq!(exchange(address, begun.into()).await, "");
    }
    let idle = exchange(address, head("GET", "/v1/tools", "").into_bytes()).await;
    assert!(idle.starts_with("HTTP/1.1 200"), "{idle}");
    assert_a_neighbour_is_served(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_do_not_block_the_next_one() {
    let world = TestServer::new();
    let address = serve(&world, Connections { max: 3, ..patient() }).await;
    let mut silent = blocking(move || {
        let mut silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        silent.iter_mut().for_each(|connection| connection.write_all(b"GET / HTTP").unwrap());
        silent
    })
    .await;
    assert_a_neighbour_is_served(address).await;
    // The connections that had waited longest were closed. The others fit beside the neighbour.
    blocking(move || silent.drain(..18).for_each(|mut connection| assert_eq!(until_closed(&mut connection), ""))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_log_ins_block_nobody() {
    let world = TestServer::with(ServerSettings { body: NEVER, log_in_body: NEVER, ..ServerSettings::default() });
    let address = serve(&world, Connections { max: 3, ..patient() }).await;
    let half = "POST /v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n{\"token\":";
    let _half_sent = blocking(move || {
        let open = || TcpStream::connect(address).unwrap();
        let mut connections: Vec<_> = std::iter::repeat_with(open).take(20).collect();
        connections.iter_mut().for_each(|connection| connection.write_all(half.as_bytes()).unwrap());
        connections
    })
    .await;
    for _ in 0..5 {
        assert_a_neighbour_is_served(address).await;
    }
}

/// Sends this, and reads one response on a connection that stays open.
fn asked(connection: &mut TcpStream, sent: &str) -> String {
    connection.write_all(sent.as_bytes()).unwrap();
    let mut reader = BufReader::new(connection);
    let mut said = String::new();
    while !said.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let length = said.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    said + &String::from_utf8(body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_close_no_authenticated_connection() {
    let world = TestServer::with(ServerSettings { body: NEVER, ..ServerSettings::default() });
    let address = serve(&world, Connections { max: 4, ..patient() }).await;
    let (list, body) = (head("GET", "/v1/tools", ""), r#"{"calls":[{"id":"1","tool":"echo","arguments":{}}]}"#);
    let length = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let submit = head("POST", "/v1/conversations/c/turns", &length);
    blocking(move || {
        let [mut idle, mut sending] = [(); 2].map(|()| TcpStream::connect(address).unwrap());
        for connection in [&mut idle, &mut sending] {
            assert!(asked(connection, &list).starts_with("HTTP/1.1 200"));
        }
        let (begun, rest) = body.split_at(10);
        sending.write_all((submit + begun).as_bytes()).unwrap();
        let mut silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        // Each new one replaces the first of them that is left.
        silent.drain(..16).for_each(|mut connection| assert_eq!(until_closed(&mut connection), ""));
        assert!(asked(&mut idle, &list).starts_with("HTTP/1.1 200"));
        assert!(asked(&mut sending, rest).starts_with("HTTP/1.1 201"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_in_body_has_its_own_time_limit() {
    let world = TestServer::with(ServerSettings {
        body: NEVER,
        log_in_body: Span::from_millis(100),
        ..ServerSettings::default()
    });
    let address = serve(&world, patient()).await;
    let half = "POST /v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                connection: close\r\ncontent-length: 100\r\n\r\n{\"token\":";
    let answer = blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(half.as_bytes()).unwrap();
        let mut status = [0; 12];
        connection.read_exact(&mut status).unwrap();
        status
    })
    .await;
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_a_neighbour_is_served(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_body_is_refused_without_effect() {
    let world = TestServer::with(ServerSettings { body: Span::from_millis(100), ..ServerSettings::default() });
    let address = serve(&world, patient()).await;
    let more = "content-type: application/json\r\ncontent-length: 1000\r\n";
    let sent = head("POST", "/v1/conversations/c/turns", more) + r#"{"calls":["#;
    let answer = blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        connection.write_all(sent.as_bytes()).unwrap();
        let mut buffer = [0; 20_000];
        let mut said = String::new();
        while !said.contains("too-slow") {
            let read = connection.read(&mut buffer).unwrap();
            assert_ne!(read, 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        said
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("application/problem+json"), "{answer}");
    assert_a_neighbour_is_served(address).await;
    assert_eq!(world.host.handle().counts().open_turns, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_body_does_not_hide_the_error() {
    let world = TestServer::with(ServerSettings { turn_bytes: 1000, ..ServerSettings::default() });
    let address = serve(&world, patient()).await;
    let body = vec![b' '; 24 << 20];
    let length = format!("content-length: {}\r\n", body.len());
    for (who, status) in [("alice", "413"), ("nobody", "401")] {
        let head = head("POST", "/v1/conversations/c/turns", &format!("content-type: application/json\r\n{length}"));
        let head = head.replace("Bearer alice", &format!("Bearer {who}"));
        // Sends everything before it reads, as most clients do.
        let answer = exchange(address, [head.as_bytes(), &body].concat()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_head_is_refused() {
    let world = TestServer::new();
    let address = serve(&world, Connections { head_bytes: 9_000, ..patient() }).await;
    let large = format!("x-large: {}\r\nconnection: close\r\n", "x".repeat(10_000));
    let answer = exchange(address, head("GET", "/v1/tools", &large).into_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let fits = format!("x-large: {}\r\nconnection: close\r\n", "x".repeat(7_000));
    let answer = exchange(address, head("GET", "/v1/tools", &fits).into_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_reads_nothing_is_disconnected() {
    let world = TestServer::new();
    let address = serve(&world, Connections { stall: Span::from_millis(100), ..patient() }).await;
    blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        let asked = head("GET", "/openapi.json", "");
        // More responses than all buffers hold. Then the host stops reading, and later it disconnects.
        loop {
            if let Err(error) = connection.write_all(asked.as_bytes()) {
                assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
                return;
            }
        }
    })
    .await;
    assert_a_neighbour_is_served(address).await;
}

#[tokio::test]
async fn concurrent_requests_of_one_principal_are_limited() {
    let world = TestServer::with_quota(ServerSettings::default(), Quota { requests: 1, ..Quota::default() });
    let turn = world.submit("", r#"{"calls":[{"id":"1","tool":"ask","arguments":{}}]}"#).await.at("/turn");
    let wait = format!("/v1/conversations/c/turns/{turn}?wait_ms=60000");
    let router = world.router.clone();
    let waiting = tokio::spawn(tower::ServiceExt::oneshot(router, request("GET", &wait, "alice", None)));
    while world.host.handle().turns_in_memory() == 0 {
        tokio::task::yield_now().await;
    }
    let refused = world.get("alice", "/v1/tools").await;
    assert_eq!((refused.code().as_str(), refused.headers["retry-after"].to_str().unwrap()), ("429 busy", "5"));
    assert_eq!(world.get("eve", "/v1/tools").await.status, 200);
    waiting.abort();
    assert!(waiting.await.is_err());
    assert_eq!(world.get("alice", "/v1/tools").await.status, 200, "the abandoned request is not counted");
}
