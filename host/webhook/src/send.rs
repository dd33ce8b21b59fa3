//! One attempt: a POST to a checked address within ten seconds, without redirects, proxies, cookies or kept connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::Span;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::http::header::RETRY_AFTER;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use url::{Host, Url};

/// The time of one attempt, from the DNS lookup to the end of the reply.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a reply's body is read and thrown away, so that the receiver can finish sending.
const MAX_BODY: u64 = 4 << 10;

/// In bytes.
const MAX_HEAD: usize = 16 << 10;

/// The maximum pause that a receiver can ask for, in seconds.
const MAX_RETRY_AFTER: u64 = 60 * 60;

/// The maximum length of an error text, in characters.
const MAX_ERROR: usize = 200;

/// The request of one attempt.
#[derive(Debug, Clone)]
pub struct Request {
    pub url: Url,
    /// Whether the address may be private.
    pub private: bool,
    /// The headers of the signature.
    pub headers: [(&'static str, String); 3],
    /// JSON.
    pub body: String,
}

/// The receiver's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// The pause that the receiver asks for, where it names one in seconds.
    pub retry_after: Option<Span>,
}

#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request once.
    ///
    /// # Errors
    /// Why there was no reply, in a few escaped words.
    async fn post(&self, request: Request) -> Result<Reply, String>;
}

/// Resolves the host of a URL to the addresses that may be connected to.
#[async_trait]
pub trait Addresses: Send + Sync {
    /// At least one address, looked up once and filtered. Private addresses are left out unless `private`.
    ///
    /// # Errors
    /// Why no address is left, in a few words.
    async fn of(&self, host: Host<String>, port: u16, private: bool) -> Result<Vec<SocketAddr>, String>;
}

/// HTTP/1.1 over TCP or TLS, with Mozilla's roots.
pub struct Http {
    addresses: Arc<dyn Addresses>,
}

impl Http {
    #[must_use]
    pub fn new(addresses: Arc<dyn Addresses>) -> Self {
        Self { addresses }
    }
}

#[async_trait]
impl Transport for Http {
    async fn post(&self, request: Request) -> Result<Reply, String> {
        let exchanged = async {
            let (Some(host), Some(port)) = (request.url.host(), request.url.port_or_known_default()) else {
                return Err("the URL has no host".to_owned());
            };
            let addresses = self.addresses.of(host.to_owned(), port, request.private).await?;
            let exchange = tokio::task::spawn_blocking(move || exchange(&request, addresses));
            exchange.await.unwrap_or_else(|_| Err("the host failed to send the request".to_owned()))
        };
        let late = |_| Err(format!("no reply within {} seconds", TIMEOUT.as_secs()));
        let reply = tokio::time::timeout(TIMEOUT, exchanged).await.unwrap_or_else(late);
        // The text may quote the receiver.
        reply.map_err(|message| escape::excerpt(&message, MAX_ERROR).into_owned())
    }
}

/// Gives the checked addresses, so that the name is not looked up a second time.
#[derive(Debug)]
struct CheckedAddresses(Vec<SocketAddr>);

impl Resolver for CheckedAddresses {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        // The library has room for 16.
        self.0.iter().take(16).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

fn exchange(request: &Request, addresses: Vec<SocketAddr>) -> Result<Reply, String> {
    let config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .http_status_as_error(false)
        .max_redirects(0)
        // A proxy from the environment would connect to an address that was not checked.
        .proxy(None)
        .max_response_header_size(MAX_HEAD)
        .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), CheckedAddresses(addresses));
    let mut post = agent.post(request.url.as_str()).header("content-type", "application/json");
    for (name, value) in &request.headers {
        post = post.header(*name, value);
    }
    let mut reply = post.send(&request.body).map_err(message)?;
    let retry_after = reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = retry_after.map(|seconds: u64| Span::from_secs(seconds.min(MAX_RETRY_AFTER)));
    let status = reply.status().as_u16();
    // A body that cannot be read changes nothing: the status decides.
    let _ = reply.body_mut().with_config().limit(MAX_BODY).read_to_vec();
    Ok(Reply { status, retry_after })
}

/// The library's message, unless it quotes the URL: that may hold a secret.
fn message(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no reply within {} seconds", TIMEOUT.as_secs()),
        ureq::Error::BadUri(_) => "the URL is not valid".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Resolves every name to one address.
    struct Here(SocketAddr);

    #[async_trait]
    impl Addresses for Here {
        async fn of(&self, _: Host<String>, _: u16, private: bool) -> Result<Vec<SocketAddr>, String> {
            if private { Ok(vec![self.0]) } else { Err("it is not public \u{202e}".to_owned()) }
        }
    }

    /// The result of an attempt at a receiver that sends this, and what the receiver got.
    async fn attempt(answer: Vec<u8>) -> (Result<Reply, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = Http::new(Arc::new(Here(listener.local_addr().unwrap())));
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut got, mut piece) = (Vec::new(), [0; 4096]);
            while !got.ends_with(b"{\"a\":1}") {
                let read = stream.read(&mut piece).unwrap();
                got.extend_from_slice(&piece[..read]);
            }
            // The client may close before it has read all.
            let _ = stream.write_all(&answer);
            String::from_utf8(got).unwrap()
        });
        let reply = http.post(to("http://hooks.test/x?y=1", true)).await;
        (reply, receiver.join().unwrap())
    }

    fn to(url: &str, private: bool) -> Request {
        let headers =
            [("webhook-id", "m".into()), ("webhook-timestamp", "1".into()), ("webhook-signature", "v1,s".into())];
        Request { url: url.parse().unwrap(), private, headers, body: "{\"a\":1}".into() }
    }

    #[tokio::test]
    async fn reply_is_a_status_and_a_pause() {
        let rows: [(&str, u16, Option<u64>); 7] = [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200, None),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, None),
            ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", 302, None),
            ("HTTP/1.1 429 Slow\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n", 429, Some(120)),
            ("HTTP/1.1 503 Busy\r\nretry-after: 99999999999999\r\ncontent-length: 0\r\n\r\n", 503, Some(3_600)),
            ("HTTP/1.1 503 Busy\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n", 503, None),
            ("HTTP/1.1 500 Oops\r\ncontent-length: 9999999\r\n\r\nand then it ends", 500, None),
        ];
        for (answer, status, seconds) in rows {
            let (reply, got) = attempt(answer.into()).await;
            let retry_after = seconds.map(Span::from_secs);
            assert_eq!(reply, Ok(Reply { status, retry_after }), "{answer}");
            assert!(got.starts_with("POST /x?y=1 HTTP/1.1\r\n"), "{got}");
            for line in
                ["host: hooks.test", "webhook-id: m", "webhook-signature: v1,s", "content-type: application/json"]
            {
                assert!(got.to_ascii_lowercase().contains(&format!("\r\n{line}\r\n")), "{line} in {got}");
            }
        }
    }

    #[tokio::test]
    async fn endless_reply_is_not_read_to_its_end() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
        let (reply, _) = attempt([head.as_slice(), &vec![b'x'; 16 << 20]].concat()).await;
        assert_eq!(reply.map(|reply| reply.status), Ok(200));
    }

    #[tokio::test]
    async fn failed_attempt_gives_a_short_escaped_error() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "y".repeat(64 << 10));
        for answer in ["", "SSH-2.0-OpenSSH_9.7\r\n", "HTTP/1.1 2\u{202e}00 OK\r\n\r\n", &long] {
            let said = attempt(answer.into()).await.0.unwrap_err();
            assert!(!said.is_empty() && said.len() < 300 && said.is_ascii(), "{said:?}");
        }
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let http = Http::new(Arc::new(Here(nobody)));
        assert!(http.post(to("http://hooks.test/secret-path", true)).await.unwrap_err().contains("refused"));
        assert_eq!(http.post(to("http://hooks.test/", false)).await, Err("it is not public \\u{202e}".to_owned()));
        // A plain HTTP reply to a TLS request is an error.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = Http::new(Arc::new(Here(listener.local_addr().unwrap())));
        let plain = thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap());
        assert!(http.post(to("https://hooks.test/", true)).await.is_err());
        plain.join().unwrap();
    }
}
