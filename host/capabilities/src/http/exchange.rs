//! One request and its answer, from the lookup of the name to the last byte of the body, on the runtime for I/O.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use domain::PluginName;
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::{Host, Url};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::answer::{Answer, AnswerReceiver, ReceiverClosed, Task, WithoutTrailers, answer};
use super::client::Stream;
use super::coding::{Coding, Unpacker};
use super::lookup::{Unreachable, resolve};
use super::metered::{Budget, Counted, Over};
use super::{AuthorLog, HttpClient, Reach, Scheme, is_public};
use crate::fair_share::FairShare;
use crate::secrets::{Destination, Misplaced, Vault};
use crate::stop::excerpt;
use crate::usage::Charge;

/// Bytes of an answer's head, and of the host's read buffer.
pub(super) const MAX_HEAD: usize = 32 << 10;

/// Fields of an answer's head.
const MAX_FIELDS: usize = 128;

/// Bytes of a body with secrets, which the host holds as a whole.
pub(super) const MAX_FILLED: usize = 1 << 20;

/// The shared state of a call's requests.
pub(super) struct Shared {
    pub(super) client: HttpClient,
    pub(super) plugin: PluginName,
    pub(super) vault: Vault,
    pub(super) log: Arc<dyn AuthorLog>,
    pub(super) time: Duration,
    /// One permit for each request at once; further requests wait.
    pub(super) permits: Arc<Semaphore>,
    pub(super) fair_share: Arc<FairShare>,
    pub(super) budget: Arc<Budget>,
}

/// A request that was allowed.
pub(super) struct Exchange {
    pub(super) call: Arc<Shared>,
    pub(super) method: Method,
    /// In the normal form of the URL standard. The rules checked this URL, and the host sends it.
    pub(super) url: Url,
    pub(super) route: Route,
    pub(super) headers: HeaderMap,
    pub(super) body: WasiBody,
    pub(super) options: RequestOptions,
    /// Its host memory, until the guest has read or dropped the end of the answer's body.
    pub(super) charge: Option<Charge>,
    /// That of the call, or what is left of it for one request of a durable call.
    pub(super) budget: Arc<Budget>,
}

/// The destination of a request.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) scheme: Scheme,
    pub(super) host: Host<String>,
    pub(super) port: u16,
    pub(super) reach: Reach,
}

/// The reason why a request has no answer: an error for the guest, and a line for the call's log.
struct Failed {
    error: Error,
    why: String,
}

impl Failed {
    fn new(error: Error, why: impl Into<String>) -> Self {
        Self { error, why: why.into() }
    }
}

impl Exchange {
    /// Starts the request. Dropping the result ends the task.
    pub(super) fn start(mut self) -> (AnswerReceiver, Task) {
        let (answer, awaited) = answer(self.charge.take());
        let runtime = self.call.client.runtime().clone();
        (awaited, Task(runtime.spawn(self.run(answer))))
    }

    async fn run(self, mut answer: Answer) {
        let call = Arc::clone(&self.call);
        let Ok(_permit) = Arc::clone(&call.permits).acquire_owned().await else { return };
        let name = excerpt(&format!("{} {}", self.method, self.url.origin().ascii_serialization()));
        let exchanged = timeout(call.time, call.fair_share.drive(self.exchange(&mut answer))).await;
        let late = |_| {
            let why = format!("it took longer than {} ms (limit `limits.http_ms`)", call.time.as_millis());
            Err(Failed::new(Error::HttpResponseTimeout, why))
        };
        answer.end(exchanged.unwrap_or_else(late).map_err(|Failed { error, why }| {
            call.log.warn(&format!("http: {name}: {why}"));
            error
        }));
    }

    /// Carries out the request, and returns the trailers of the answer.
    async fn exchange(self, answer: &mut Answer) -> Result<Option<HeaderMap>, Failed> {
        let (call, method, route, options) =
            (Arc::clone(&self.call), self.method.clone(), self.route.clone(), self.options);
        let budget = Arc::clone(&self.budget);
        let between = options.between_bytes_timeout.unwrap_or(Duration::MAX);
        let first = options.first_byte_timeout.unwrap_or(Duration::MAX);
        let over = Arc::new(Over::default());
        let of_hyper = |error| explain(&error, &over);

        // Before any connection: no server learns of a request with a misplaced secret.
        let request = self.request().await?;
        let stream = connect(&call, &route, options).await?;
        let stream = Counted::new(stream, Arc::clone(&budget), Arc::clone(&over));
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD).max_header_size(MAX_HEAD).max_headers(MAX_FIELDS);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(of_hyper)?;
        let fair_share = Arc::clone(&call.fair_share);
        let _connection = Task(tokio::spawn(async move { drop(fair_share.drive(connection).await) }));

        let late = |_| Failed::new(Error::ConnectionReadTimeout, "no answer within the tool's own time limit");
        let response = timeout(first, sender.send_request(request)).await.map_err(late)?.map_err(of_hyper)?;
        let (mut head, body) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failed::new(Error::HttpUpgradeFailed, "the server switches to another protocol"));
        }
        // The head of an answer to HEAD describes a body that is not there.
        let bodiless = method == Method::HEAD || hyper::body::Body::is_end_stream(&body);
        let coding = if bodiless { Coding::Plain } else { Coding::of(&head.headers) };
        if !call.vault.is_empty() {
            if coding == Coding::Foreign || is_unsearchable(&head) {
                let why = "the answer comes in a form in which the host cannot look for secrets";
                return Err(Failed::new(Error::HttpResponseContentCoding(None), why));
            }
            // These fields describe the original answer and would tell the length of a redacted secret.
            if !bodiless {
                OF_THE_BODY.iter().for_each(|name| drop(head.headers.remove(name)));
            }
        }
        coding.undo(&mut head.headers);
        redact(&call, &mut head.headers);
        if let Err(ReceiverClosed) = answer.head(Response::from_parts(head, ())) {
            return Ok(None);
        }
        let mut trailers = deliver(&call, body, coding, between, (&budget, &over), answer).await?;
        if let Some(trailers) = &mut trailers {
            redact(&call, trailers);
        }
        Ok(trailers)
    }

    /// The request with its secrets. From here on nothing may show it.
    async fn request(self) -> Result<Request<WasiBody>, Failed> {
        let Self { call, method, url, route, mut headers, body, budget, .. } = self;
        let to = Destination {
            host: url.host_str().unwrap_or_default(),
            is_confidential: route.scheme == Scheme::Https || route.reach == Reach::Private,
        };
        let misplaced = |misplaced: Misplaced| Failed::new(Error::HttpRequestDenied, misplaced.to_string());
        let mut uri: Uri = url[url::Position::BeforePath..url::Position::AfterQuery]
            .parse()
            .map_err(|_| Failed::new(Error::HttpRequestUriInvalid, "its URL cannot be sent"))?;
        call.vault.fill_head(to, &mut uri, &mut headers).map_err(misplaced)?;
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let body = if call.vault.reads_bodies(to.host) {
            let max = MAX_FILLED.min(budget.sent_left());
            let whole = Limited::new(WithoutTrailers(body), max).collect().await.map_err(|_| {
                let why = format!("its body could not be read whole, which a secret needs; it may have {max} bytes");
                Failed::new(Error::HttpRequestBodySize(Some(max as u64)), why)
            })?;
            let filled = call.vault.fill_body(to, &headers, whole.to_bytes().into()).map_err(misplaced)?;
            headers.remove(CONTENT_LENGTH);
            Full::from(filled).map_err(Error::from).boxed_unsync()
        } else {
            WithoutTrailers(body).boxed_unsync()
        };
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        Ok(request)
    }
}

/// Looks up the name and connects to an allowed address.
async fn connect(call: &Shared, route: &Route, options: RequestOptions) -> Result<Box<dyn Stream>, Failed> {
    let Route { scheme, host, port, reach } = route;
    let client = &call.client;
    let addresses = resolve(client.lookups(), &call.plugin, host, *port, *reach).await.map_err(|unreachable| {
        match unreachable {
            Unreachable::Unknown(reason) => {
                tracing::debug!(plugin = %call.plugin, %host, %reason, "a name was not found");
                let error = Error::DnsError { rcode: None, info_code: None };
                Failed::new(error, "the host's name could not be found")
            }
            // Only the operator's log has the addresses, because they describe the operator's network.
            Unreachable::Prohibited(found) => {
                tracing::warn!(plugin = %call.plugin, %host, ?found, "a request to a prohibited address was refused");
                let own = "its name leads to no address that may be reached; if it is one of your own network, and \
                           neither link-local nor a cloud's metadata, say `private = true` in the rule";
                Failed::new(Error::DestinationIpProhibited, own)
            }
        }
    })?;
    // The operator's own network is trusted not to listen. If the name leads out of it, a plugin with secrets sends
    // nothing in the clear.
    let in_the_clear = *scheme == Scheme::Http && !call.vault.is_empty();
    let addresses: Vec<_> = addresses.into_iter().filter(|at| !in_the_clear || !is_public(at.ip())).collect();
    if addresses.is_empty() {
        let why = "its name leads out of your own network, and a plugin with secrets sends nothing there in the clear";
        return Err(Failed::new(Error::DestinationIpProhibited, why));
    }
    let patience = options.connect_timeout.unwrap_or(Duration::MAX);
    let connected = timeout(patience, client.connect(*scheme, host, &addresses)).await;
    connected.unwrap_or(Err(Error::ConnectionTimeout)).map_err(|error| {
        let why = format!("could not connect: {error}");
        Failed::new(error, why)
    })
}

/// Passes the body to the guest, and returns its trailers. Stops if the guest does not wait any more.
async fn deliver(
    call: &Shared,
    mut body: Incoming,
    coding: Coding,
    between: Duration,
    (budget, over): (&Budget, &Over),
    answer: &mut Answer,
) -> Result<Option<HeaderMap>, Failed> {
    let (mut unpacker, mut redactor, mut trailers) = (Unpacker::new(coding), call.vault.redactor(), None);
    let broken = |_: io::Error| {
        Failed::new(
            Error::HttpResponseContentCoding(Some("gzip".to_owned())),
            "its answer says that it is gzip, and it is not",
        )
    };
    let count = |unpacker: &mut Unpacker| {
        if budget.receive(unpacker.grown()) { Ok(()) } else { Err(received_too_much()) }
    };
    let mut redacted = |piece: Bytes, is_last: bool| match &mut redactor {
        Some(redactor) => {
            let mut redacted = redactor.push(&piece);
            if is_last {
                redacted.extend(redactor.finish());
            }
            Bytes::from(redacted)
        }
        None => piece,
    };
    loop {
        let late = |_| Failed::new(Error::ConnectionReadTimeout, "the answer paused for longer than the tool allows");
        let Some(frame) = timeout(between, body.frame()).await.map_err(late)? else { break };
        match frame.map_err(|error| explain(&error, over))?.into_data() {
            Ok(mut packed) => {
                while !packed.is_empty() {
                    let piece = unpacker.step(&mut packed).map_err(broken)?;
                    count(&mut unpacker)?;
                    if let Err(ReceiverClosed) = answer.piece(redacted(piece, false)).await {
                        return Ok(None);
                    }
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let piece = unpacker.finish().map_err(broken)?;
    count(&mut unpacker)?;
    match answer.piece(redacted(piece, true)).await {
        Ok(()) => Ok(trailers),
        Err(ReceiverClosed) => Ok(None),
    }
}

/// Fields that describe the length or the content of an answer's body.
const OF_THE_BODY: [HeaderName; 5] = [
    CONTENT_LENGTH,
    http::header::ETAG,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Whether an answer is partial, or in an encoding in which the host cannot find secrets.
fn is_unsearchable(head: &http::response::Parts) -> bool {
    let text = |name: HeaderName| {
        let values = head.headers.get_all(name);
        values.iter().map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase()).collect::<Vec<_>>()
    };
    let foreign = |kind: &String| {
        let charset = kind.split(';').skip(1).filter_map(|parameter| parameter.trim().strip_prefix("charset="));
        kind.starts_with("multipart/byteranges") || charset.into_iter().any(|name| !is_plain(name.trim_matches('"')))
    };
    head.status == StatusCode::PARTIAL_CONTENT
        || text(http::header::TRANSFER_ENCODING).iter().any(|coding| coding.trim() != "chunked")
        || text(http::header::CONTENT_TYPE).iter().any(foreign)
}

/// Whether a character encoding writes ASCII as itself.
fn is_plain(charset: &str) -> bool {
    matches!(
        charset,
        "utf-8" | "utf8" | "us-ascii" | "ascii" | "iso-8859-1" | "iso-8859-15" | "latin1" | "windows-1252"
    )
}

/// Redacts the fields of an answer, and removes a field whose name holds a secret.
fn redact(call: &Shared, headers: &mut HeaderMap) {
    if call.vault.is_empty() {
        return;
    }
    let tells = |name: &&HeaderName| call.vault.redacted(name.as_str().to_owned()) != name.as_str();
    let telling: Vec<_> = headers.keys().filter(tells).cloned().collect();
    telling.iter().for_each(|name| drop(headers.remove(name)));
    for value in headers.values_mut() {
        let redacted = call.vault.redacted(String::from_utf8_lossy(value.as_bytes()).into_owned());
        *value = HeaderValue::try_from(redacted).unwrap_or_else(|_| HeaderValue::from_static(""));
    }
}

fn received_too_much() -> Failed {
    let why = "the answers to this call have more bytes than they may, unpacked (limit `limits.http_received_bytes`)";
    Failed::new(Error::HttpResponseBodySize(None), why)
}

/// The failure behind an error of the connection.
fn explain(error: &hyper::Error, over: &Over) -> Failed {
    if over.received.load(Ordering::Relaxed) {
        return received_too_much();
    }
    if over.sent.load(Ordering::Relaxed) {
        let why = "the requests of this call have more bytes than they may (limit `limits.http_sent_bytes`)";
        return Failed::new(Error::HttpRequestBodySize(None), why);
    }
    let source = std::error::Error::source(error);
    let by_guest = source.and_then(|source| source.downcast_ref::<Error>());
    let by_wire = source.and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    if let Some(Error::HttpRequestTrailerSectionSize(_)) = by_guest {
        return Failed::new(Error::HttpRequestTrailerSectionSize(Some(0)), "the host sends no trailers");
    }
    if error.is_user() {
        return Failed::new(Error::HttpProtocolError, "the tool did not finish the body of its request");
    }
    if error.is_parse_too_large() {
        let why = format!("the head of the answer has more than {MAX_HEAD} bytes or {MAX_FIELDS} fields");
        return Failed::new(Error::HttpResponseHeaderSectionSize(Some(MAX_HEAD as u32)), why);
    }
    if error.is_incomplete_message() || by_wire == Some(io::ErrorKind::UnexpectedEof) {
        return Failed::new(Error::HttpResponseIncomplete, "the server closed before the end of its answer");
    }
    if error.is_parse() || matches!(by_wire, Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)) {
        return Failed::new(Error::HttpProtocolError, "the server's answer is not HTTP/1.1");
    }
    Failed::new(Error::ConnectionTerminated, "the connection broke")
}
