//! The shared state of all calls: the engine and the host services. Guests cannot change it.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::Digest;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compile::Children;
use crate::engine::{ComponentParts, Ticker};
use crate::guest::{Guest, HostServices};
use crate::instance::KeptInstance;
use crate::lingering::Lingering;
use crate::pool::{Pool, Spare as _};

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) services: HostServices,
    pub(crate) pool: Arc<Pool>,
    pub(crate) lingering: Arc<Lingering>,
    pub(crate) linker: Linker<Guest>,
    pub(crate) cache: Option<Cache>,
    /// The user's folder of compiled code, if the host may copy from it.
    pub(crate) user_cache: Option<PathBuf>,
    /// `None`: this process compiles.
    pub(crate) children: Option<Children>,
    pub(crate) max_component: usize,
    pub(crate) parts: ComponentParts,
    /// Components whose code stays in the cache although no plugin needs it.
    pub(crate) kept: Mutex<HashSet<Digest>>,
    pub(crate) _ticker: Ticker,
}

impl Shared {
    /// Keeps the instance of a call that waits, unless other calls wait for room.
    pub(crate) fn keep(&self, component: Digest, instance: KeptInstance, time: Duration) {
        self.lingering.keep(component, instance, time);
        // Looked at afterwards: a call that comes later finds the instance.
        while self.pool.is_full() && self.lingering.drop_one() {}
    }
}
