//! Allowed requests: the request that the server gets, and the response that the guest gets.

use std::io::Read as _;

use super::server::{Server, pauses_after, says};
use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn url(server: &Server, path: &str) -> String {
    format!("http://api.example.com:{}{path}", server.address.port())
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).expect("to memory");
    encoder.finish().expect("to memory")
}

fn packed(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn server_gets_the_checked_request_and_the_hosts_headers() {
    let server = Server::start(vec![says(OK)]);
    let mut world = Setup::at(server.address).world();
    let port = server.address.port();
    let reply = world.get(&format!("http://API.Example.com:{port}/a/../b%2e?q=1"));
    assert_eq!((reply.status, reply.text()), (200, "ok"));
    let heard = server.heard();
    let lines: Vec<_> = heard.trim_end().split("\r\n").collect();
    let host = format!("host: api.example.com:{port}");
    assert_eq!(lines, ["GET /b%2e?q=1 HTTP/1.1", &host, "accept-encoding: gzip", "connection: close"]);
    assert_eq!(world.asked(), ["api.example.com"], "looked up once");
    assert!(world.log().is_empty());
}

#[test]
fn unsafe_requests_carry_the_hosts_idempotency_key() {
    let server = Server::start((0..5).map(|_| says(OK)).collect());
    let mut world = Setup::at(server.address).world();
    let mut key = |method: &str| {
        let headers = [("idempotency-key", "another plugin's"), ("x-own", "kept")];
        let sent = world.send(request(method, &url(&server, "/"), &headers, ""));
        assert_eq!(sent.expect("an answer").status, 200);
        let heard = server.heard();
        assert!(heard.contains("x-own: kept"));
        let mut keys = heard.lines().filter_map(|line| line.strip_prefix("idempotency-key: ").map(str::to_owned));
        (keys.next(), keys.next())
    };
    // A request that only reads keeps the guest's own headers.
    assert_eq!(key("GET"), (Some("another plugin's".to_owned()), None));
    assert_eq!(key("POST"), (Some("turn_1.call_1/1".to_owned()), None));
    assert_eq!(key("HEAD").1, None);
    assert_eq!(key("PUT"), (Some("turn_1.call_1/2".to_owned()), None));
    assert_eq!(key("POST"), (Some("turn_1.call_1/3".to_owned()), None));
}

#[test]
fn each_request_goes_to_the_address_that_was_checked() {
    // A name that resolves to loopback at the first check, and to a cloud's metadata address afterwards.
    let server = Server::start(vec![says(OK)]);
    let found = vec![vec!["169.254.169.254", "127.0.0.1"], vec!["169.254.169.254"]];
    let mut world = Setup::at(server.address).found(found).world();
    assert_eq!(world.get(&url(&server, "/")).text(), "ok");
    assert!(matches!(world.fails(&url(&server, "/")), Error::DestinationIpProhibited));
    assert_eq!(world.asked().len(), 2);
}

#[test]
fn request_after_a_redirect_is_checked_too() {
    let answer = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(vec![says(answer), says(OK)]);
    let mut world = Setup::at(server.address).world();
    let reply = world.get(&url(&server, "/"));
    assert_eq!(reply.status, 302);
    assert_eq!(reply.headers["location"], "http://169.254.169.254/latest/");
    assert!(matches!(world.fails("http://169.254.169.254/latest/"), Error::HttpRequestDenied));
    server.heard();
    assert_eq!(server.unheard(), 0);
}

#[test]
fn only_gzip_is_unpacked() {
    let server = Server::start(vec![
        says(packed("gzip", &gzip(b"unpacked"))),
        says(packed("br", b"\x0b\x02\x80ok\x03")),
        says("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1234\r\n\r\n"),
        says("HTTP/1.1 304 Not Modified\r\ncontent-encoding: gzip\r\n\r\n"),
        says("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n"),
    ]);
    let mut world = Setup::at(server.address).world();
    let reply = world.get(&url(&server, "/"));
    assert_eq!(reply.text(), "unpacked");
    assert!(!reply.headers.contains_key("content-encoding") && !reply.headers.contains_key("content-length"));
    let reply = world.send(request("GET", &url(&server, "/"), &[("accept-encoding", "br")], "")).expect("an answer");
    assert_eq!((reply.headers["content-encoding"].as_bytes(), reply.body.len()), (&b"br"[..], 6));
    // Without a body, these fields describe the body of another method.
    let reply = world.send(request("HEAD", &url(&server, "/"), &[], "")).expect("an answer");
    assert_eq!(
        (&reply.headers["content-encoding"], &reply.headers["content-length"]),
        (&"gzip".parse().expect("a value"), &"1234".parse().expect("a value"))
    );
    assert!(reply.body.is_empty() && reply.end.is_ok());
    assert_eq!(world.get(&url(&server, "/")).status, 304);
    assert!(world.get(&url(&server, "/")).body.is_empty());
    assert!(server.heard().contains("accept-encoding: gzip"));
    assert!(server.heard().contains("accept-encoding: br"));
}

#[test]
fn host_frames_bodies_and_sends_trailers_after_them() {
    let (tell, heard) = std::sync::mpsc::channel();
    let answer =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n";
    let echo: super::server::Script = Box::new(move |stream| {
        let mut body = [0; 4];
        stream.read_exact(&mut body).expect("a body");
        tell.send(body).expect("the test waits");
        says(answer)(stream);
    });
    let server = Server::start(vec![echo]);
    let mut world = Setup::at(server.address).world();
    let sent = world.send(request("POST", &url(&server, "/"), &[], "body")).expect("an answer");
    assert_eq!(heard.recv().expect("the server tells"), *b"body");
    assert!(server.heard().contains("content-length: 4"));
    assert_eq!(sent.text(), "ok");
    assert_eq!(sent.end.expect("whole").expect("trailers")["x-sum"], "1");
}

#[test]
fn informational_responses_are_skipped() {
    let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond";
    let server = Server::start(vec![says(answer), says(OK)]);
    let mut world = Setup::at(server.address).world();
    let reply = world.get(&url(&server, "/"));
    assert_eq!((reply.status, reply.text()), (200, "ok"));
    // The next request has a new connection, so the smuggled answer reaches nobody.
    assert_eq!(world.get(&url(&server, "/")).text(), "ok");
}

#[test]
fn abandoned_request_ends() {
    let (tell, ended) = std::sync::mpsc::channel();
    let server = Server::start(vec![Box::new(move |stream| {
        pauses_after("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345")(stream);
        tell.send(()).expect("the test waits");
    })]);
    let mut world = Setup::at(server.address).world();
    let sending = world.session.hooks().send_request(get(&url(&server, "/")), None, Box::new(ready(Ok(()))));
    world.runtime.block_on(async {
        let (response, _) = Box::into_pin(sending).await.expect("a head");
        drop(response);
        // The task is aborted, and ends at its next poll.
        tokio::task::spawn_blocking(move || ended.recv()).await.expect("no panic").expect("the server saw the end");
    });
}

#[test]
fn tasks_of_requests_are_in_the_share_of_their_plugin() {
    let pauses = || pauses_after("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
    let server = Server::start(vec![pauses(), pauses()]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let names = Names { found: Mutex::new(vec![vec!["127.0.0.1"]].into()), asked: Mutex::default() };
    let client = HttpClient::new(runtime.handle().clone(), Arc::new(names), &[]).expect("authorities");
    let mut world = Setup::at(server.address).with_client(runtime, client.clone());
    let mut send =
        || Box::into_pin(world.session.hooks().send_request(get(&url(&server, "/")), None, Box::new(ready(Ok(())))));
    let sent = [send(), send()];
    let answers = world.runtime.block_on(futures::future::join_all(sent));
    assert!(answers.iter().all(Result::is_ok));
    let tasks = |plugin: &str| client.fair_share(&PluginName::new(plugin).expect("a name")).tasks();
    // Each request has a task for itself and one for its connection.
    assert_eq!((tasks("web"), tasks("other")), (4, 0));
}
