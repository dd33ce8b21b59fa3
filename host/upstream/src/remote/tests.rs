//! A connection to a scripted server.

use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use toolgate_tests::clock::SimClock;
use toolgate_tests::remote::Remote as Fake;

use super::*;
use crate::settings::Token;

const MAX_MESSAGE: usize = 1 << 20;

const TIME: Span = Span::from_secs(60);

/// The parts of a connection.
struct Kit {
    clock: Arc<SimClock>,
    parts: Parts,
}

impl Kit {
    /// Must be called in a runtime.
    fn new() -> Self {
        let clock = Arc::new(SimClock::default());
        let make: crate::MakeTool = Arc::new(|_| Err(Vec::new()));
        let parts = Parts { clock: clock.clone(), make, runtime: Handle::current() };
        Self { clock, parts }
    }

    fn pause(&self) -> Arc<Pause> {
        Arc::new(Pause::new(self.clock.clone()))
    }

    /// A connection without a session.
    fn new_to(&self, url: &str) -> Remote {
        Remote::new(&endpoint(url, None), MAX_MESSAGE, &self.parts, self.pause()).unwrap()
    }

    /// A connection with a session.
    async fn begun(&self, server: &Fake) -> Remote {
        let remote = self.new_to(&server.url());
        remote.request("initialize", "{}", TIME).await.unwrap();
        remote
    }
}

fn endpoint(url: &str, token: Option<&str>) -> Endpoint {
    let token = token.map(|value| Token { value: value.to_owned(), source: "the file token".to_owned() });
    Endpoint { url: url.parse().unwrap(), token }
}

async fn call(remote: &Remote, tool: &str) -> Result<Answer, NoAnswer> {
    remote.request("tools/call", &format!(r#"{{"name":"{tool}","arguments":{{}}}}"#), TIME).await
}

fn unknown(answer: Result<Answer, NoAnswer>) -> String {
    match answer {
        Err(NoAnswer::Unknown(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn not_sent(answer: Result<Answer, NoAnswer>) -> String {
    match answer {
        Err(NoAnswer::NotSent(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn illegal_session_id_ends_the_connection() {
    let kit = Kit::new();
    let longest = "x".repeat(MAX_SESSION);
    for id in [" ", "a b", "a\tb", "\u{e9}", &format!("{longest}x")] {
        let server = Fake::start();
        server.become_(&format!("session {id}"));
        let remote = kit.new_to(&server.url());
        let why = unknown(remote.request("initialize", "{}", TIME).await);
        assert_eq!((why.as_str(), remote.ended().is_some()), ("named its session with an illegal id", true), "{id:?}");
    }
    let server = Fake::start();
    server.become_(&format!("session {longest}"));
    call(&kit.begun(&server).await, "echo").await.unwrap();
}

#[tokio::test]
async fn restless_streams_end_only_their_call() {
    let (kit, server) = (Kit::new(), Fake::start());
    let remote = kit.begun(&server).await;
    let (mut hang, mut restless) = (Box::pin(call(&remote, "hang")), Box::pin(call(&remote, "restless")));
    let ended = loop {
        tokio::select! {
            ended = &mut restless => break ended,
            other = &mut hang => panic!("{other:?}"),
            () = tokio::task::yield_now() => kit.clock.advance(Span::from_secs(1)),
        }
    };
    assert_eq!(unknown(ended), "ended 32 streams without an answer");
    assert_eq!(server.requests().iter().filter(|request| request.method == "GET").count(), MAX_STREAMS - 1);
    assert_eq!(remote.ended(), None);
    call(&remote, "echo").await.unwrap();
}

#[tokio::test]
async fn timeout_status_leaves_it_open_what_was_done() {
    let (kit, server) = (Kit::new(), Fake::start());
    let remote = kit.begun(&server).await;
    server.become_("408");
    assert_eq!(unknown(call(&remote, "echo").await), "answered with HTTP 408");
    server.become_("405");
    assert_eq!(not_sent(call(&remote, "echo").await), "answered with HTTP 405");
}

#[tokio::test]
async fn bad_request_with_an_error_is_an_answer() {
    let (kit, server) = (Kit::new(), Fake::start());
    let remote = kit.begun(&server).await;
    let error = |id: u64| format!(r#"400 {{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no"}}}}"#);
    server.become_(&error(1));
    let answer = call(&remote, "echo").await.unwrap();
    assert_eq!(answer, Answer::Error { code: -32602, message: "no".to_owned() });
    for other in [&error(7), r#"400 {"jsonrpc":"2.0","id":3,"result":{}}"#, "400 no"] {
        server.become_(other);
        assert_eq!(not_sent(call(&remote, "echo").await), "answered with HTTP 400", "{other}");
    }
    assert_eq!(remote.ended(), None);
}

#[tokio::test]
async fn server_that_asks_for_a_token_says_so() {
    let (kit, server) = (Kit::new(), Fake::start());
    let remote = kit.begun(&server).await;
    server.become_("401");
    let why = not_sent(call(&remote, "echo").await);
    assert_eq!(why, "asks for a token (HTTP 401): name it with `token_file` or `token_env`");
}

#[tokio::test]
async fn token_that_is_no_header_is_refused_unseen() {
    let (kit, server) = (Kit::new(), Fake::start());
    for token in ["sesame\n", "ses\u{0}ame", "ses\rame"] {
        let made = Remote::new(&endpoint(&server.url(), Some(token)), MAX_MESSAGE, &kit.parts, kit.pause());
        assert_eq!(made.err().unwrap(), "cannot get a token that the file token has: it is no header");
    }
}

#[tokio::test]
async fn plain_http_reaches_only_this_machine() {
    let kit = Kit::new();
    for host in ["192.0.2.1", "[2001:db8::1]", "[::ffff:192.0.2.1]", "0.0.0.0"] {
        let remote = kit.new_to(&format!("http://{host}:9/mcp"));
        let why = not_sent(remote.request("initialize", "{}", TIME).await);
        assert_eq!(why, "has no address on this machine", "{host}");
    }
    let server = Fake::start();
    let remote = kit.new_to(&server.url().replace("127.0.0.1", "localhost"));
    remote.request("initialize", "{}", TIME).await.unwrap();
}

#[tokio::test]
async fn large_heads_are_refused() {
    let (kit, server) = (Kit::new(), Fake::start());
    let remote = kit.begun(&server).await;
    for mode in ["heavy", "many"] {
        server.become_(mode);
        let why = unknown(call(&remote, "echo").await);
        assert_eq!((why.as_str(), remote.ended()), ("has broken HTTP: message head is too large", None), "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn session_is_ended_when_its_connection_is_dropped() {
    let (kit, server) = (Kit::new(), Fake::start());
    drop(kit.begun(&server).await);
    let request = server.wait(|request| request.method == "DELETE");
    assert_eq!(request.headers["mcp-session-id"], "session-1");
    // The server has ended this one itself.
    let remote = kit.begun(&server).await;
    server.forget();
    assert_eq!(call(&remote, "echo").await, Err(NoAnswer::SessionEnded));
    drop(remote);
    drop(kit.begun(&server).await);
    let request = server.wait(|request| request.method == "DELETE" && request.headers["mcp-session-id"] != "session-1");
    assert_eq!(request.headers["mcp-session-id"], "session-3");
}

const AUTHORITY: &[u8] = include_bytes!("../../../capabilities/src/http/tests/tls/ca.der");
const CERTIFICATE: &[u8] = include_bytes!("../../../capabilities/src/http/tests/tls/server.der");
const KEY: &[u8] = include_bytes!("../../../capabilities/src/http/tests/tls/key.der");

/// A server with TLS, which answers one request.
fn secured() -> (SocketAddr, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    let served = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream);
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            head.push(byte[0]);
        }
        let body = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(answer.as_bytes());
        stream.conn.send_close_notify();
        let _ = stream.flush();
        String::from_utf8(head).unwrap()
    });
    (address, served)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_checked_before_the_token_is_sent() {
    let kit = Kit::new();
    for (is_known, name) in [(true, "127.0.0.1"), (false, "127.0.0.1"), (true, "localhost")] {
        let (address, served) = secured();
        let endpoint = endpoint(&format!("https://{name}:{}/mcp", address.port()), Some("sesame"));
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        if is_known {
            roots.add(CertificateDer::from(AUTHORITY)).unwrap();
        }
        let http = Http::trusting(&endpoint, roots).unwrap();
        let remote = Remote::over(http, MAX_MESSAGE, &kit.parts, kit.pause());
        let answer = remote.request("initialize", "{}", TIME).await;
        let heard = served.join().unwrap();
        if is_known && name == "127.0.0.1" {
            assert_eq!(answer, Ok(Answer::Result("{}".to_owned())));
            assert!(heard.contains("authorization: Bearer sesame\r\n"), "{heard}");
        } else {
            let why = not_sent(answer);
            assert!(why.starts_with("cannot be reached over TLS: invalid peer certificate"), "{why}");
            assert_eq!(heard, "");
        }
    }
}
