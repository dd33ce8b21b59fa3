//! What one call may do over HTTP: the hooks that the implementation of `wasi:http` calls for each of its requests.

use std::sync::Arc;
use std::time::Duration;

use domain::{Limits, PluginName};
use http::header::{ACCEPT, ACCEPT_ENCODING, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response};
use tokio::sync::Semaphore;
use url::Url;
use wasmtime::component::ResourceTable;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks,
};

use super::exchange::{Exchange, MAX_FILLED, Route};
use super::rule::is_name;
use super::traffic::Traffic;
use super::{HttpClient, Reach, Scheme, denial};
use crate::call::Job;
use crate::capability::Grants;
use crate::capability::secrets::Vault;
use crate::report::{Level, Log};
use crate::spending::Held;

/// What the fields of one resource `fields` may take of the host's memory. A call has at most as many as it has handles.
pub(super) const MAX_FIELDS: usize = 16 << 10;

/// Bytes that a guest can write to a request's body at once. The host keeps up to two such pieces for each body.
pub(super) const MAX_WRITE: usize = 8 << 10;

/// What the host holds for one request at once: two heads, what it reads ahead of the guest, and the pieces under way.
const HELD: usize = 256 << 10;

/// Bytes of a URL.
const MAX_URL: usize = 8 << 10;

/// Fields that a guest can neither set nor see besides those of the library: they speak of the connection, which is the
/// host's, make the two ends of one disagree about where a message ends, or make a server take the request for one of
/// another method or path than the one that was held against the rules.
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

/// Fields that choose in which pieces or which characters an answer comes. A plugin with secrets does not choose: what is
/// echoed in pieces, or in an encoding of the guest's choice, is not found.
const CHOOSING: [HeaderName; 3] = [http::header::RANGE, http::header::IF_RANGE, http::header::ACCEPT_CHARSET];

/// The field that tells a service which requests are one and the same.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What a call may do, from its job.
pub(crate) struct Terms {
    client: Option<HttpClient>,
    plugin: PluginName,
    grants: Arc<Grants>,
    idempotency_key: Arc<str>,
    vault: Vault,
    limits: Limits,
}

impl Terms {
    /// The terms of a job.
    pub(crate) fn new(client: Option<&HttpClient>, job: &Job, vault: &Vault, limits: &Limits) -> Self {
        Self {
            client: client.cloned(),
            plugin: job.plugin.clone(),
            grants: Arc::clone(&job.grants),
            idempotency_key: Arc::clone(&job.idempotency_key),
            vault: vault.clone(),
            limits: *limits,
        }
    }

    /// The beginning of the call's first request. `None` on a host that sends none.
    fn open(self, log: Log) -> Option<Open> {
        let Self { client, plugin, grants, idempotency_key, vault, limits } = self;
        let shared = Shared {
            client: client?,
            plugin,
            vault,
            log,
            time: Duration::from_millis(limits.http_time.millis()),
            places: Arc::new(Semaphore::new(limits.http_concurrent as usize)),
            traffic: Arc::new(Traffic::new(&limits)),
        };
        Some(Open { shared: Arc::new(shared), grants, idempotency_key, unsafe_requests: 0 })
    }
}

/// The requests of one call.
pub(crate) struct Session {
    context: WasiHttpCtx,
    requests: Requests,
}

impl Session {
    /// A call's session. Without terms every request is denied, as when a plugin is asked for its tools.
    pub(crate) fn new(terms: Option<Terms>, log: Log, held: Held) -> Self {
        let mut context = WasiHttpCtx::new();
        context.set_field_size_limit(MAX_FIELDS);
        let left = terms.as_ref().map_or(0, |terms| terms.limits.http_requests);
        let open = terms.and_then(|terms| terms.open(log.clone()));
        Self { context, requests: Requests { open, left, log, held } }
    }

    /// What its requests sent, and what their answers brought.
    pub(crate) fn passed(&self) -> (usize, usize) {
        self.requests.open.as_ref().map_or((0, 0), |open| open.shared.traffic.passed())
    }

    /// What the implementation of `wasi:http` works with.
    pub(crate) fn view<'a>(&'a mut self, table: &'a mut ResourceTable) -> WasiHttpCtxView<'a> {
        WasiHttpCtxView { hooks: &mut self.requests, table, ctx: &mut self.context }
    }

    /// What the implementation calls, for tests that do it themselves.
    #[cfg(test)]
    pub(super) fn hooks(&mut self) -> &mut dyn WasiHttpHooks {
        &mut self.requests
    }
}

struct Requests {
    open: Option<Open>,
    left: u32,
    log: Log,
    held: Held,
}

struct Open {
    shared: Arc<Shared>,
    grants: Arc<Grants>,
    idempotency_key: Arc<str>,
    unsafe_requests: u32,
}

/// What the requests of a call have in common.
pub(super) struct Shared {
    pub(super) client: HttpClient,
    pub(super) plugin: PluginName,
    pub(super) vault: Vault,
    pub(super) log: Log,
    pub(super) time: Duration,
    /// One permit for each request at once; more wait.
    pub(super) places: Arc<Semaphore>,
    pub(super) traffic: Arc<Traffic>,
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

    /// The host sets it, from what it checked.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        MAX_WRITE
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _processing: Processing,
    ) -> Sending {
        match self.admit(request, options.unwrap_or_default()) {
            Ok(exchange) => {
                let (answer, task) = exchange.start();
                Box::new(async move {
                    let nothing_more: Processing = Box::new(std::future::ready(Ok(())));
                    Ok((answer.response(task).await?, nothing_more))
                })
            }
            Err(error) => Box::new(std::future::ready(Err(error))),
        }
    }
}

impl Requests {
    /// Holds a request against everything that can be known before anybody is asked anything.
    fn admit(&mut self, request: Request<WasiBody>, options: RequestOptions) -> Result<Exchange, Error> {
        let Some(open) = &mut self.open else {
            self.log.line(Level::Warn, "http: requests can be sent by calls of tools that were granted them");
            return Err(Error::HttpRequestDenied);
        };
        let Some(left) = self.left.checked_sub(1) else {
            self.log.line(Level::Warn, "http: the call sends more requests than it may (limit `http_requests`)");
            return Err(Error::ConnectionLimitReached);
        };
        self.left = left;
        let (parts, body) = request.into_parts();
        let url = normal(&parts.uri)?;
        let rules = &open.grants.http;
        let allowing: Vec<_> = rules.iter().filter(|rule| rule.allows(parts.method.as_str(), &url).is_ok()).collect();
        if allowing.is_empty() {
            for line in denial::explain(open.shared.plugin.as_str(), rules, &parts.method, &url) {
                self.log.line(Level::Warn, &line);
            }
            return Err(Error::HttpRequestDenied);
        }
        let reach = allowing.iter().map(|rule| rule.reach).find(|reach| *reach == Reach::Private).unwrap_or_default();
        let reads_body = open.shared.vault.reads_bodies(url.host_str().unwrap_or_default());
        // Kept until the guest has taken or thrown away the last of the answer's body.
        let held = HELD + open.shared.vault.held_back() + if reads_body { MAX_FILLED } else { 0 };
        let Ok(charge) = self.held.charge(held) else {
            self.log.line(Level::Warn, "http: no room for one more request at once (limit `host_bytes`)");
            return Err(Error::ConnectionLimitReached);
        };
        let headers = open.headers(&parts.method, &url, parts.headers)?;
        Ok(Exchange {
            charge: Some(charge),
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
    /// The fields of a request with those that are the host's.
    fn headers(&mut self, method: &Method, url: &Url, mut headers: HeaderMap) -> Result<HeaderMap, Error> {
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        headers.insert(HOST, HeaderValue::try_from(authority).map_err(|_| Error::HttpRequestUriInvalid)?);
        // What comes back has to be searched for secrets, so it may be packed only in a way that the host undoes.
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
        if ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
            self.unsafe_requests += 1;
            let key = format!("{}/{}", self.idempotency_key, self.unsafe_requests);
            let key = HeaderValue::try_from(key).map_err(|error| Error::InternalError(Some(error.to_string())))?;
            // In place of one that the guest chose: with a key of its own, a plugin could use up the key of another one's
            // request to the same service, which would then be answered and not carried out.
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        Ok(headers)
    }
}

fn is_forbidden(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name) || FORBIDDEN.contains(name)
}

/// The URL of a request in the normal form of the URL standard, which is what rules are held against and what is sent.
fn normal(uri: &http::Uri) -> Result<Url, Error> {
    let text = uri.to_string();
    if text.len() > MAX_URL {
        return Err(Error::HttpRequestUriTooLong);
    }
    // A user would be sent by nobody and might deceive whoever reads the URL.
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
