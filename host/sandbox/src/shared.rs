//! The shared state of all calls: the engine and the host services. Guests cannot change it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Digest;
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compile::Children;
use crate::engine::Ticker;
use crate::guest::{Guest, HostServices};

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) services: HostServices,
    /// One permit for each instance in the pool.
    pub(crate) instances: Arc<Semaphore>,
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
    /// A permit for an instance. `None` if none is free in time.
    pub(crate) async fn instance(&self, patience: Duration) -> Option<SemaphorePermit<'_>> {
        match self.instances.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => tokio::time::timeout(patience, self.instances.acquire()).await.ok()?.ok(),
        }
    }
}
