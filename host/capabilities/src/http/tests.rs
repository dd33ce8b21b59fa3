//! Requests, answers and refusals, with servers that misbehave in many ways.

mod hostile;
mod limited;
mod refused;
mod sent;
mod server;
mod tls;
mod unsent;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use domain::{Limits, PluginName, Span};
use futures::future::{BoxFuture, ready};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use tokio::runtime::Runtime;
use wasmtime_wasi_http::{Error, WasiBody};

use super::recorded::Recorder;
use super::session::{Session, Terms};
use super::{AuthorLog, HttpClient, HttpRule, Reach, Resolver};
use crate::journal::Journal;
use crate::secrets::{Secret, Vault};
use crate::usage::{HostMemory, SharedMemory};

/// A resolver with given answers, which records its questions. It repeats the last answer.
#[derive(Default)]
struct Names {
    found: Mutex<VecDeque<Vec<&'static str>>>,
    asked: Mutex<Vec<String>>,
}

impl Resolver for Names {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.lock().expect("no panic").push(name.to_owned());
        let mut found = self.found.lock().expect("no panic");
        let next = if found.len() > 1 { found.pop_front() } else { found.front().cloned() };
        let parsed = next.unwrap_or_default().iter().map(|text| text.parse().expect("an address")).collect();
        Box::pin(ready(Ok(parsed)))
    }
}

/// The lines of the call's log.
#[derive(Default)]
pub(super) struct Lines(Mutex<Vec<String>>);

impl AuthorLog for Lines {
    fn warn(&self, line: &str) {
        self.0.lock().expect("no panic").push(line.to_owned());
    }
}

/// One call that sends requests.
struct HttpCall {
    runtime: Runtime,
    session: Session,
    names: Arc<Names>,
    lines: Arc<Lines>,
    memory: HostMemory,
    /// The placeholder of the first secret.
    placeholder: Option<String>,
}

/// The grants and limits of a call.
struct Setup {
    rules: Vec<HttpRule>,
    secrets: Vec<Secret>,
    limits: Limits,
    found: Vec<Vec<&'static str>>,
    authorities: Vec<Vec<u8>>,
    /// Of a durable call.
    journal: Option<Journal>,
    /// The memory of all guests.
    shared: Arc<dyn SharedMemory>,
}

impl Default for Setup {
    /// Names resolve to loopback, and the time limit is short.
    fn default() -> Self {
        let limits = Limits { http_time: Span::from_secs(20), ..Limits::default() };
        let found = vec![vec!["127.0.0.1"]];
        Self { rules: vec![], secrets: vec![], limits, found, authorities: vec![], journal: None, shared: Arc::new(()) }
    }
}

/// A rule for all methods that can be granted.
fn rule(url: &str, reach: Reach) -> HttpRule {
    let methods = ["GET", "HEAD", "POST", "PUT", "OPTIONS"].map(str::to_owned);
    HttpRule::parse(url, methods.into(), reach).expect("a rule")
}

impl Setup {
    /// A call that may send anything to this host name on the port of a server, with any address.
    fn at(server: SocketAddr) -> Self {
        Self::with(vec![rule(&format!("http://api.example.com:{}", server.port()), Reach::Private)])
    }

    fn with(rules: Vec<HttpRule>) -> Self {
        Self { rules, ..Self::default() }
    }

    fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    fn found(mut self, found: Vec<Vec<&'static str>>) -> Self {
        self.found = found;
        self
    }

    fn world(self) -> HttpCall {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let names = Arc::new(Names { found: Mutex::new(self.found.clone().into()), asked: Mutex::default() });
        let resolver = Arc::clone(&names) as Arc<dyn Resolver>;
        let client = HttpClient::new(runtime.handle().clone(), resolver, &self.authorities).expect("authorities");
        HttpCall { names, ..self.with_client(runtime, client) }
    }

    fn with_client(self, runtime: Runtime, client: HttpClient) -> HttpCall {
        let lines = Arc::new(Lines::default());
        let plugin = PluginName::new("web").expect("a name");
        let vault = Vault::new(&plugin, "turn_1.call_1", &self.secrets);
        let placeholder = vault.placeholders().next().map(|(_, placeholder)| placeholder.to_owned());
        let terms = Terms {
            client: Some(client),
            plugin,
            rules: Arc::new(self.rules),
            idempotency_key: "turn_1.call_1".into(),
            vault,
            limits: self.limits,
        };
        let memory = HostMemory::new(self.limits.host_bytes, self.shared);
        let recorder = self.journal.map(|journal| Recorder::new(journal, memory.clone(), lines.clone()));
        let session = Session::new(Some(terms), lines.clone(), memory.clone(), recorder);
        HttpCall { runtime, session, names: Arc::default(), lines, memory, placeholder }
    }
}

/// A complete response, as the guest sees it.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    /// How the body ended: with trailers, without, or with an error.
    end: Result<Option<HeaderMap>, Error>,
}

impl Reply {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl HttpCall {
    fn send(&mut self, request: Request<WasiBody>) -> Result<Reply, Error> {
        let sending = self.session.hooks().send_request(request, None, Box::new(ready(Ok(()))));
        self.runtime.block_on(async {
            let (response, _) = Box::into_pin(sending).await?;
            let (head, mut incoming) = response.into_parts();
            let mut body = Vec::new();
            let end = loop {
                match incoming.frame().await {
                    None => break Ok(None),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(bytes) => body.extend_from_slice(&bytes),
                        Err(frame) => break Ok(frame.into_trailers().ok()),
                    },
                }
            };
            Ok(Reply { status: head.status.as_u16(), headers: head.headers, body, end })
        })
    }

    /// Sends a GET for this URL, and returns the response, which must be complete.
    fn get(&mut self, url: &str) -> Reply {
        let reply = self.send(get(url)).unwrap_or_else(|error| panic!("{url}: {error:?} {:?}", self.log()));
        assert!(reply.end.is_ok(), "{:?}", reply.end);
        reply
    }

    /// Sends a GET for this URL, and returns the error, which must come before the end of the body.
    fn fails(&mut self, url: &str) -> Error {
        match self.send(get(url)) {
            Err(error) | Ok(Reply { end: Err(error), .. }) => error,
            Ok(reply) => panic!("{url}: {reply:?}"),
        }
    }

    fn log(&self) -> Vec<String> {
        self.lines.0.lock().expect("no panic").clone()
    }

    fn asked(&self) -> Vec<String> {
        self.names.asked.lock().expect("no panic").clone()
    }
}

fn get(url: &str) -> Request<WasiBody> {
    request("GET", url, &[], "")
}

fn request(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Request<WasiBody> {
    let mut builder = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let body = Full::from(Bytes::copy_from_slice(body.as_bytes()));
    builder.body(body.map_err(Error::from).boxed_unsync()).expect("a request")
}
