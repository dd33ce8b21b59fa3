//! A loaded plugin: compiled and linked, ready for one instance for each call.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::{
    Digest, Limits, Span,
    outcome::{Failure, FailureCode},
};

use crate::abi::Declared;
use crate::call::{self, LoadedPlugin};
use crate::clock::Stopwatch;
use crate::ending;
use crate::guest::Guest;
use crate::job::{End, Job};
use crate::pool::{Expected, User};
use crate::report::Sink;

/// A loaded plugin. Cheap to clone; keeps the sandbox alive.
#[derive(Clone)]
pub struct Plugin(Arc<LoadedPlugin>);

/// How long the call of the catalog waits for a permit.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tools that one plugin may declare.
const MAX_TOOLS: usize = 1_000;

/// The limits of the question for the tools. The answer is a constant, but a Go or Python guest starts its whole
/// runtime for it.
pub(crate) const CATALOG: Limits = Limits {
    time: Span::from_secs(2),
    stop_grace: Span::from_millis(0),
    memory: 64 << 20,
    table_elements: 20_000,
    instances: 16,
    hostcall_bytes: 1 << 20,
    handles: 256,
    arguments: 0,
    result: 1 << 20,
    progress_updates: 0,
    progress_bytes: 0,
    log_bytes: 4 << 10,
    concurrency: 1,
    queue: 0,
    host_bytes: 1 << 20,
    host_calls: 100_000,
    host_call_time: Span::from_secs(1),
    files_written: 0,
    keyvalue_written: 0,
    keyvalue_rate: 0,
    http_requests: 0,
    http_concurrent: 0,
    http_time: Span::from_secs(1),
    http_sent: 0,
    http_received: 0,
};

impl Plugin {
    pub(crate) fn new(loaded: LoadedPlugin) -> Self {
        Self(Arc::new(loaded))
    }

    /// The digest of the component.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Whether the plugin exports `server`.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.0.has_server
    }

    /// The tools as the plugin declares them. No rule has been applied to them yet.
    ///
    /// The instance that answers has no grant, and tight limits.
    ///
    /// # Errors
    /// If the plugin crashes, takes too long or declares too much.
    pub async fn declarations(&self) -> Result<Vec<Declared>, Failure> {
        let LoadedPlugin { shared, exports, pre, .. } = &*self.0;
        let user = User::Catalog(self.0.digest);
        let memory = Expected::AtMost(CATALOG.memory);
        let Some(reservation) = shared.pool.reserve(user, memory, PATIENCE).await.map(Arc::new) else {
            return Err(ending::busy());
        };
        let watch = Stopwatch::start(CATALOG.time);
        let guest = Guest::new(&shared.services, None, watch, &CATALOG, Arc::clone(&reservation), Arc::new(()));
        let mut store = call::store(&shared.engine, guest, watch, &CATALOG);
        let tools = call::bounded(pin!(exports.tools(pre, &mut store)), &reservation, watch).await;
        let tools = tools.map_err(|error| call::explain(&error, store.data(), &CATALOG))?;
        if tools.len() > MAX_TOOLS {
            let message = format!("{} tools are declared, at most {MAX_TOOLS} are allowed", tools.len());
            return Err(Failure::new(FailureCode::LimitExceeded, message));
        }
        Ok(tools)
    }

    /// Carries out one job in a new instance. Dropping the future cancels the run.
    ///
    /// Await it on a runtime of [`guest_runtime`](crate::guest_runtime): a guest keeps its thread for up to a
    /// millisecond at a time.
    pub async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> End {
        call::run(&self.0, job, limits, sink).await
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.0.digest).field("has_server", &self.0.has_server).finish()
    }
}
