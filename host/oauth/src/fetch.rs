//! The port to the issuer: it gets a small document.

use std::time::Duration;

use async_trait::async_trait;
use ureq::Agent;
use url::Url;

/// The time of one request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum size of a document, in bytes.
const MAX_BODY: u64 = 256 << 10;

/// In bytes.
const MAX_HEAD: usize = 16 << 10;

/// The maximum length of an error text, in characters.
const MAX_ERROR: usize = 200;

/// Gets documents of the issuer.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// The body of the response with the status 200. It has a bounded time and size, and blocks no thread of the caller.
    ///
    /// # Errors
    /// [`FetchError`].
    async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError>;
}

/// Why there is no document, in a few escaped words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// HTTP/1.1 over TCP or TLS with Mozilla's roots, without redirects, proxies and cookies.
pub struct HttpFetch(Agent);

impl Default for HttpFetch {
    fn default() -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .max_response_header_size(MAX_HEAD)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .build();
        Self(config.new_agent())
    }
}

#[async_trait]
impl Fetch for HttpFetch {
    async fn get(&self, url: &Url) -> Result<Vec<u8>, FetchError> {
        let (agent, url) = (self.0.clone(), url.clone());
        let got = tokio::task::spawn_blocking(move || get(&agent, &url)).await;
        let got = got.unwrap_or_else(|_| Err("the host failed to send the request".to_owned()));
        // The text may quote the server.
        got.map_err(|error| FetchError(escape::excerpt(&error, MAX_ERROR).into_owned()))
    }
}

fn get(agent: &Agent, url: &Url) -> Result<Vec<u8>, String> {
    let mut response = agent.get(url.as_str()).header("accept", "application/json").call().map_err(message)?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(format!("the answer has the status {status}"));
    }
    response.body_mut().with_config().limit(MAX_BODY).read_to_vec().map_err(message)
}

fn message(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} seconds", TIMEOUT.as_secs()),
        ureq::Error::BodyExceedsLimit(_) => format!("the answer has more than {MAX_BODY} bytes"),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    async fn answered(answer: Vec<u8>) -> Result<Vec<u8>, FetchError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            // The client may close before it has read all.
            let _ = stream.write_all(&answer);
        });
        let got = HttpFetch::default().get(&url).await;
        server.join().unwrap();
        got
    }

    #[tokio::test]
    async fn only_a_small_document_is_read() {
        let with = |status: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 {status}\r\nlocation: /other\r\ncontent-length: {}\r\n\r\n", body.len());
            [head.as_bytes(), body].concat()
        };
        assert_eq!(answered(with("200 OK", b"{}")).await, Ok(b"{}".to_vec()));
        let large = answered(with("200 OK", &vec![b' '; 300 << 10])).await.unwrap_err();
        assert_eq!(large.0, "the answer has more than 262144 bytes");
        // A redirect could lead into the network of the host.
        for status in ["302 Found", "404 Not Found", "500 Oops"] {
            let error = answered(with(status, b"")).await.unwrap_err();
            assert!(error.0.contains("the status"), "{error}");
        }
    }
}
