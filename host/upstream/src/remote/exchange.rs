//! One HTTP request to the origin that the operator configured. Redirects are not followed, proxies of the environment are not used.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use url::{Host, Position};

use crate::settings::Endpoint;

/// The time from the lookup of the name to an open connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The largest head of a response, in bytes.
const MAX_HEAD: usize = 64 << 10;

const MAX_HEADERS: usize = 100;

/// Sends requests to one URL.
pub(super) struct Http {
    endpoint: Endpoint,
    authorization: Option<HeaderValue>,
    tls: TlsConnector,
}

/// Why there is no response. The text continues a sentence about the server.
pub(super) enum NoResponse {
    /// The server got no request.
    NotSent(String),
    /// The server may have got it.
    Unknown(String),
}

/// A response whose body is not read yet. Dropping it closes the connection.
pub(super) struct Answered {
    pub(super) head: http::response::Parts,
    body: Incoming,
    _driving: Driving,
}

/// Ends a task when it is dropped.
struct Driving(JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Http {
    /// # Errors
    /// Why nothing can be sent. The text continues a sentence about the server.
    pub(super) fn new(endpoint: &Endpoint) -> Result<Self, String> {
        Self::trusting(endpoint, RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() })
    }

    pub(super) fn trusting(endpoint: &Endpoint, roots: RootCertStore) -> Result<Self, String> {
        let unusable = |_| "cannot be reached: TLS cannot be set up".to_owned();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = config.map_err(unusable)?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let authorization = match &endpoint.token {
            None => None,
            Some(token) => {
                let value = HeaderValue::try_from(format!("Bearer {}", token.value));
                let mut value =
                    value.map_err(|_| format!("cannot get a token that {} has: it is no header", token.source))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        Ok(Self { endpoint: endpoint.clone(), authorization, tls: Arc::new(config).into() })
    }

    pub(super) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request, and waits for the head of the response.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: String,
    ) -> Result<Answered, NoResponse> {
        let late = |_| Err(format!("cannot be reached within {} seconds", CONNECT.as_secs()));
        let connected = tokio::time::timeout(CONNECT, self.connect()).await.unwrap_or_else(late);
        let stream = connected.map_err(NoResponse::NotSent)?;
        let broken = |error: hyper::Error| {
            NoResponse::Unknown(format!("has broken HTTP: {}", escape::excerpt(&error.to_string(), 200)))
        };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let driving = Driving(tokio::spawn(async move { drop(connection.await) }));
        let request = self.request(method, headers, body).map_err(NoResponse::NotSent)?;
        let response: Response<Incoming> = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        Ok(Answered { head, body, _driving: driving })
    }

    fn request(
        &self,
        method: Method,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: String,
    ) -> Result<Request<Full<Bytes>>, String> {
        let unusable = |_| "has a URL that HTTP cannot send".to_owned();
        let url = &self.endpoint.url;
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let mut all = HeaderMap::new();
        let agent = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
        all.insert(HOST, HeaderValue::try_from(host).map_err(|_| "has a host that HTTP cannot send".to_owned())?);
        all.insert(USER_AGENT, HeaderValue::from_static(agent));
        all.insert(CONNECTION, HeaderValue::from_static("close"));
        let is_post = method == Method::POST;
        let accept = if is_post { "application/json, text/event-stream" } else { "text/event-stream" };
        all.insert(ACCEPT, HeaderValue::from_static(accept));
        if is_post {
            all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(authorization) = &self.authorization {
            all.insert(AUTHORIZATION, authorization.clone());
        }
        all.extend(headers);
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().map_err(unusable)?;
        *request.headers_mut() = all;
        Ok(request)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let url = &self.endpoint.url;
        let is_plain = url.scheme() == "http";
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err("has a URL without a host".to_owned());
        };
        let found: Vec<SocketAddr> = match host {
            Host::Ipv4(address) => vec![(address, port).into()],
            Host::Ipv6(address) => vec![(address, port).into()],
            Host::Domain(name) => match tokio::net::lookup_host((name, port)).await {
                Ok(found) => found.collect(),
                Err(error) => return Err(format!("cannot be found: {error}")),
            },
        };
        let allowed = found.iter().filter(|address| !is_plain || address.ip().to_canonical().is_loopback());
        let mut last = if is_plain { "has no address on this machine" } else { "has no address" }.to_owned();
        for address in allowed {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return if is_plain { Ok(Box::new(stream)) } else { self.secured(host.to_owned(), stream).await };
                }
                Err(error) => last = format!("cannot be reached: {error}"),
            }
        }
        Err(last)
    }

    async fn secured(&self, host: Host<String>, stream: TcpStream) -> Result<Box<dyn Stream>, String> {
        let name = match host {
            Host::Domain(name) => {
                ServerName::try_from(name).map_err(|_| "has a host that TLS cannot check".to_owned())?
            }
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::from(address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::from(address)),
        };
        match self.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(format!("cannot be reached over TLS: {}", escape::excerpt(&error.to_string(), 200))),
        }
    }
}

impl Answered {
    /// The next bytes of the body. `None` at its end.
    ///
    /// # Errors
    /// Why it cannot be read. The text continues a sentence about the server.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
                Some(Err(error)) => {
                    return Err(format!("has broken its answer off: {}", escape::excerpt(&error.to_string(), 200)));
                }
            }
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// The body has more bytes. Or it cannot be read: then `false`.
    pub(super) async fn whole(&mut self, max: usize) -> Result<Vec<u8>, (bool, String)> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await.map_err(|why| (false, why))? {
            if all.len() + piece.len() > max {
                return Err((true, format!("sent a message of more than {max} bytes")));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}
