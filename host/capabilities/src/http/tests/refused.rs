//! Refused requests and reached limits: nothing is sent, and the log tells the author what is missing.

use super::server::{Server, says};
use super::*;

#[test]
fn denied_request_reaches_neither_resolver_nor_server() {
    let mut world = Setup::with(vec![rule("https://api.example.com/v1/", Reach::Public)]).world();
    for url in [
        "http://api.example.com/v1/",
        "https://api.example.com/",
        "https://api.example.com/v1/../v2",
        "https://api.example.com/v1/%2e%2e/v2",
        "https://api.example.com/v1/..%2fv2",
        "https://api.example.com:444/v1/",
        "https://www.example.com/v1/",
        "https://2130706433/v1/",
        "https://0177.0.0.1/v1/",
    ] {
        assert!(matches!(world.fails(url), Error::HttpRequestDenied), "{url}");
    }
    for url in [
        "https://user@api.example.com/v1/",
        "https://api.example.com@evil.org/v1/",
        "https://api.example.com./v1/",
        "https://api.example.com:0/v1/",
        "https://a..example.com/",
    ] {
        assert!(matches!(world.fails(url), Error::HttpRequestUriInvalid), "{url}");
    }
    let long = format!("https://api.example.com/v1/{}", "a".repeat(9_000));
    assert!(matches!(world.fails(&long), Error::HttpRequestUriTooLong));
    for method in ["DELETE", "CONNECT", "TRACE", "get"] {
        let sent = world.send(request(method, "https://api.example.com/v1/", &[], ""));
        assert!(matches!(sent, Err(Error::HttpRequestDenied)), "{method}");
    }
    assert!(world.asked().is_empty());
}

#[test]
fn denied_request_logs_the_missing_lines() {
    let mut world = Setup::with(vec![rule("https://api.example.com/v1/", Reach::Public)]).world();
    world.fails("https://api.example.com/v2/things");
    assert_eq!(
        world.log(),
        [
            "http: GET https://api.example.com/v2/things was refused: the rule for this host is for paths below /v1/",
            "to allow it, the operator adds to toolgate.toml:",
            "[[plugin.web.grants.http]]",
            "url = \"https://api.example.com/v2/things\"",
            "methods = [\"GET\"]",
        ]
    );
}

#[test]
fn name_of_a_private_address_is_not_connected() {
    let server = Server::start(vec![says("HTTP/1.1 200 OK\r\n\r\n")]);
    let port = server.address.port();
    let public = || Setup::with(vec![rule(&format!("http://api.example.com:{port}"), Reach::Public)]);
    for found in ["127.0.0.1", "::1", "10.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "169.254.169.254"] {
        let mut world = public().found(vec![vec![found]]).world();
        let error = world.fails(&format!("http://api.example.com:{port}/"));
        assert!(matches!(error, Error::DestinationIpProhibited), "{found}: {error:?}");
        assert!(world.log()[0].contains("private = true"), "{:?}", world.log());
        assert!(!world.log()[0].contains(found), "the call's log does not show the operator's addresses");
    }
    // The operator can grant loopback, but never link-local addresses.
    for found in ["169.254.169.254", "0.0.0.0", "fe80::1", "::ffff:127.0.0.1"] {
        let mut world = Setup::at(server.address).found(vec![vec![found]]).world();
        assert!(matches!(world.fails(&format!("http://api.example.com:{port}/")), Error::DestinationIpProhibited));
    }
    // A literal address is checked in the same way, even if a rule names it.
    let mut world = Setup::with(vec![rule(&format!("http://127.0.0.1:{port}"), Reach::Public)]).world();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1"] {
        let error = world.fails(&format!("http://{host}:{port}/"));
        assert!(matches!(error, Error::DestinationIpProhibited), "{host}: {error:?}");
    }
    assert!(world.asked().is_empty());
    assert_eq!(server.unheard(), 0);
}

#[test]
fn unknown_name_is_a_lookup_error() {
    let mut world = Setup::with(vec![rule("https://*.example.com", Reach::Public)]).found(vec![]).world();
    assert!(matches!(world.fails("https://nobody.example.com/"), Error::DnsError { .. }));
}

#[test]
fn number_of_requests_of_a_call_is_limited() {
    let mut world = Setup::with(vec![]).limits(|limits| limits.http_requests = 3).world();
    for _ in 0..3 {
        assert!(matches!(world.fails("https://example.com/"), Error::HttpRequestDenied));
    }
    assert!(matches!(world.fails("https://example.com/"), Error::ConnectionLimitReached));
    assert!(world.log().last().expect("a line").contains("`limits.http_requests`"));
}

#[test]
fn sent_bytes_of_a_call_are_limited() {
    let reads: super::server::Script = Box::new(|stream| drop(std::io::copy(stream, &mut std::io::sink())));
    let server = Server::start(vec![reads]);
    let mut world = Setup::at(server.address).limits(|limits| limits.http_sent = 10_000).world();
    let url = format!("http://api.example.com:{}/", server.address.port());
    let sent = world.send(request("POST", &url, &[], &"a".repeat(20_000)));
    assert!(matches!(sent, Err(Error::HttpRequestBodySize(_))), "{sent:?}");
    assert!(world.log()[0].contains("`limits.http_sent_bytes`"));
}

/// Answers no lookup before the test releases it.
struct Gated(Arc<tokio::sync::Semaphore>, Arc<Mutex<u32>>);

impl Resolver for Gated {
    fn addresses(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        *self.1.lock().expect("no panic") += 1;
        let gate = Arc::clone(&self.0);
        Box::pin(async move {
            gate.acquire().await.expect("it stays open").forget();
            Ok(vec![])
        })
    }
}

#[test]
fn requests_beyond_the_concurrency_limit_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (gate, lookups) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::new(Mutex::new(0)));
    let resolver = Arc::new(Gated(Arc::clone(&gate), Arc::clone(&lookups)));
    let client = HttpClient::new(runtime.handle().clone(), resolver, &[]).expect("authorities");
    let mut world = Setup::with(vec![rule("http://example.com", Reach::Public)])
        .limits(|limits| limits.http_concurrent = 2)
        .with_client(runtime, client);
    let mut send =
        || Box::into_pin(world.session.hooks().send_request(get("http://example.com/"), None, Box::new(ready(Ok(())))));
    let sent: Vec<_> = (0..5).map(|_| send()).collect();
    world.runtime.block_on(async {
        // More polls than the tasks have await points.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(*lookups.lock().expect("no panic"), 2);
        gate.add_permits(5);
        for sending in sent {
            assert!(matches!(sending.await, Err(Error::DnsError { .. })));
        }
    });
    assert_eq!(*lookups.lock().expect("no panic"), 5);
}

#[test]
fn without_a_call_every_request_is_denied() {
    let mut session = Session::new(None, Arc::new(Lines::default()), HostMemory::new(0, Arc::new(())), None);
    let sending = session.hooks().send_request(get("http://example.com/"), None, Box::new(ready(Ok(()))));
    let answer = futures::FutureExt::now_or_never(Box::into_pin(sending)).expect("at once");
    assert!(matches!(answer, Err(Error::HttpRequestDenied)));
}

#[test]
fn requests_are_charged_to_the_calls_host_memory() {
    let server = Server::start((0..2).map(|_| says("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")).collect());
    let url = format!("http://api.example.com:{}/", server.address.port());
    let world = |host_bytes| Setup::at(server.address).limits(|limits| limits.host_bytes = host_bytes).world();
    let mut poor = world((256 << 10) - 1);
    assert!(matches!(poor.fails(&url), Error::ConnectionLimitReached));
    assert!(poor.log()[0].contains("`limits.host_bytes`"), "{:?}", poor.log());
    // One after the other, they are within the limit.
    let mut enough = world(256 << 10);
    assert_eq!((enough.get(&url).status, enough.get(&url).status), (200, 200));
}
