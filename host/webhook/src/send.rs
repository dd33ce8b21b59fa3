//! One attempt: a POST to a checked address, without redirects, proxies, cookies or kept connections, and within ten seconds.

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

/// How long one attempt may take, from the lookup of the name to the end of the answer.
const LONGEST: Duration = Duration::from_secs(10);

/// How much of an answer's body is read, and thrown away, so that the receiver can end in peace.
const READ: u64 = 4 << 10;

/// The most bytes of an answer's head.
const HEAD: usize = 16 << 10;

/// The longest pause that a receiver can ask for, in seconds.
const MOST_ASKED: u64 = 60 * 60;

/// The most bytes of what is said about a failure.
const SAID: usize = 200;

/// What is sent.
#[derive(Debug, Clone)]
pub struct Post {
    /// Where to.
    pub url: Url,
    /// Whether addresses that are not public may be connected to.
    pub private: bool,
    /// The headers of the signature.
    pub headers: [(&'static str, String); 3],
    /// The body, JSON.
    pub body: String,
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// How long the receiver wants to be left alone, where it says so in seconds.
    pub retry_after: Option<Span>,
}

/// Carries what is sent.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends it once.
    ///
    /// # Errors
    /// What went wrong where there was no answer, in a few harmless words.
    async fn post(&self, post: Post) -> Result<Answered, String>;
}

/// From the host of a URL to the addresses that may be connected to.
#[async_trait]
pub trait Addresses: Send + Sync {
    /// The addresses: looked up once, filtered, and never none. Those that are not public are left out unless `private`.
    ///
    /// # Errors
    /// Why there is none, in a few words.
    async fn of(&self, host: Host<String>, port: u16, private: bool) -> Result<Vec<SocketAddr>, String>;
}

/// HTTP/1.1 over TCP or TLS, with the roots of Mozilla.
pub struct Http {
    addresses: Arc<dyn Addresses>,
}

impl Http {
    /// Connects to what these addresses are.
    #[must_use]
    pub fn new(addresses: Arc<dyn Addresses>) -> Self {
        Self { addresses }
    }
}

#[async_trait]
impl Transport for Http {
    async fn post(&self, post: Post) -> Result<Answered, String> {
        let exchanged = async {
            let (Some(host), Some(port)) = (post.url.host(), post.url.port_or_known_default()) else {
                return Err("the URL names no host".to_owned());
            };
            let addresses = self.addresses.of(host.to_owned(), port, post.private).await?;
            let exchange = tokio::task::spawn_blocking(move || exchange(&post, addresses));
            exchange.await.unwrap_or_else(|_| Err("the host failed to send it".to_owned()))
        };
        let late = |_| Err(format!("no answer within {} seconds", LONGEST.as_secs()));
        let answered = tokio::time::timeout(LONGEST, exchanged).await.unwrap_or_else(late);
        // A receiver may have had its words in it.
        answered.map_err(|said| text::excerpt(&said, SAID).into_owned())
    }
}

/// What was checked is what is connected to: nothing looks the name up again.
#[derive(Debug)]
struct Checked(Vec<SocketAddr>);

impl Resolver for Checked {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        // As many as there is room for.
        self.0.iter().take(16).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

fn exchange(post: &Post, addresses: Vec<SocketAddr>) -> Result<Answered, String> {
    let config = Agent::config_builder()
        .timeout_global(Some(LONGEST))
        .http_status_as_error(false)
        .max_redirects(0)
        // Whoever sets a proxy for the host's environment does not mean this, and it would connect to what was not checked.
        .proxy(None)
        .max_response_header_size(HEAD)
        .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent = Agent::with_parts(config, DefaultConnector::default(), Checked(addresses));
    let mut request = agent.post(post.url.as_str()).header("content-type", "application/json");
    for (name, value) in &post.headers {
        request = request.header(*name, value);
    }
    let mut answer = request.send(&post.body).map_err(said)?;
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let retry_after = retry_after.map(|seconds: u64| Span::from_secs(seconds.min(MOST_ASKED)));
    let answered = Answered { status: answer.status().as_u16(), retry_after };
    // Whether it can be read does not matter: the status has said what there is to say.
    let _ = answer.body_mut().with_config().limit(READ).read_to_vec();
    Ok(answered)
}

/// What the library says of a failure, unless that names the URL, which may hold a secret of its own.
fn said(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} seconds", LONGEST.as_secs()),
        ureq::Error::BadUri(_) => "the URL cannot be used".to_owned(),
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

    /// Every name is here.
    struct Here(SocketAddr);

    #[async_trait]
    impl Addresses for Here {
        async fn of(&self, _: Host<String>, _: u16, private: bool) -> Result<Vec<SocketAddr>, String> {
            if private { Ok(vec![self.0]) } else { Err("it is not public \u{202e}".to_owned()) }
        }
    }

    /// What becomes of an attempt when the receiver answers with this; and what the receiver got.
    async fn attempt(answer: Vec<u8>) -> (Result<Answered, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = Http::new(Arc::new(Here(listener.local_addr().unwrap())));
        let receiver = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut got, mut piece) = (Vec::new(), [0; 4096]);
            while !got.ends_with(b"{\"a\":1}") {
                let read = stream.read(&mut piece).unwrap();
                got.extend_from_slice(&piece[..read]);
            }
            // Whoever does not read all of it is free to.
            let _ = stream.write_all(&answer);
            String::from_utf8(got).unwrap()
        });
        let answered = http.post(to("http://hooks.test/x?y=1", true)).await;
        (answered, receiver.join().unwrap())
    }

    fn to(url: &str, private: bool) -> Post {
        let headers =
            [("webhook-id", "m".into()), ("webhook-timestamp", "1".into()), ("webhook-signature", "v1,s".into())];
        Post { url: url.parse().unwrap(), private, headers, body: "{\"a\":1}".into() }
    }

    #[tokio::test]
    async fn an_answer_is_its_status_and_how_long_to_wait() {
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
            let (answered, got) = attempt(answer.into()).await;
            let retry_after = seconds.map(Span::from_secs);
            assert_eq!(answered, Ok(Answered { status, retry_after }), "{answer}");
            assert!(got.starts_with("POST /x?y=1 HTTP/1.1\r\n"), "{got}");
            for line in
                ["host: hooks.test", "webhook-id: m", "webhook-signature: v1,s", "content-type: application/json"]
            {
                assert!(got.to_ascii_lowercase().contains(&format!("\r\n{line}\r\n")), "{line} in {got}");
            }
        }
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_its_end() {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
        let (answered, _) = attempt([head.as_slice(), &vec![b'x'; 16 << 20]].concat()).await;
        assert_eq!(answered.map(|answered| answered.status), Ok(200));
    }

    #[tokio::test]
    async fn what_is_no_answer_is_said_in_a_few_harmless_words() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "y".repeat(64 << 10));
        for answer in ["", "SSH-2.0-OpenSSH_9.7\r\n", "HTTP/1.1 2\u{202e}00 OK\r\n\r\n", &long] {
            let said = attempt(answer.into()).await.0.unwrap_err();
            assert!(!said.is_empty() && said.len() < 300 && said.is_ascii(), "{said:?}");
        }
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let http = Http::new(Arc::new(Here(nobody)));
        assert!(http.post(to("http://hooks.test/secret-path", true)).await.unwrap_err().contains("refused"));
        assert_eq!(http.post(to("http://hooks.test/", false)).await, Err("it is not public \\u{202e}".to_owned()));
        // Whoever speaks plainly where TLS is expected is not believed.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http = Http::new(Arc::new(Here(listener.local_addr().unwrap())));
        let plain = thread::spawn(move || listener.accept().unwrap().0.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap());
        assert!(http.post(to("https://hooks.test/", true)).await.is_err());
        plain.join().unwrap();
    }
}
