//! One upstream: its tools, its connection, and the permits of its calls.

mod link;
#[cfg(test)]
mod tests;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use dispatch::ports::{KnownTool, Run};
use domain::{
    Digest, Json, Outcome, Span, Timestamp,
    outcome::{Failure, FailureCode},
    tool::Recovery,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::link::State;
use self::tools::Tools;
use crate::catalog::{self, Catalog};
use crate::declaration::Declaration;
use crate::diff::{Gate, Review};
use crate::message::NoAnswer;
use crate::pause::Pause;
use crate::pins::{AcceptedServer, Pins};
use crate::settings::{Parts, UpstreamSettings};
use crate::{Problem, result};

/// The member of `_meta` with the idempotency key of a call.
const KEY: &str = "dev.toolgate/idempotencyKey";

pub(crate) struct Server {
    pub(crate) settings: UpstreamSettings,
    pub(crate) identity: Digest,
    parts: Parts,
    pins: Arc<Pins>,
    state: tokio::sync::Mutex<State>,
    pause: Arc<Pause>,
    tools: Tools,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Whether the operator has accepted other tools since the server was started.
    is_stale: AtomicBool,
}

impl Server {
    pub(crate) fn new(settings: UpstreamSettings, parts: Parts, pins: Arc<Pins>) -> Self {
        let (identity, accepted) = (settings.identity(), pins.current());
        let of_server = accepted.of(settings.name());
        let catalog = Catalog::new(&settings, identity, of_server, None, &parts.make, &Catalog::default());
        let tools = Tools::new(accepted, catalog);
        let pause = Arc::new(Pause::new(parts.clock.clone()));
        let free = Arc::new(Semaphore::new(settings.bounds.concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            settings,
            identity,
            parts,
            pins,
            state: tokio::sync::Mutex::default(),
            pause,
            tools,
            free,
            waiting: AtomicUsize::new(0),
            is_stale: AtomicBool::new(false),
        }
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
        let outcome = match self.sent(run, begun).await {
            // Such a request was not carried out, so a new session gets it.
            Err(NoAnswer::SessionEnded) => self.sent(run, begun).await,
            sent => sent,
        };
        outcome.unwrap_or_else(|none| result::outcome(&self.settings, Err(none)))
    }

    /// Sends a call, if its declaration is still the accepted one.
    async fn sent(self: &Arc<Self>, run: &Run, begun: Timestamp) -> Result<Outcome, NoAnswer> {
        let left = || Span::from_millis(run.pinned.timeout.millis().saturating_sub(self.since(begun).millis()));
        let usable = tokio::time::timeout(time(left()), self.usable()).await;
        let connection =
            usable.unwrap_or_else(|_| Err("did not start in time".to_owned())).map_err(NoAnswer::NotSent)?;
        let refused = |refusal: String| Ok(Outcome::Failed(Failure::new(FailureCode::ToolUnavailable, refusal)));
        let catalog = self.catalog();
        let Some(offered) = catalog.tools.get(&*run.tool) else {
            return refused(self.refusal(&run.tool, catalog.problems.get(&*run.tool).unwrap_or(&Problem::Missing)));
        };
        if offered.known.pinned.declaration != run.pinned.declaration {
            return refused(self.refusal(&run.tool, &Problem::Changed));
        }
        let answer = connection.request("tools/call", &call_params(&offered.name, run), left()).await?;
        // A start that runs must not delay this answer.
        if let Ok(mut state) = self.state.try_lock() {
            state.failures = 0;
        }
        Ok(checked(offered.known.clone(), result::outcome(&self.settings, Ok(answer))).await)
    }

    /// The digest of what the operator has accepted.
    pub(crate) fn accepted(&self) -> Digest {
        let accepted = self.pins.current();
        accepted.of(self.settings.name()).map_or_else(|| AcceptedServer::default().digest(), AcceptedServer::digest)
    }

    /// The threads for I/O.
    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        &self.parts.runtime
    }

    pub(crate) fn since(&self, begun: Timestamp) -> Span {
        Span::from_millis(self.now().millis().saturating_sub(begun.millis()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Compares what the server declares now with what is accepted.
    ///
    /// # Errors
    /// Why the server cannot be asked. The text continues a sentence about the server.
    pub(crate) async fn review(&self) -> Result<Review, String> {
        let listed = self.declared().await?;
        let settings = &self.settings;
        let gate = |(name, declaration): (&String, &Declaration)| {
            let made = catalog::made(settings, self.identity, declaration, &self.parts.make);
            let gate = Gate {
                name: settings.tool_name(name),
                approval: settings.approval_of(name),
                is_repeated: settings.recovery_of(declaration) == Recovery::Retry,
                findings: made.err().unwrap_or_default(),
            };
            (name.clone(), gate)
        };
        let gates: BTreeMap<_, _> = listed.iter().map(gate).collect();
        let unknown: BTreeSet<_> = settings.named().filter(|name| !listed.contains_key(*name)).cloned().collect();
        let accepted = self.pins.current();
        let accepted = accepted.of(settings.name());
        Ok(Review::new(accepted, &settings.target, &listed, gates, unknown.into_iter().collect()))
    }
}

fn time(span: Span) -> Duration {
    Duration::from_millis(span.millis())
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
async fn checked(known: Arc<KnownTool>, outcome: Outcome) -> Outcome {
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
