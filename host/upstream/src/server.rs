//! One upstream: its process, which is started when it is needed and again after its end, its tools, and the permits of its calls.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dispatch::ports::Run;
use domain::{
    Digest, Json, Outcome, Span, Timestamp,
    outcome::{Failure, FailureCode},
    tool::Recovery,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::catalog::{Catalog, Listed};
use crate::connection::{Connection, NoAnswer};
use crate::declaration::Declaration;
use crate::message::Answer;
use crate::pins::{Accepted, Pins};
use crate::settings::{Parts, UpstreamSettings};
use crate::{Problem, result};

/// The revisions of the protocol that this host speaks to a server. The first is what it asks for.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The member of `_meta` with the idempotency key of a call.
const KEY: &str = "dev.toolgate/idempotencyKey";

/// The time for an answer that needs no work.
const PING: Span = Span::from_secs(5);

/// The pause after the first failure in a row. It doubles with each further one.
const PAUSE: Span = Span::from_secs(1);
const MAX_PAUSE: Span = Span::from_secs(60);

/// The pages of one list of tools.
const MAX_PAGES: usize = 64;

/// Lists the tools again before a call if the last list is older.
const LISTED_FOR: Span = Span::from_secs(300);

pub(crate) struct Server {
    pub(crate) settings: UpstreamSettings,
    pub(crate) identity: Digest,
    parts: Parts,
    pins: Arc<Pins>,
    state: tokio::sync::Mutex<State>,
    cached: Mutex<Cached>,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Whether the operator has accepted other tools since the server was started.
    is_stale: AtomicBool,
}

/// The connection, and the failures since the last answer to a call.
#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    listed_at: Option<Timestamp>,
    failures: u32,
    not_before: Option<Timestamp>,
    last: String,
}

/// The catalog, and what it was made from.
struct Cached {
    accepted: Arc<Accepted>,
    listed: Option<Arc<Listed>>,
    catalog: Arc<Catalog>,
    /// Why the server is not usable, if it is not.
    fault: Option<String>,
}

impl Server {
    pub(crate) fn new(settings: UpstreamSettings, parts: Parts, pins: Arc<Pins>) -> Self {
        let (identity, accepted) = (settings.identity(), pins.current());
        let catalog = Catalog::new(&settings, identity, accepted.of(settings.name()), None, &parts.make);
        let cached = Cached { accepted, listed: None, catalog: Arc::new(catalog), fault: None };
        let free = Arc::new(Semaphore::new(settings.bounds.concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            settings,
            identity,
            parts,
            pins,
            state: tokio::sync::Mutex::default(),
            cached: Mutex::new(cached),
            free,
            waiting: AtomicUsize::new(0),
            is_stale: AtomicBool::new(false),
        }
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools now.
    pub(crate) fn catalog(self: &Arc<Self>) -> Arc<Catalog> {
        let accepted = self.pins.current();
        let mut cached = self.cached();
        if !Arc::ptr_eq(&cached.accepted, &accepted) {
            cached.accepted = accepted;
            self.renew(&mut cached);
            // The operator has seen what the program declares now, and maybe another version of it runs.
            self.is_stale.store(true, Ordering::Release);
            self.ask_again();
        }
        cached.catalog.clone()
    }

    fn renew(&self, cached: &mut Cached) {
        let (accepted, listed) = (cached.accepted.of(self.settings.name()), cached.listed.as_deref());
        cached.catalog = Arc::new(Catalog::new(&self.settings, self.identity, accepted, listed, &self.parts.make));
        let plugin = &self.settings.plugin;
        for (tool, problem) in &cached.catalog.problems {
            tracing::warn!(upstream = %plugin, tool = %escape::excerpt(tool, 200), "this tool is not offered: {problem}");
        }
    }

    /// Why the server cannot be used, if it could not be when it was last asked.
    pub(crate) fn fault(&self) -> Option<String> {
        self.cached().fault.clone()
    }

    /// Learns in the background whether the tools have changed, because a refused tool is never called.
    fn ask_again(self: &Arc<Self>) {
        let server = self.clone();
        // If it fails, the fault of the server says so.
        drop(self.parts.runtime.spawn(async move { server.usable().await.map(drop) }));
    }

    /// Why calls of a tool with this problem are refused, and what the operator can do.
    pub(crate) fn refusal(self: &Arc<Self>, tool: &str, problem: &Problem) -> String {
        self.ask_again();
        let name = self.settings.name();
        format!(
            "the tool {} is not offered: {problem}. Nothing was carried out. The operator can review it with `toolgate upstream \
             review {name}`",
            escape::excerpt(tool, 100)
        )
    }

    /// Takes a permit for a call.
    ///
    /// # Errors
    /// The outcome of a call that waited too long, or that found the queue full.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, Outcome> {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::AcqRel);
            }
        }
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let (name, bounds) = (self.settings.name(), self.settings.bounds);
        let busy = |why: String| {
            let message = format!(
                "the MCP server {name} already runs {} calls (`concurrency`), {why}; nothing was carried out, try again later",
                bounds.concurrency
            );
            Outcome::Failed(Failure::new(FailureCode::Busy, message))
        };
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Waiting(&self.waiting);
        if before >= bounds.queue {
            return Err(busy(format!("and {} more wait (`queue`)", bounds.queue)));
        }
        let wait = Duration::from_millis(bounds.wait.millis());
        let waited = tokio::time::timeout(wait, self.free.clone().acquire_owned()).await;
        let late = || busy(format!("and none of them ended within {} ms (`queue_ms`)", bounds.wait.millis()));
        waited.ok().and_then(Result::ok).ok_or_else(late)
    }

    /// Makes one call.
    pub(crate) async fn call(self: &Arc<Self>, run: &Run) -> Outcome {
        if run.attempt > 1 && run.pinned.recovery != Recovery::Retry {
            return Outcome::InDoubt;
        }
        let begun = self.now();
        let connection = match tokio::time::timeout(time(run.pinned.timeout), self.usable()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(why)) => return result::outcome(&self.settings, Err(NoAnswer::NotSent(why))),
            Err(_) => {
                let why = NoAnswer::NotSent("did not start in time".to_owned());
                return result::outcome(&self.settings, Err(why));
            }
        };
        let catalog = self.catalog();
        let Some(offered) = catalog.tools.get(&*run.tool) else {
            let problem = catalog.problems.get(&*run.tool).unwrap_or(&Problem::Missing);
            let refusal = self.refusal(&run.tool, problem);
            return Outcome::Failed(Failure::new(FailureCode::ToolUnavailable, refusal));
        };
        if offered.known.pinned.declaration != run.pinned.declaration {
            let refusal = self.refusal(&run.tool, &Problem::Changed);
            return Outcome::Failed(Failure::new(FailureCode::ToolUnavailable, refusal));
        }
        let left = Span::from_millis(run.pinned.timeout.millis().saturating_sub(self.since(begun).millis()));
        let params = call_params(&offered.name, run);
        let answer = connection.request("tools/call", &params, left).await;
        // A start that runs must not delay this answer.
        if let (Ok(_), Ok(mut state)) = (&answer, self.state.try_lock()) {
            state.failures = 0;
        }
        let outcome = result::outcome(&self.settings, answer);
        checked(offered.known.clone(), outcome).await
    }

    pub(crate) fn since(&self, begun: Timestamp) -> Span {
        Span::from_millis(self.now().millis().saturating_sub(begun.millis()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// As [`Server::connected`], on the threads of the host, because those of guests have no I/O. A start goes on if its caller
    /// gives up, so that it ends with the process or with a pause.
    pub(crate) async fn usable(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let server = self.clone();
        let connected = self.parts.runtime.spawn(async move { server.connected().await });
        connected.await.unwrap_or_else(|error| Err(format!("could not be asked: {error}")))
    }

    /// A connection to a server whose tools are known. Starts the server if it does not run.
    ///
    /// # Errors
    /// Why it is missing. The text continues a sentence about the server.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        let mut state = self.state.lock().await;
        if self.is_stale.swap(false, Ordering::AcqRel) {
            // Calls that run keep theirs until they end.
            state.connection = None;
        }
        if let Some(connection) = state.connection.clone() {
            match self.in_time(self.still_usable(&mut state, &connection)).await {
                Ok(()) => return Ok(connection),
                Err(why) => self.failed(&mut state, why),
            }
        }
        if state.not_before.is_some_and(|not_before| self.now() < not_before) {
            return Err(format!("{}; it is started again after a pause", state.last));
        }
        match self.in_time(self.start(&mut state)).await {
            Ok(connection) => {
                self.cached().fault = None;
                Ok(connection)
            }
            Err(why) => {
                self.failed(&mut state, why.clone());
                Err(why)
            }
        }
    }

    /// All steps of a start, or of a list, share one deadline.
    async fn in_time<T>(&self, steps: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let late = || "has not listed its tools in time".to_owned();
        tokio::time::timeout(time(self.settings.bounds.start), steps).await.unwrap_or_else(|_| Err(late()))
    }

    /// Records a failure. The next start is after a pause.
    fn failed(&self, state: &mut State, why: String) {
        let why = (self.settings.redact)(why);
        tracing::warn!(upstream = %self.settings.plugin, "the server {}", escape::excerpt(&why, 1_000));
        let pause = PAUSE.millis().saturating_mul(1 << state.failures.min(10)).min(MAX_PAUSE.millis());
        state.connection = None;
        state.failures += 1;
        state.not_before = Some(self.now() + Span::from_millis(pause));
        state.last.clone_from(&why);
        self.cached().fault = Some(why);
    }

    async fn still_usable(&self, state: &mut State, connection: &Connection) -> Result<(), String> {
        if let Some(why) = connection.ended() {
            return Err(why);
        }
        if connection.is_silent() && connection.request("ping", "{}", PING).await.is_err() {
            return Err("does not answer".to_owned());
        }
        if connection.take_changed() || state.listed_at.is_none_or(|at| self.since(at) > LISTED_FOR) {
            self.list(state, connection).await?;
        }
        Ok(())
    }

    async fn start(&self, state: &mut State) -> Result<Arc<Connection>, String> {
        let UpstreamSettings { program, bounds, plugin, redact, .. } = &self.settings;
        let connection = Connection::start(program, bounds.message, plugin, redact, &self.parts.clock)?;
        let version = env!("CARGO_PKG_VERSION");
        let params = format!(
            r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"toolgate","version":"{version}"}}}}"#,
            REVISIONS[0]
        );
        let answer = self.ask(&connection, "initialize", &params).await?;
        #[derive(Deserialize)]
        struct Initialized {
            #[serde(rename = "protocolVersion")]
            version: String,
        }
        let Initialized { version } = serde_json::from_str(&answer).map_err(|error| malformed(&error))?;
        if !REVISIONS.contains(&version.as_str()) {
            let version = escape::quoted(&version, 40);
            return Err(format!("speaks the revision {version}; this host speaks {}", REVISIONS.join(", ")));
        }
        connection.notify("notifications/initialized", "{}");
        self.list(state, &connection).await?;
        let connection = Arc::new(connection);
        state.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Asks for all tools, and publishes them.
    async fn list(&self, state: &mut State, connection: &Connection) -> Result<(), String> {
        let listed = Arc::new(self.listed(connection).await?);
        state.listed_at = Some(self.now());
        let mut cached = self.cached();
        cached.listed = Some(listed);
        self.renew(&mut cached);
        Ok(())
    }

    async fn listed(&self, connection: &Connection) -> Result<Listed, String> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(rename = "nextCursor", default)]
            next: Option<String>,
        }
        let bounds = self.settings.bounds;
        let (mut listed, mut size, mut params) = (Listed::new(), 0, "{}".to_owned());
        for _ in 0..MAX_PAGES {
            let text = self.ask(connection, "tools/list", &params).await?;
            let page: Page<'_> = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
            for tool in page.tools {
                size += tool.get().len();
                if listed.len() == bounds.tools {
                    return Err(format!("declares more than {} tools (limit `catalog.tools`)", bounds.tools));
                }
                if size > bounds.declarations {
                    let max = bounds.declarations;
                    return Err(format!("declares tools of more than {max} bytes (limit `catalog.declaration_bytes`)"));
                }
                let tool = Declaration::read(tool.get()).map_err(|error| malformed(&error))?;
                let name = tool.name().to_owned();
                if listed.insert(name.clone(), tool).is_some() {
                    return Err(format!("declares two tools with the name {}", escape::quoted(&name, 80)));
                }
            }
            match page.next {
                Some(next) => params = format!(r#"{{"cursor":{}}}"#, domain::json::quote(&next)),
                None => return Ok(listed),
            }
        }
        Err(format!("lists its tools on more than {MAX_PAGES} pages"))
    }

    /// The tools that the server declares now, from a process of its own.
    pub(crate) async fn review(&self) -> Result<(Arc<Accepted>, Arc<Listed>), String> {
        let mut state = State::default();
        self.in_time(self.start(&mut state)).await?;
        let listed = self.cached().listed.clone().unwrap_or_default();
        Ok((self.pins.current(), listed))
    }

    /// The result of a request that needs no work, without secrets.
    async fn ask(&self, connection: &Connection, method: &str, params: &str) -> Result<String, String> {
        match connection.request(method, params, self.settings.bounds.start).await {
            Ok(Answer::Result(text)) => Ok((self.settings.redact)(text)),
            Ok(Answer::Error { code, message }) => {
                let message = (self.settings.redact)(message);
                Err(format!("refuses `{method}`: {} (error {code})", escape::excerpt(&message, 200)))
            }
            Err(NoAnswer::NotSent(why) | NoAnswer::Unknown(why)) => Err(why),
            Err(NoAnswer::OutOfTime) => Err(format!("does not answer `{method}`")),
        }
    }
}

fn time(span: Span) -> Duration {
    Duration::from_millis(span.millis())
}

fn malformed(error: &dyn std::fmt::Display) -> String {
    format!("sent a malformed answer: {}", escape::excerpt(&error.to_string(), 200))
}

/// The arguments go out verbatim.
fn call_params(name: &str, run: &Run) -> String {
    let quote = domain::json::quote;
    let (name, key) = (quote(name), quote(&run.idempotency_key));
    let mut params = String::with_capacity(run.arguments.size() + name.len() + 128);
    // Writing to a string does not fail.
    let _ = write!(params, r#"{{"name":{name},"arguments":{},"_meta":{{"{KEY}":{key}}}}}"#, run.arguments.as_str());
    params
}

/// The outcome, unless the result breaks the accepted schema of results.
async fn checked(known: Arc<dispatch::ports::KnownTool>, outcome: Outcome) -> Outcome {
    let Outcome::Ok { value, .. } = &outcome else { return outcome };
    if known.tool.options.result.is_none() {
        return outcome;
    }
    let value: Json = value.clone();
    let faults = tokio::task::spawn_blocking(move || known.checks.result(&value)).await;
    match faults {
        Ok(faults) if faults.is_empty() => outcome,
        Ok(faults) => {
            let list: Vec<_> = faults.iter().map(ToString::to_string).collect();
            let message = format!("the tool ran, and its result breaks the schema it declares: {}", list.join("; "));
            Outcome::Failed(Failure::new(FailureCode::InvalidResult, message))
        }
        Err(error) => {
            tracing::error!(%error, "the host could not check a result");
            let message = "the tool ran, and the host failed to check its result";
            Outcome::Failed(Failure::new(FailureCode::HostFault, message))
        }
    }
}

/// The names of all tools of a catalog with their problems.
pub(crate) fn problems(catalog: &Catalog) -> BTreeMap<String, Problem> {
    catalog.problems.clone()
}
