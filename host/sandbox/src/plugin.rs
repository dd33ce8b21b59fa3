//! A plugin that is loaded: compiled, linked against its grants, ready to be instantiated once for each call.

use std::sync::Arc;
use std::time::Duration;

use domain::{Digest, Failure, FailureCode, Limits, Span};
use wasmtime::component::InstancePre;

use crate::abi::{Declared, Exports};
use crate::call::{self, End, Job};
use crate::clock::Stopwatch;
use crate::ending;
use crate::guest::{Guest, Outside};
use crate::report::Sink;
use crate::sandbox::Shared;

/// A loaded plugin. Cheap to clone; keeps the sandbox alive.
#[derive(Clone)]
pub struct Plugin(Arc<Loaded>);

struct Loaded {
    digest: Digest,
    has_server: bool,
    hears_of_stop: bool,
    exports: Exports,
    pre: InstancePre<Guest>,
    sandbox: Arc<Shared>,
}

/// How long a plugin that is loaded waits for calls of others to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tools that one plugin may declare.
const MAX_TOOLS: usize = 1_000;

/// The limits under which a plugin is asked for its tools. It needs next to nothing for a constant, but a Go or Python
/// guest starts its whole runtime for it.
const CATALOG: Limits = Limits {
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
    http_requests: 0,
    http_concurrent: 0,
    http_time: Span::from_secs(1),
    http_sent: 0,
    http_received: 0,
};

impl Plugin {
    pub(crate) fn new(
        digest: Digest,
        has_server: bool,
        hears_of_stop: bool,
        exports: Exports,
        pre: InstancePre<Guest>,
        sandbox: Arc<Shared>,
    ) -> Self {
        Self(Arc::new(Loaded { digest, has_server, hears_of_stop, exports, pre, sandbox }))
    }

    /// The digest under which the component was loaded.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Whether it exports `server`.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.0.has_server
    }

    /// Whether it can ask if a call should stop. If not, waiting for it to stop by itself would be in vain.
    pub(crate) fn hears_of_stop(&self) -> bool {
        self.0.hears_of_stop
    }

    /// What the plugin says that its tools are: its own words, to which no rule was applied yet.
    ///
    /// It is asked in an instance without any capability, whatever the plugin was granted, and under tight limits.
    ///
    /// # Errors
    /// When it crashes, takes too long or says too much.
    pub async fn declarations(&self) -> Result<Vec<Declared>, Failure> {
        let sandbox = self.sandbox();
        let Some(_place) = sandbox.place(PATIENCE).await else {
            return Err(ending::busy());
        };
        let watch = Stopwatch::start(CATALOG.time);
        let nothing = Outside { keyvalue: None, http: None, ..sandbox.outside.clone() };
        let guest = Guest::new(&nothing, None, false, watch, &CATALOG, Arc::new(()));
        let mut store = call::store(&sandbox.engine, guest, watch, &CATALOG);
        let tools = call::bounded(self.exports().tools(self.pre(), &mut store), watch)
            .await
            .map_err(|error| call::explain(&error, store.data(), &CATALOG))?;
        if tools.len() > MAX_TOOLS {
            let message = format!("{} tools are declared, at most {MAX_TOOLS} are allowed", tools.len());
            return Err(Failure::new(FailureCode::LimitExceeded, message));
        }
        Ok(tools)
    }

    /// Carries out one job in a fresh instance. Dropping the future cancels the run; nothing of the guest runs afterwards.
    ///
    /// To be awaited on a runtime of [`guest_runtime`](crate::guest_runtime), since a guest keeps its thread for up to a
    /// millisecond at a time.
    pub async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> End {
        call::run(self, job, limits, sink).await
    }

    pub(crate) fn sandbox(&self) -> &Shared {
        &self.0.sandbox
    }

    pub(crate) fn exports(&self) -> &Exports {
        &self.0.exports
    }

    pub(crate) fn pre(&self) -> &InstancePre<Guest> {
        &self.0.pre
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.0.digest).field("has_server", &self.0.has_server).finish()
    }
}
