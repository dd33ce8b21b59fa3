//! The sandbox: the engine and what every guest shares of it, which is nothing that a guest could change.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::{Digest, Span};
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::abi::{self, Exports, PLUGIN, STOP_REQUESTED};
use crate::blocking::Places;
use crate::cache::{Cache, CacheOwner, code};
use crate::capability::config;
use crate::capability::filesystem::most_open;
use crate::capability::http::{self, HttpClient};
use crate::capability::keyvalue::{self, Buckets};
use crate::capability::{Capabilities, Capability};
use crate::clock::{Clock, Stopwatch, SystemClock};
use crate::compile::{self, Children, CompileBounds, Compiler};
use crate::ending::excerpt;
use crate::engine::{self, Ticker};
use crate::guest::{Guest, Outside};
use crate::inspect::Interface;
use crate::load::LoadError;
use crate::plugin::Plugin;
use crate::random::{Random, SystemRandom};
use crate::{section, structure, wasi};

/// How a sandbox is set up.
pub struct Settings {
    /// A folder for compiled code, made if it is missing. Without one, code is compiled at each start.
    pub cache: Option<PathBuf>,
    /// Whose that folder is.
    pub cache_owner: CacheOwner,
    /// Bytes of compiled code that are kept; beyond, the oldest goes.
    pub cache_bytes: u64,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Instances at once; more wait. Reserves address space, about 9 GiB each, and no memory.
    pub pool: u32,
    /// The largest component that is taken, in bytes.
    pub max_component: usize,
    /// Where `wasi:keyvalue` keeps what guests give it. Without it the interface denies every access, granted or not.
    pub keyvalue: Option<Arc<dyn Buckets>>,
    /// What sends the requests of `wasi:http`. Without it every request is denied, granted or not.
    pub http: Option<HttpClient>,
    /// The clocks of guests.
    pub clock: Arc<dyn Clock>,
    /// The randomness of guests.
    pub random: Arc<dyn Random>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache: None,
            cache_owner: CacheOwner::Host,
            cache_bytes: 4 << 30,
            compiler: Compiler::default(),
            pool: 1000,
            max_component: 64 << 20,
            keyvalue: None,
            http: None,
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(SystemRandom),
        }
    }
}

/// Loads plugins. Cheap to clone; one for each process is enough.
#[derive(Clone)]
pub struct Sandbox(Arc<Shared>);

/// What the calls of every plugin share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) outside: Outside,
    /// One permit for each instance that the pool has room for.
    places: Arc<Semaphore>,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    /// `None`: components are compiled in this process.
    children: Option<Children>,
    max_component: usize,
    /// What the sandbox itself keeps the compiled code of, because no plugin needs it.
    kept: Mutex<HashSet<Digest>>,
    _ticker: Ticker,
}

impl Shared {
    /// A place in the pool, waited for so long if there is none.
    pub(crate) async fn place(&self, patience: Duration) -> Option<SemaphorePermit<'_>> {
        match self.places.try_acquire() {
            Ok(place) => Some(place),
            Err(_) => tokio::time::timeout(patience, self.places.acquire()).await.ok()?.ok(),
        }
    }
}

impl Sandbox {
    /// Makes the engine, reserves its pool and opens the cache.
    ///
    /// # Errors
    /// When the address space, the thread or the folder is not to be had.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let engine = engine::engine(settings.pool)?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker).map_err(|error| anyhow::anyhow!("{error:#}"))?;
        abi::link(&mut linker).map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let cache = cache(&settings, &engine)?;
        let children = match settings.compiler {
            Compiler::InProcess => None,
            Compiler::Child(compiler) => Some(Children::new(compiler)),
        };
        let pool = settings.pool as usize;
        let places = Arc::new(Semaphore::new(pool));
        let watched = Arc::clone(&places);
        Ok(Self(Arc::new(Shared {
            _ticker: Ticker::start(&engine, move || watched.available_permits() == pool)?,
            engine,
            outside: Outside {
                clock: settings.clock,
                random: settings.random,
                keyvalue: settings.keyvalue,
                http: settings.http,
                places: Arc::new(Places::new(most_open())),
            },
            places,
            linker,
            cache,
            children,
            max_component: settings.max_component,
            kept: Mutex::default(),
        })))
    }

    /// What a component says that it imports and exports, without compiling it.
    ///
    /// # Errors
    /// When it is no component, or no plugin, or one of a version that this host does not speak.
    pub fn inspect(bytes: &[u8]) -> Result<Interface, LoadError> {
        Interface::read(bytes)
    }

    /// The same, for bytes that may be loaded afterwards: what is larger than a component may be is not looked at.
    ///
    /// # Errors
    /// As [`Sandbox::inspect`], and when it is too large.
    pub fn look(&self, bytes: &[u8]) -> Result<Interface, LoadError> {
        self.sized(bytes)?;
        Interface::read(bytes)
    }

    /// Refuses what is larger than a component may be.
    pub(crate) fn sized(&self, bytes: &[u8]) -> Result<(), LoadError> {
        let (size, most) = (bytes.len(), self.0.max_component);
        if size > most { Err(LoadError::TooLarge { size, most }) } else { Ok(()) }
    }

    /// What every guest shares.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Keeps the compiled code of a component for as long as the sandbox lasts, whatever [`Sandbox::retain`] is told.
    pub(crate) fn keep(&self, component: Digest) {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(component);
    }

    /// Makes a plugin of a component. Compiling takes from a tenth of a second (Rust) to ten (Python), so call this where
    /// nobody is kept waiting; from the cache it takes well under a millisecond.
    ///
    /// `digest` is that of `bytes`: compiled code is kept under it. `capabilities` decides which interfaces are linked; what
    /// a call may do with them is in the grants of its job.
    ///
    /// # Errors
    /// [`LoadError`]; of the imports outside of the capabilities all are named.
    pub fn load(&self, digest: Digest, bytes: &[u8], capabilities: Capabilities) -> Result<Plugin, LoadError> {
        let interface = self.look(bytes)?;
        let foreign = interface.foreign(capabilities);
        if !foreign.is_empty() {
            return Err(LoadError::Imports(foreign));
        }
        let component = self.component(digest, bytes)?;
        let engine = &self.0.engine;
        PLUGIN.judge_functions(engine, &component)?;
        let hears_of_stop = PLUGIN.is_imported(engine, &component, STOP_REQUESTED);
        let pre = self.link(&component, capabilities)?;
        let exports = Exports::find(interface.speaks, interface.has_server, &pre).map_err(unfit)?;
        Ok(Plugin::new(digest, interface.has_server, hears_of_stop, exports, pre, Arc::clone(&self.0)))
    }

    /// Forgets the compiled code of every component that is neither in the set nor a policy that was loaded, and of other
    /// versions of the engine. Says how many files that were.
    ///
    /// # Errors
    /// When the folder cannot be read or changed.
    pub fn retain(&self, kept: &HashSet<Digest>) -> std::io::Result<usize> {
        // What a user's other programs need is not for this one to say.
        let Some(cache) = self.0.cache.as_ref().filter(|cache| cache.owner == CacheOwner::Host) else { return Ok(0) };
        let own = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        cache.retain(&(kept | &own))
    }

    /// Compiled code, from the cache where it has it.
    pub(crate) fn component(&self, digest: Digest, bytes: &[u8]) -> Result<Component, LoadError> {
        match &self.0.cache {
            None => self.compile(bytes).map(|(component, _)| component),
            Some(cache) if cache.owner == CacheOwner::User => self.of_user(cache, bytes),
            Some(cache) => {
                if let Some(component) = cache.get(&self.0.engine, digest) {
                    return Ok(component);
                }
                let (component, code) = self.compile(bytes)?;
                cache.put(digest, &code);
                Ok(component)
            }
        }
    }

    /// As [`CacheOwner::User`] says.
    fn of_user(&self, cache: &Cache, bytes: &[u8]) -> Result<Component, LoadError> {
        structure::check(bytes)?;
        let bytes = section::without(bytes)?;
        let digest = Digest::of(&bytes);
        if let Some(component) = cache.get(&self.0.engine, digest) {
            return Ok(component);
        }
        let usual = u64::try_from(CompileBounds::surely_usual().as_millis()).unwrap_or(u64::MAX);
        let watch = Stopwatch::start(Span::from_millis(usual));
        let (component, code) = self.compile(&bytes)?;
        if !watch.is_over() {
            cache.put(digest, &code);
        }
        Ok(component)
    }

    /// Compiles, and gives the code as well.
    fn compile(&self, bytes: &[u8]) -> Result<(Component, Vec<u8>), LoadError> {
        let shared = &self.0;
        structure::check(bytes)?;
        let compiled = match &shared.children {
            Some(children) => children.compile(bytes)?,
            None => compile::here(&shared.engine, bytes)?,
        };
        let component = code::load(&shared.engine, &compiled)
            // Compilers here make what this engine takes, so what is wrong is that it needs more memories, tables or
            // instances than the pool has for one component.
            .map_err(|why| LoadError::Compile(excerpt(&why)))?;
        Ok((component, compiled))
    }

    /// Links what the capabilities give, and nothing else: what is not linked cannot be called.
    fn link(&self, component: &Component, capabilities: Capabilities) -> Result<InstancePre<Guest>, LoadError> {
        if capabilities == Capabilities::default() {
            return self.0.linker.instantiate_pre(component).map_err(unfit);
        }
        let mut linker = self.0.linker.clone();
        let failed = |error: wasmtime::Error| LoadError::Host(anyhow::anyhow!("{error:#}"));
        for capability in capabilities.iter() {
            match capability {
                Capability::KeyValue => keyvalue::link(&mut linker).map_err(failed)?,
                // The interface is everybody's.
                Capability::Filesystem => {}
                Capability::Http => http::link(&mut linker).map_err(failed)?,
                Capability::Config => config::link(&mut linker).map_err(failed)?,
            }
        }
        linker.instantiate_pre(component).map_err(unfit)
    }
}

/// The folder of compiled code, if there is one that may be used.
fn cache(settings: &Settings, engine: &Engine) -> anyhow::Result<Option<Cache>> {
    let Some(folder) = &settings.cache else { return Ok(None) };
    let opened = || Cache::open(folder, settings.cache_owner, engine, settings.cache_bytes);
    if settings.cache_owner == CacheOwner::Host {
        return opened().map(Some);
    }
    if !settings.compiler.is_bounded_as_usual() {
        return Ok(None);
    }
    let cache = opened().inspect_err(|error| tracing::info!(error = format!("{error:#}"), "compiled code is not kept"));
    Ok(cache.ok())
}

/// That a component does not fit its interface.
pub(crate) fn unfit(error: wasmtime::Error) -> LoadError {
    LoadError::Link(excerpt(&format!("{error:#}")))
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}
