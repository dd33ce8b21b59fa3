//! A loaded plugin: compiled and linked, ready for one instance for each call.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use domain::{CatalogLimits, Digest, Limits, Span, outcome::Failure};

use crate::abi::Declared;
use crate::call::{self, LoadedPlugin};
use crate::clock::Stopwatch;
use crate::ending::{self, Purpose};
use crate::guest::Guest;
use crate::job::{GuestEnd, Job};
use crate::pool::{Peak, User};
use crate::report::Sink;

/// A loaded plugin. Cheap to clone; keeps the sandbox alive.
#[derive(Clone)]
pub struct Plugin(Arc<LoadedPlugin>);

/// The maximum wait of the call of the catalog for a permit.
const MAX_WAIT: Duration = Duration::from_secs(30);

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

    /// The tools as the plugin declares them. No rule has been applied to them yet, also not the limit on their number.
    ///
    /// The instance that answers has no grant.
    ///
    /// # Errors
    /// If the plugin crashes or needs more than the limits.
    pub async fn declarations(&self, limits: &CatalogLimits) -> Result<Vec<Declared>, Failure> {
        let LoadedPlugin { shared, exports, pre, .. } = &*self.0;
        let (user, limits) = (User::Catalog(self.0.digest), limits.of_run());
        let memory = Peak::default().expected(&limits);
        let Some(reservation) = shared.pool.reserve(user, memory, MAX_WAIT).await.map(Arc::new) else {
            return Err(ending::busy());
        };
        let watch = Stopwatch::start(limits.time, Span::ZERO);
        let guest =
            Guest::new(&shared.services, None, watch.clone(), &limits, Arc::clone(&reservation), Arc::new(()), None);
        let mut store = call::store(&shared.engine, guest, watch.clone(), &limits);
        let tools = reservation.fair_share().drive(exports.tools(pre, &mut store));
        let tools = call::bounded(pin!(tools), &watch).await;
        tools.map_err(|error| call::explain(&error, store.data(), &limits, Purpose::Catalog))
    }

    /// Carries out one job in a new instance. Dropping the future cancels the run.
    ///
    /// Await it on a runtime of [`guest_runtime`](crate::guest_runtime): a guest keeps its thread for up to a
    /// millisecond at a time.
    pub async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> GuestEnd {
        call::run(&self.0, job, limits, sink).await
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.0.digest).field("has_server", &self.0.has_server).finish()
    }
}
