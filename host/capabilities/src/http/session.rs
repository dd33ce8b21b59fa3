//! The requests of one call: the hooks that the library calls for each of them.

use std::sync::Arc;
use std::time::Duration;

use domain::journal::Transferred;
use domain::{Limits, PluginName, Span, Timestamp};
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use tokio::sync::Semaphore;
use url::Url;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::DynOutputStream;
use wasmtime_wasi_http::p2::types::HostFutureIncomingResponse;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks,
};

use super::exchange::{Exchange, MAX_FILLED, Route, Shared};
use super::metered::Budget;
use super::recorded::{MAX_BODY, Recorder};
use super::{AuthorLog, HttpClient, HttpRule, Reach, Scheme, denial};
use crate::host_pattern::is_name;
use crate::interface::GrantOf;
use crate::secrets::Vault;
use crate::stop::Stop;
use crate::usage::HostMemory;

/// Bytes of one resource `fields`. A call has at most as many of them as it has handles.
pub(super) const MAX_FIELDS: usize = 16 << 10;

/// Bytes that a guest can write to a request's body at once. The host keeps up to two such pieces for each body.
pub(super) const MAX_WRITE: usize = 8 << 10;

/// Host memory for one request: two heads, the bytes that are read ahead of the guest, and the pieces under way.
const EXCHANGE: usize = 256 << 10;

/// The maximum size of a URL in bytes.
const MAX_URL: usize = 8 << 10;

/// Fields that a guest can neither set nor see, besides those of the library. They describe the connection, which is
/// the host's; or the two ends can disagree about where a message ends; or a server reads another method or path than
/// the rules allowed.
const FORBIDDEN: [HeaderName; 9] = [
    http::header::TE,
    http::header::TRAILER,
    http::header::EXPECT,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-method-override"),
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
];

/// Fields that choose the pieces or the characters of an answer. A plugin with secrets may not choose them: the host
/// cannot find a secret that is echoed in pieces or in an encoding of the guest's choice.
const CHOOSING: [HeaderName; 3] = [http::header::RANGE, http::header::IF_RANGE, http::header::ACCEPT_CHARSET];

/// The field by which a service recognises a repeated request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The requests that a call may send.
pub(super) struct Terms {
    pub(super) client: Option<HttpClient>,
    pub(super) plugin: PluginName,
    pub(super) rules: Arc<GrantOf<Vec<HttpRule>>>,
    pub(super) idempotency_key: Arc<str>,
    pub(super) vault: Vault,
    pub(super) limits: Limits,
}

impl Terms {
    /// The state of a call that sends requests. `None` on a host without a client.
    fn open(self, log: Arc<dyn AuthorLog>) -> Option<Open> {
        let Self { client, plugin, rules, idempotency_key, vault, limits } = self;
        let shared = Shared {
            fair_share: client.as_ref()?.fair_share(&plugin),
            client: client?,
            plugin,
            vault,
            log,
            time: Duration::from_millis(limits.http_time.millis()),
            permits: Arc::new(Semaphore::new(limits.http_concurrent as usize)),
            budget: Arc::new(Budget::new(&limits)),
        };
        Some(Open { shared: Arc::new(shared), rules, idempotency_key, unsafe_requests: 0 })
    }
}

/// The requests of one call.
pub(super) struct Session {
    context: WasiHttpCtx,
    requests: Requests,
}

impl Session {
    /// Without terms every request is denied.
    pub(super) fn new(
        terms: Option<Terms>,
        log: Arc<dyn AuthorLog>,
        memory: HostMemory,
        recorder: Option<Recorder>,
    ) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELDS);
        let left = terms.as_ref().map_or(0, |terms| terms.limits.http_requests);
        let open = terms.and_then(|terms| terms.open(Arc::clone(&log)));
        let repeated = Transferred::default();
        Self { context, requests: Requests { open, left, repeated, log, memory, recorder } }
    }

    /// The bytes that were sent and received, without those of requests that an earlier run sent.
    pub(super) fn transferred(&self) -> Transferred {
        let Requests { open, repeated, .. } = &self.requests;
        let used = open.as_ref().map(|open| open.shared.budget.used()).unwrap_or_default();
        Transferred { sent: used.sent - repeated.sent, received: used.received - repeated.received }
    }

    pub(super) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.requests, table, ctx: &mut self.context }
    }

    /// Gathers the body of a durable call's request.
    pub(super) fn gather(&self, stream: &mut DynOutputStream) {
        if let Some(recorder) = &self.requests.recorder {
            recorder.gather(stream);
        }
    }

    /// The request that was handed over last belongs to this future.
    pub(super) fn awaited_by(&mut self, future: &Resource<HostFutureIncomingResponse>) {
        if let Some(recorder) = &mut self.requests.recorder {
            recorder.awaited_by(future);
        }
    }

    /// Carries out the requests of a durable call.
    pub(super) async fn settle(
        &mut self,
        table: &mut ResourceTable,
        may_wait: bool,
    ) -> wasmtime::Result<Option<Timestamp>> {
        self.requests.settle(table, may_wait).await
    }

    /// Reports the requests of a durable call that were not sent.
    pub(super) fn finish(&mut self) {
        if let Some(recorder) = &mut self.requests.recorder {
            recorder.finish();
        }
    }

    /// The hooks, for tests that call them.
    #[cfg(test)]
    pub(super) fn hooks(&mut self) -> &mut dyn WasiHttpHooks {
        &mut self.requests
    }
}

pub(super) struct Requests {
    open: Option<Open>,
    left: u32,
    /// The bytes of requests that an earlier run sent. They count against the limits of the call.
    repeated: Transferred,
    pub(super) log: Arc<dyn AuthorLog>,
    pub(super) memory: HostMemory,
    /// Of a durable call.
    pub(super) recorder: Option<Recorder>,
}

struct Open {
    shared: Arc<Shared>,
    rules: Arc<GrantOf<Vec<HttpRule>>>,
    idempotency_key: Arc<str>,
    unsafe_requests: u32,
}

/// Why a request is not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The guest sees it.
    Refused(Error),
    /// It ends the run of a durable call. A later run may find what is missing now, and the guest must not see a difference.
    Stopped(Stop),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Processing), Error>> + Send>;
type Processing = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Requests {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_forbidden)
    }

    /// The host sets the header itself, from the URL that it checked.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        if self.recorder.is_some() { MAX_BODY } else { MAX_WRITE }
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processing: Processing,
    ) -> Sending {
        if let Some(recorder) = &mut self.recorder {
            recorder.hand_over(request, options.unwrap_or_default());
            // The answer comes in another way.
            return Box::new(std::future::pending());
        }
        match self.check_request(request, options.unwrap_or_default(), None) {
            Ok(exchange) => {
                let (answer, task) = exchange.start();
                Box::new(async move {
                    let nothing_more: Processing = Box::new(std::future::ready(Ok(())));
                    Ok((answer.response(task).await?, nothing_more))
                })
            }
            Err(Unsent::Refused(error)) => Box::new(std::future::ready(Err(error))),
            Err(Unsent::Stopped(stop)) => stop.unwind(),
        }
    }
}

impl Requests {
    /// Counts a request that an earlier run sent.
    pub(super) fn repeat(&mut self, transferred: Option<Transferred>) {
        self.left = self.left.saturating_sub(1);
        let (Some(open), Some(transferred)) = (&self.open, transferred) else { return };
        let before = open.shared.budget.used();
        open.shared.budget.spend(transferred);
        let after = open.shared.budget.used();
        self.repeated.sent += after.sent - before.sent;
        self.repeated.received += after.received - before.received;
    }

    /// Counts a request of a durable call that this run sent.
    pub(super) fn spend(&self, transferred: Transferred) {
        if let Some(open) = &self.open {
            open.shared.budget.spend(transferred);
        }
    }

    /// The secrets of the host. `None`: nothing is granted.
    pub(super) fn vault(&self) -> Option<&Vault> {
        self.open.as_ref().map(|open| &open.shared.vault)
    }

    /// Whether the operator says that the server carries out a repeated request only once.
    pub(super) fn may_repeat(&self, parts: &http::request::Parts) -> bool {
        self.allowing(parts).iter().any(|rule| rule.idempotent)
    }

    /// The longest time that the host waits for a server before it sends this request again. `None`: it does not.
    pub(super) fn max_wait(&self, parts: &http::request::Parts) -> Option<Span> {
        self.allowing(parts).iter().filter_map(|rule| rule.retry).max()
    }

    /// The rules that allow a request.
    fn allowing(&self, parts: &http::request::Parts) -> Vec<&HttpRule> {
        let (Some(open), Ok(url)) = (&self.open, normal(&parts.uri)) else { return Vec::new() };
        let rules = (*open.rules).as_ref().iter();
        rules.filter(|rule| rule.allows(parts.method.as_str(), &url).is_ok()).collect()
    }

    /// Checks a request as far as possible without network access. `number` is the number of the request of a durable call.
    pub(super) fn check_request(
        &mut self,
        request: Request<WasiBody>,
        options: RequestOptions,
        number: Option<u32>,
    ) -> Result<Exchange, Unsent> {
        let Some(open) = &mut self.open else {
            self.log.warn("http: no grant allows requests");
            return Err(Error::HttpRequestDenied.into());
        };
        let Some(left) = self.left.checked_sub(1) else {
            self.log.warn("http: the call sends more requests than it may (limit `limits.http_requests`)");
            return Err(Error::ConnectionLimitReached.into());
        };
        self.left = left;
        let (parts, body) = request.into_parts();
        let url = normal(&parts.uri)?;
        let rules = (*open.rules).as_ref();
        let allowing: Vec<_> = rules.iter().filter(|rule| rule.allows(parts.method.as_str(), &url).is_ok()).collect();
        if allowing.is_empty() {
            for line in denial::explain(open.shared.plugin.as_str(), rules, &parts.method, &url) {
                self.log.warn(&line);
            }
            return Err(Error::HttpRequestDenied.into());
        }
        let reach = allowing.iter().map(|rule| rule.reach).find(|reach| *reach == Reach::Private).unwrap_or_default();
        let reads_body = open.shared.vault.reads_bodies(url.host_str().unwrap_or_default());
        // Charged until the guest has read or dropped the end of the answer's body.
        let held = EXCHANGE + open.shared.vault.held_back() + if reads_body { MAX_FILLED } else { 0 };
        let charge = match self.memory.charge(held) {
            Ok(charge) => charge,
            Err(stop @ Stop::GuestMemory) if self.recorder.is_some() => return Err(Unsent::Stopped(stop)),
            Err(stop) => {
                let is_of_guests = matches!(stop, Stop::GuestMemory);
                let key = if is_of_guests { "`guest_memory_bytes`" } else { "limit `limits.host_bytes`" };
                self.log.warn(&format!("http: no room for one more request at once ({key})"));
                return Err(Error::ConnectionLimitReached.into());
            }
        };
        let headers = open.headers(&parts.method, &url, parts.headers, number)?;
        Ok(Exchange {
            charge: Some(charge),
            // The journal has the bytes of each request of a durable call. Those that come too late belong to none.
            budget: match number {
                Some(_) => Arc::new(open.shared.budget.rest()),
                None => Arc::clone(&open.shared.budget),
            },
            call: Arc::clone(&open.shared),
            route: Route {
                scheme: Scheme::of(&url).ok_or(Error::HttpRequestUriInvalid)?,
                host: url.host().ok_or(Error::HttpRequestUriInvalid)?.to_owned(),
                port: url.port_or_known_default().ok_or(Error::HttpRequestUriInvalid)?,
                reach,
            },
            method: parts.method,
            url,
            headers,
            body,
            options,
        })
    }
}

impl Open {
    /// The fields of a request, with those of the host.
    fn headers(
        &mut self,
        method: &Method,
        url: &Url,
        mut headers: HeaderMap,
        number: Option<u32>,
    ) -> Result<HeaderMap, Error> {
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        headers.insert(HOST, HeaderValue::try_from(authority).map_err(|_| Error::HttpRequestUriInvalid)?);
        // The host searches the answer for secrets, so it accepts only a coding that it can undo.
        if !self.shared.vault.is_empty() || !headers.contains_key(ACCEPT_ENCODING) {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if !self.shared.vault.is_empty() {
            for name in CHOOSING {
                headers.remove(name);
            }
            let chooses =
                |value: &HeaderValue| value.as_bytes().to_ascii_lowercase().windows(7).any(|at| at == b"charset");
            if headers.get_all(ACCEPT).iter().any(chooses) {
                headers.remove(ACCEPT);
            }
        }
        if !is_safe(method) {
            self.unsafe_requests += 1;
            let key = format!("{}/{}", self.idempotency_key, number.unwrap_or(self.unsafe_requests));
            let key = HeaderValue::try_from(key).map_err(|error| Error::InternalError(Some(error.to_string())))?;
            // Replaces a key that the guest chose. With a key of its choice, a plugin could use up the key of another
            // plugin's request, and the service would not carry out that request.
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(headers)
    }
}

/// Whether a request of this method changes nothing.
pub(super) fn is_safe(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

fn is_forbidden(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name) || FORBIDDEN.contains(name)
}

/// The URL of a request in the normal form of the URL standard. The rules check this form, and the host sends it.
fn normal(uri: &http::Uri) -> Result<Url, Error> {
    let text = uri.to_string();
    if text.len() > MAX_URL {
        return Err(Error::HttpRequestUriTooLong);
    }
    // The host never sends a user name, and one in a URL can mislead its readers.
    if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return Err(Error::HttpRequestUriInvalid);
    }
    let url = Url::parse(&text).map_err(|_| Error::HttpRequestUriInvalid)?;
    let sound = match url.host() {
        Some(url::Host::Domain(name)) => is_name(name),
        Some(_) => true,
        None => false,
    };
    if sound && url.username().is_empty() && url.password().is_none() && url.port() != Some(0) {
        Ok(url)
    } else {
        Err(Error::HttpRequestUriInvalid)
    }
}
