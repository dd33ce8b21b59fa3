//! The sandbox: makes the engine, and makes plugins of components.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capabilities::blocking::Permits;
use capabilities::{Capabilities, Services, excerpt};
use domain::{Digest, PluginName, Timestamp};
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::abi::{self, Exports, PLUGIN, STOP_REQUESTED};
use crate::cache::{Cache, CacheOwner, code};
use crate::call::LoadedPlugin;
use crate::clock::{GuestClock, SystemClock};
use crate::compile::{self, Children, CompileBounds, Compiler, Confinement};
use crate::engine::{self, ComponentParts, Ticker};
use crate::guest::{Guest, HostServices};
use crate::inspect::ComponentInterface;
use crate::lingering::{LingerCounts, Lingering};
use crate::load::{CompileCost, LoadError, TooManyParts};
use crate::plugin::Plugin;
use crate::pool::{Peak, Pool};
use crate::random::{Random, SystemRandom};
use crate::shared::Shared;
use crate::{section, structure, wasi};

/// The setup of a sandbox.
pub struct SandboxSettings {
    /// A folder for compiled code, which is made if it is missing. Without one, code is compiled at each start.
    pub cache: Option<PathBuf>,
    /// The owner of that folder.
    pub cache_owner: CacheOwner,
    /// The folder of the user's programs, [`CacheOwner::User`], from which a host copies code into its own. It never writes
    /// there. Like those programs, a host with tighter bounds than the default does not use it.
    pub user_cache: Option<PathBuf>,
    /// Bytes of compiled code. When they are exceeded, the oldest code is removed.
    pub cache_bytes: u64,
    /// The process that compiles components.
    pub compiler: Compiler,
    /// Instances at once; further calls wait. Each reserves about 9 GiB of address space and no memory.
    pub pool: u32,
    /// Bytes of all guests together: linear memories, host memory and repeated journals. Further calls wait.
    pub guest_memory: usize,
    /// Bytes of the largest component.
    pub max_component: usize,
    pub parts: ComponentParts,
    /// The host's side of the capabilities. The default denies every access to stored data and every request.
    pub services: Services,
    pub clock: Arc<dyn GuestClock>,
    pub random: Arc<dyn Random>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            cache: None,
            cache_owner: CacheOwner::Host,
            user_cache: None,
            cache_bytes: 4 << 30,
            compiler: Compiler::default(),
            pool: 1000,
            guest_memory: usize::MAX,
            max_component: 64 << 20,
            parts: ComponentParts::default(),
            services: Services::default(),
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(SystemRandom),
        }
    }
}

/// Loads plugins. Cheap to clone; one for each process is enough.
#[derive(Clone)]
pub struct Sandbox(Arc<Shared>);

impl Sandbox {
    /// Makes the engine, reserves its pool and opens the cache.
    ///
    /// # Errors
    /// If the system does not give it the address space, the thread or the folder.
    pub fn new(settings: SandboxSettings) -> anyhow::Result<Self> {
        let engine = engine::engine(settings.pool, settings.parts)?;
        let mut linker = Linker::new(&engine);
        wasi::link(&mut linker).map_err(|error| anyhow::anyhow!("{error:#}"))?;
        abi::link(&mut linker).map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let cache = cache(&settings, &engine)?;
        let user_cache = settings.user_cache.filter(|_| settings.compiler.is_bounded_as_usual());
        let children = match settings.compiler {
            Compiler::InProcess => None,
            Compiler::Child(compiler) => Some(Children::new(compiler)),
        };
        let (instances, memory) = (settings.pool as usize, settings.guest_memory);
        let lingering = Arc::new(Lingering::new(instances, memory));
        let pool = Pool::new(instances, memory, lingering.clone());
        let watched = Arc::clone(&pool);
        let clock = Arc::clone(&settings.clock);
        let now = move || Timestamp::from_millis(u64::try_from(clock.monotonic().as_millis()).unwrap_or(u64::MAX));
        Ok(Self(Arc::new(Shared {
            _ticker: Ticker::start(&engine, move || watched.is_idle())?,
            engine,
            services: HostServices {
                clock: settings.clock,
                random: settings.random,
                now: Arc::new(now),
                capabilities: settings.services,
                permits: Permits::of_process(),
            },
            pool,
            lingering,
            linker,
            cache,
            user_cache,
            children,
            max_component: settings.max_component,
            parts: settings.parts,
            kept: Mutex::default(),
        })))
    }

    /// How the kernel confines the processes that compile: starts one and asks it. `None` if this process compiles.
    /// Blocks its thread.
    ///
    /// # Errors
    /// If the compiler cannot be run.
    pub fn confinement(&self) -> anyhow::Result<Option<Confinement>> {
        self.0.children.as_ref().map(Children::confinement).transpose()
    }

    /// The imports and exports of a component, without compiling it.
    ///
    /// # Errors
    /// If the bytes are not a component, not a plugin, or a plugin of a version that this host does not speak.
    pub fn inspect(bytes: &[u8]) -> Result<ComponentInterface, LoadError> {
        ComponentInterface::read(bytes)
    }

    /// As [`Sandbox::inspect`], for bytes that may be loaded afterwards.
    ///
    /// # Errors
    /// As [`Sandbox::inspect`], and if the component is too large.
    pub fn look(&self, bytes: &[u8]) -> Result<ComponentInterface, LoadError> {
        self.sized(bytes)?;
        ComponentInterface::read(bytes)
    }

    pub(crate) fn sized(&self, bytes: &[u8]) -> Result<(), LoadError> {
        let (size, max) = (bytes.len(), self.0.max_component);
        if size > max { Err(LoadError::TooLarge { size, max }) } else { Ok(()) }
    }

    /// The instances of durable calls that were kept while the call waited ([`Limits::linger`](domain::Limits::linger)).
    #[must_use]
    pub fn lingering(&self) -> LingerCounts {
        self.0.lingering.counts()
    }

    /// Drops the instance that is kept for a call of this component. The call has ended, or no run will continue the instance.
    pub fn release(&self, component: Digest, idempotency_key: &str) {
        self.0.lingering.release(component, idempotency_key);
    }

    /// Drops the instances that are kept for calls of this plugin. Another component has replaced it, or it is not live any more.
    pub fn release_plugin(&self, plugin: &PluginName) {
        self.0.lingering.release_plugin(plugin);
    }

    /// Drops all kept instances, and keeps no more: the host stops.
    pub fn stop_lingering(&self) {
        self.0.lingering.close();
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// Keeps the compiled code of a component while the sandbox lasts, also when [`Sandbox::retain`] does not name it.
    pub(crate) fn keep(&self, component: Digest) {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(component);
    }

    /// Makes a plugin of a component. Compiling takes from a tenth of a second (Rust) to ten seconds (Python) and
    /// blocks the thread; from the cache it takes less than a millisecond.
    ///
    /// `digest` is the digest of `bytes`, under which the compiled code is kept. `capabilities` decides which
    /// interfaces are linked; the grants of a job decide what a call may do with them.
    ///
    /// # Errors
    /// [`LoadError`], which names all imports outside of the capabilities.
    pub fn load(&self, digest: Digest, bytes: &[u8], granted: Capabilities) -> Result<Plugin, LoadError> {
        let interface = self.look(bytes)?;
        let foreign = interface.foreign(granted);
        if !foreign.is_empty() {
            return Err(LoadError::Imports(foreign));
        }
        let component = self.component(digest, bytes)?;
        let engine = &self.0.engine;
        PLUGIN.check_functions(engine, &component)?;
        let can_stop = PLUGIN.is_imported(engine, &component, STOP_REQUESTED);
        let pre = self.link(&component, granted)?;
        let exports = Exports::find(interface.speaks, interface.has_server, &pre).map_err(unfit)?;
        let (has_server, shared) = (interface.has_server, Arc::clone(&self.0));
        Ok(Plugin::new(LoadedPlugin { digest, has_server, can_stop, exports, pre, peak: Peak::default(), shared }))
    }

    /// Removes the compiled code of every component that is neither in the set nor a loaded policy, and of other
    /// versions of the engine. Returns the number of files.
    ///
    /// # Errors
    /// If the folder cannot be read or changed.
    pub fn retain(&self, kept: &HashSet<Digest>) -> std::io::Result<usize> {
        // This program does not know what other programs of the user need.
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
                if let Some(component) = self.code_of_user(cache, digest, bytes)? {
                    return Ok(component);
                }
                let (component, code) = self.compile(bytes)?;
                cache.put(digest, &code);
                Ok(component)
            }
        }
    }

    /// Code that a command of this user has compiled, such as `toolgate build`. The host copies it, so that it lasts as long
    /// as the host needs it.
    fn code_of_user(&self, own: &Cache, digest: Digest, bytes: &[u8]) -> Result<Option<Component>, LoadError> {
        let Some(folder) = &self.0.user_cache else { return Ok(None) };
        structure::check(bytes)?;
        let plain = Digest::of(section::without(bytes)?);
        Ok(own.copy(folder, &self.0.engine, plain, digest))
    }

    /// As [`CacheOwner::User`] says.
    fn of_user(&self, cache: &Cache, bytes: &[u8]) -> Result<Component, LoadError> {
        structure::check(bytes)?;
        let bytes = section::without(bytes)?;
        let digest = Digest::of(&bytes);
        if let Some(component) = cache.get(&self.0.engine, digest) {
            return Ok(component);
        }
        // Hosts copy this code, so the child first gets the time that a host would give it.
        let usual = CompileBounds::default().time;
        match self.compile_within(&bytes, usual) {
            Err(LoadError::Costs(CompileCost::Time(time))) if self.compile_time() > time => {
                self.compile(&bytes).map(|(component, _)| component)
            }
            compiled => {
                let (component, code) = compiled?;
                cache.put(digest, &code);
                Ok(component)
            }
        }
    }

    /// The bound on the processor time of a child.
    fn compile_time(&self) -> Duration {
        self.0.children.as_ref().map_or(Duration::MAX, |children| children.bounds().time)
    }

    /// Compiles, and gives the code as well.
    fn compile(&self, bytes: &[u8]) -> Result<(Component, Vec<u8>), LoadError> {
        self.compile_within(bytes, self.compile_time())
    }

    /// The same within this processor time of a child.
    fn compile_within(&self, bytes: &[u8], time: Duration) -> Result<(Component, Vec<u8>), LoadError> {
        let shared = &self.0;
        structure::check(bytes)?;
        let compiled = match &shared.children {
            Some(children) => children.compile(bytes, CompileBounds { time, ..children.bounds() })?,
            None => compile::here(&shared.engine, bytes)?,
        };
        let component = code::load(&shared.engine, &compiled).map_err(|why| {
            too_many(&why, shared.parts).map_or_else(|| LoadError::Compile(excerpt(&why)), LoadError::Parts)
        })?;
        Ok((component, compiled))
    }

    /// Links the interfaces of the capabilities and no others.
    fn link(&self, component: &Component, granted: Capabilities) -> Result<InstancePre<Guest>, LoadError> {
        if granted == Capabilities::default() {
            return self.0.linker.instantiate_pre(component).map_err(unfit);
        }
        let mut linker = self.0.linker.clone();
        let failed = |error: wasmtime::Error| LoadError::Host(anyhow::anyhow!("{error:#}"));
        capabilities::link(&mut linker, granted).map_err(failed)?;
        linker.instantiate_pre(component).map_err(unfit)
    }
}

/// The kinds of parts that a component has too many of. The code fits this engine, so the pool refused it. The engine has no types for
/// these errors; `tests/all/loading.rs` checks their texts.
fn too_many(why: &str, parts: ComponentParts) -> Option<TooManyParts> {
    let ComponentParts { core_instances, memories, tables } = parts;
    let kinds = [
        ("core module instances", "core instances", core_instances, "core_instances"),
        ("Wasm linear memories", "linear memories", memories, "memories"),
        ("tables", "tables", tables, "tables"),
    ];
    let pool = why.contains("in the pooling allocator").then_some(why)?;
    let (_, what, max, key) = kinds.into_iter().find(|(text, ..)| pool.contains(text))?;
    Some(TooManyParts { what, max, key })
}

/// The folder of compiled code, if one is set and usable.
fn cache(settings: &SandboxSettings, engine: &Engine) -> anyhow::Result<Option<Cache>> {
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

/// A component does not fit its interface.
pub(crate) fn unfit(error: wasmtime::Error) -> LoadError {
    LoadError::Link(excerpt(&format!("{error:#}")))
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}
