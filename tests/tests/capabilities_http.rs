//! HTTP requests on the real host: a guest in WebAssembly, the operator's configuration, and a server on loopback that
//! records its requests.

#![expect(clippy::unwrap_used, reason = "a server that cannot be set up has failed")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::outcomes;

/// These grants are for every component of this name.
const ANY: &str = "[plugin.fetcher]\ncomponent = \"any\"\n";

/// A server that answers every request with a given response, one per connection.
struct Server {
    address: SocketAddr,
    heard: Receiver<String>,
}

impl Server {
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Clone + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let (tell, answer) = (tell.clone(), answer.clone());
                std::thread::spawn(move || {
                    let (mut head, mut byte) = (Vec::new(), [0]);
                    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let _ = tell.send(head.clone());
                    answer(&head, &mut stream);
                    // Closing with unread input could cut off the response.
                    let _ = stream.shutdown(Shutdown::Write);
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                });
            }
        });
        Self { address, heard }
    }

    /// A server with one response for all requests.
    fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_, stream| drop(stream.write_all(&answer)))
    }

    fn authority(&self) -> String {
        self.address.to_string()
    }

    /// A host whose plugin `fetcher` may send these methods to this server.
    fn granted(&self, methods: &str, more: &str) -> Host {
        let url = format!("http://{}/api/", self.authority());
        let grant = format!(
            "{ANY}[[plugin.fetcher.grants.http]]\nurl = \"{url}\"\nmethods = {methods}\nprivate = true\n{more}"
        );
        Setup::default().component("fetcher", illegal("fetcher")).tables(&grant).start()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\nx-own: 1\r\n\r\nok";

/// Sends these requests in one call, and returns their results.
fn fetch(host: &Host, requests: Value) -> Vec<Value> {
    let turn = host.agent.call("c", "fetch", json!({"requests": requests}));
    assert_eq!(outcomes(&turn), ["ok"], "{turn:#}");
    turn["calls"][0]["content"]["result"].as_array().unwrap().clone()
}

fn one(host: &Host, request: Value) -> Value {
    fetch(host, json!([request])).remove(0)
}

#[test]
fn a_granted_request_is_sent_and_answered() {
    let server = Server::saying(OK);
    let host = server.granted("[\"GET\", \"POST\"]", "");
    let at = server.authority();
    let answers = fetch(
        &host,
        json!([
            {"authority": at, "path": "/api/a?q=1", "headers": [["x-mine", "1"]]},
            {"authority": at, "path": "/api/b", "method": "POST", "body": "x", "headers": [["idempotency-key", "mine"]]},
        ]),
    );
    for answer in &answers {
        assert_eq!((&answer["status"], &answer["body"], &answer["error"]), (&json!(200), &json!("ok"), &Value::Null));
        let names: Vec<_> =
            answer["headers"].as_array().unwrap().iter().map(|field| field[0].as_str().unwrap()).collect();
        assert_eq!(names, ["content-length", "x-own"], "the guest cannot set headers of the connection");
    }
    let mut heard = [server.heard.recv().unwrap(), server.heard.recv().unwrap()];
    heard.sort_unstable();
    assert!(heard[0].starts_with("GET /api/a?q=1 HTTP/1.1\r\n") && heard[0].contains("x-mine: 1"), "{heard:?}");
    assert!(!heard[0].contains("idempotency-key"));
    let key = heard[1].lines().find_map(|line| line.strip_prefix("idempotency-key: ")).unwrap();
    assert!(key.ends_with("/1") && key.len() > 8, "{key}");
    // The next call has another key.
    one(&host, json!({"authority": at, "path": "/api/b", "method": "POST"}));
    assert!(!server.heard.recv().unwrap().contains(key));
}

#[test]
fn denied_request_logs_the_missing_grant() {
    let server = Server::saying(OK);
    let host = server.granted("[\"GET\"]", "");
    let (at, port) = (server.authority(), server.address.port());
    let mut stream = host.agent.events("/v1/conversations/c/events");
    for (request, error) in [
        (json!({"authority": at, "path": "/api/a", "method": "POST"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/other"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/../other"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/..%2fother"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/a", "scheme": "https"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/a", "method": "CONNECT"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/a", "method": "TRACE"}), "HttpRequestDenied"),
        (json!({"authority": at, "path": "/api/a", "scheme": "gopher"}), "HttpProtocolError"),
        (json!({"authority": format!("localhost:{port}"), "path": "/api/a"}), "HttpRequestDenied"),
        (json!({"authority": format!("[::ffff:127.0.0.1]:{port}"), "path": "/api/a"}), "HttpRequestDenied"),
        (json!({"authority": "169.254.169.254", "path": "/api/"}), "HttpRequestDenied"),
        (json!({"authority": format!("user@127.0.0.1:{port}"), "path": "/api/a"}), "HttpRequestUriInvalid"),
        (json!({"path": "/api/a"}), ""),
        // An invalid request is refused before it is checked.
        (json!({"authority": at, "path": "//evil.example/\r\nx: 1"}), "set-path"),
        (json!({"authority": format!("{at}\r\nx: 1"), "path": "/api/a"}), "set-authority"),
        (json!({"authority": at, "path": "/api/a", "method": "GET /api/ HTTP/1.1\r\nx: 1\r\n\r\n"}), "set-method"),
        (json!({"authority": at, "path": "/api/a", "headers": [["x", "1\r\ny: 2"]]}), "x: HeaderError::InvalidSyntax"),
        (json!({"authority": at, "path": "/api/a", "headers": [["x\r\ny", "1"]]}), "InvalidSyntax"),
        (
            json!({"authority": at, "path": "/api/a", "headers": [["host", "evil.example"]]}),
            "host: HeaderError::Forbidden",
        ),
        (json!({"authority": at, "path": "/api/a", "headers": [["transfer-encoding", "chunked"]]}), "Forbidden"),
        (json!({"authority": at, "path": "/api/a", "headers": [["connection", "upgrade"]]}), "Forbidden"),
        (json!({"authority": at, "path": "/api/a", "headers": [["Proxy-Authorization", "x"]]}), "Forbidden"),
        (json!({"authority": at, "path": "/api/a", "headers": [["expect", "100-continue"]]}), "Forbidden"),
        (json!({"authority": at, "path": "/api/a", "headers": [["content-length", "7"]]}), "HttpRequestBodySize"),
    ] {
        let answer = one(&host, request.clone());
        assert_eq!(answer["status"], Value::Null, "{request}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(error), "{request}: {answer}");
    }
    assert_eq!(server.heard.try_iter().count(), 0);
    let lines: Vec<_> = (0..6).map(|_| stream.named("call.log").data["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        lines,
        [
            format!("http: POST http://{at}/api/a was refused: the rule for this URL allows GET"),
            "to allow it, the operator adds to toolgate.toml:".to_owned(),
            "[[plugin.fetcher.grants.http]]".to_owned(),
            format!("url = \"http://{at}/api/a\""),
            "methods = [\"POST\"]".to_owned(),
            "private = true".to_owned(),
        ]
    );
}

#[test]
fn suggested_lines_are_a_valid_grant() {
    let server = Server::saying(OK);
    let at = server.authority();
    let request = json!({"authority": at, "path": "/api/a", "method": "POST"});
    let start = |tables: &str| Setup::default().component("fetcher", illegal("fetcher")).tables(tables).start();
    let host = start(&format!("{ANY}[[plugin.fetcher.grants.http]]\nurl = \"http://other.example\""));
    let turn = host.agent.call("c", "fetch", json!({"requests": [request]}));
    let call = turn["calls"][0]["id"].as_str().unwrap();
    let log = host.agent.get(&format!("/v1/conversations/c/calls/{call}/log")).ok(200);
    let lines = log["runs"][0]["lines"].as_array().unwrap();
    let lines: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    let suggested = lines.iter().position(|line| line.starts_with("[[plugin.fetcher.")).unwrap();
    let host = start(&format!("{ANY}{}", lines[suggested..].join("\n")));
    assert_eq!(one(&host, request)["status"], 200);
    assert!(server.heard.recv().unwrap().starts_with("POST /api/a"));
}

#[test]
fn local_names_are_resolved_by_the_system_and_filtered() {
    let server = Server::saying(OK);
    let port = server.address.port();
    let rule = |private: bool| {
        format!("{ANY}[[plugin.fetcher.grants.http]]\nurl = \"http://localhost:{port}\"\nprivate = {private}")
    };
    let request = json!({"authority": format!("LOCALHOST:{port}"), "path": "/"});
    let start = |private| Setup::default().component("fetcher", illegal("fetcher")).tables(&rule(private)).start();
    assert_eq!(one(&start(true), request.clone())["status"], 200);
    assert!(server.heard.recv().unwrap().contains(&format!("host: localhost:{port}\r\n")));
    let answer = one(&start(false), request);
    assert!(answer["error"].as_str().unwrap().contains("DestinationIpProhibited"), "{answer}");
    assert_eq!(server.heard.try_iter().count(), 0);
}

#[test]
fn plugin_without_the_grant_does_not_load() {
    let host = Setup::default().component("fetcher", illegal("fetcher")).start();
    let plugins = host.admin.get("/v1/plugins").ok(200).to_string();
    assert!(plugins.contains("rejected") && plugins.contains("wasi:http/outgoing-handler"), "{plugins}");
}

#[test]
fn guest_can_read_the_error_of_every_request_limit() {
    let echo = |head: &str, stream: &mut TcpStream| match head.split(' ').nth(1) {
        Some("/api/large") => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[b'a'; 10_000]).is_ok() {}
        }
        Some("/api/slow") => drop(stream.read_to_end(&mut Vec::new())),
        Some("/api/sink") => drop(std::io::copy(stream, &mut std::io::sink())),
        _ => drop(stream.write_all(OK.as_bytes())),
    };
    let server = Server::start(echo);
    let at = server.authority();
    let get = |path: &str| json!({"authority": at, "path": path});
    let post =
        json!({"authority": at, "path": "/api/sink", "method": "POST", "body": "a".repeat(10_000), "repeat": 20});
    for (limit, request, error, line) in [
        ("http_requests = 0", get("/api/a"), "ConnectionLimitReached", "`limits.http_requests`"),
        ("http_received_bytes = 50000", get("/api/large"), "body: ", "`limits.http_received_bytes`"),
        ("http_sent_bytes = 50000", post, "HttpRequestBodySize", "`limits.http_sent_bytes`"),
        ("http_ms = 200", get("/api/slow"), "HttpResponseTimeout", "`limits.http_ms`"),
    ] {
        let host = server.granted("[\"GET\", \"POST\"]", &format!("[plugin.fetcher.limits]\n{limit}"));
        let mut stream = host.agent.events("/v1/conversations/c/events");
        let answer = one(&host, request);
        assert!(answer["error"].as_str().unwrap_or_default().contains(error), "{limit}: {answer}");
        let message = stream.named("call.log").data["message"].as_str().unwrap().to_owned();
        assert!(message.contains(line), "{limit}: {message}");
    }
    // Eight concurrent requests share one permit, and all succeed.
    let host = server.granted("[\"GET\"]", "[plugin.fetcher.limits]\nhttp_concurrent = 1");
    let answers = fetch(&host, Value::Array((0..8).map(|_| get("/api/a")).collect()));
    assert!(answers.iter().all(|answer| answer["body"] == "ok"), "{answers:?}");
}

#[test]
fn the_host_holds_few_copies_of_a_large_head() {
    let server =
        Server::saying(format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-own: {}\r\n\r\n", "a".repeat(20 << 10)));
    let host = server.granted("[\"GET\"]", "");
    let copied = |copies: u32| json!([{"authority": server.authority(), "path": "/api/a", "copies": copies}]);
    assert_eq!(fetch(&host, copied(0))[0]["status"], 200);
    let turn = host.agent.call("c", "fetch", json!({"requests": copied(1)}));
    assert_eq!(outcomes(&turn), ["failed(limit_exceeded)"], "{turn:#}");
    assert!(turn.to_string().contains("bytes of header fields"), "{turn:#}");
    let small = Server::saying(OK);
    let host = small.granted("[\"GET\"]", "");
    assert_eq!(one(&host, json!({"authority": small.authority(), "path": "/api/a", "copies": 100}))["status"], 200);
}

#[test]
fn unfinished_requests_end_with_the_call() {
    let server = Server::start(|head, stream| {
        if head.contains("/api/patient") {
            // Sends nothing until the host has given up.
            let _ = stream.read_to_end(&mut Vec::new());
            return;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n");
        while stream.write_all(&[b'a'; 10_000]).is_ok() {}
    });
    let host = server.granted("[\"GET\", \"POST\"]", "");
    let at = server.authority();
    let answers = fetch(
        &host,
        json!([
            {"authority": at, "path": "/api/unread", "unread": true},
            {"authority": at, "path": "/api/patient", "first_byte_ms": 20},
        ]),
    );
    assert_eq!(answers[0]["status"], 200);
    assert!(answers[1]["error"].as_str().unwrap().contains("ConnectionReadTimeout"), "{}", answers[1]);
}

#[test]
fn truncated_body_is_not_accepted_as_complete() {
    let (tell, bodies) = channel();
    let server = Server::start(move |_, stream| {
        let mut body = Vec::new();
        let _ = stream.read_to_end(&mut body);
        tell.send(body).unwrap();
    });
    let host = server.granted("[\"POST\"]", "");
    let at = server.authority();
    let posted = |more: Value| {
        let mut request = json!({"authority": at, "path": "/api/a", "method": "POST", "body": "half"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one(&host, request)["error"].as_str().unwrap_or_default().to_owned()
    };
    let error = posted(json!({"unfinished": true}));
    assert!(error.contains("HttpProtocolError"), "{error}");
    let error = posted(json!({"trailers": [["x-late", "1"]]}));
    assert!(error.contains("HttpRequestTrailerSectionSize"), "{error}");
    for _ in 0..2 {
        let body = bodies.recv().unwrap();
        assert!(!body.ends_with(b"0\r\n\r\n"), "{body:?}");
    }
}
