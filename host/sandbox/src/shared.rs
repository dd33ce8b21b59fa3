//! The shared state of all calls: the engine and the host services. Guests cannot change it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Digest;
use futures::FutureExt as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compile::Children;
use crate::engine::Ticker;
use crate::guest::{Guest, HostServices};
use crate::memory::{GuestMemory, GuestShare};

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) services: HostServices,
    /// One permit for each instance in the pool.
    pub(crate) instances: Arc<Semaphore>,
    pub(crate) memory: Arc<GuestMemory>,
    pub(crate) linker: Linker<Guest>,
    pub(crate) cache: Option<Cache>,
    /// `None`: this process compiles.
    pub(crate) children: Option<Children>,
    pub(crate) max_component: usize,
    /// Components whose code stays in the cache although no plugin needs it.
    pub(crate) kept: Mutex<HashSet<Digest>>,
    pub(crate) _ticker: Ticker,
}

impl Shared {
    /// A permit for an instance that will probably use so much memory, and its share of the memory. `None` if they are
    /// not free in time.
    pub(crate) async fn instance(
        &self,
        memory: usize,
        patience: Duration,
    ) -> Option<(SemaphorePermit<'_>, GuestShare)> {
        let both = || async { Some((self.instances.acquire().await.ok()?, self.memory.reserve(memory).await)) };
        // Most calls do not wait and need no timer.
        match both().now_or_never() {
            Some(both) => both,
            None => tokio::time::timeout(patience, both()).await.ok()?,
        }
    }
}
