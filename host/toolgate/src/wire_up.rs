//! Builds a host: which store, which sandbox, which threads. The only place that chooses.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use dispatch::ports::{Clock, Store};
use dispatch::{Bounds, Parts, Start};
use domain::{OwnerId, PluginName};
use policy::Combined;
use registry::{Holder, PluginSettings, Registry};
use sandbox::{CacheOwner, HttpClient, Resolver, Sandbox, SystemResolver};
use store::{KeyValue, MemoryStore};
use tokio::runtime;
use webhook::{Courier, Http, Webhooks};

use crate::buckets::StoredBuckets;
use crate::clock::{WallClock, mint};
use crate::compiler::{CompilerProgram, compiler};
use crate::config::{Config, ConfigError};
use crate::folder::{self, Claim};
use crate::guards;
use crate::host::{Background, Host, Running};
use crate::reach::Lookups;
use crate::record::{self, Actors};

/// Guests at once, if nobody says otherwise.
const POOL: u32 = 1000;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something that the configuration points to is not there.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its folder cannot be used.
    #[error("the data folder {} cannot be used", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        reason: std::io::Error,
    },
    /// Another host uses it.
    #[error("another host runs on the data folder {}; stop that one, or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The store cannot be opened.
    #[error("the store cannot be opened")]
    Store(#[from] store::OpenError),
    /// The plugins cannot be looked after.
    #[error("the plugins cannot be looked after")]
    Registry(#[from] registry::OpenError),
    /// That it starts cannot be written down.
    #[error("the start cannot be recorded")]
    Audit(#[from] dispatch::ports::StoreFault),
    /// The sandbox cannot be set up.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(String),
    /// The threads of guests cannot be started.
    #[error("the threads for guests cannot be started")]
    Threads(#[source] std::io::Error),
}

/// What a host is built from.
pub(crate) struct Plan {
    pub(crate) config: Config,
    /// The watched folder, if there is one.
    pub(crate) plugins: Option<PathBuf>,
    /// The host's own folder; without one, a temporary one that ends with the host.
    pub(crate) data: Option<PathBuf>,
    /// Whether turns end with the host.
    pub(crate) memory: bool,
    /// A folder of the user's in which compiled code is kept, in the place of the host's own.
    pub(crate) user_cache: Option<PathBuf>,
    /// What compiles components; without one, this process does.
    pub(crate) compiler: Option<CompilerProgram>,
}

/// Builds a host and starts it. Recovers what a killed one left.
pub(crate) async fn wire_up(plan: Plan) -> Result<Host, OpenError> {
    let temporary = if plan.data.is_none() { Some(temporary()?) } else { None };
    let data = match (&plan.data, &temporary) {
        (Some(data), _) => data.clone(),
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => PathBuf::from(crate::config::DATA),
    };
    let unusable = |reason| OpenError::Folder { path: data.clone(), reason };
    folder::private(&data).map_err(unusable)?;
    let claim = Claim::take(&data).map_err(unusable)?.ok_or_else(|| OpenError::InUse(data.clone()))?;
    let (store, key_value) = open_store(plan.memory, data.join("store")).await?;
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver::default());
    let (http, sending) = requests(resolver.clone())?;
    let buckets = StoredBuckets(key_value);
    let code = plan.user_cache.map_or_else(|| Code::OfHost(data.join("compiled")), Code::OfUser);
    let sandbox = sandbox(sandbox_settings(&plan.config, plan.compiler, code, buckets, Some(http)))?;
    let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let guests = sandbox::guest_runtime(threads).map_err(OpenError::Threads)?;
    let on_guests = guests.handle().clone();
    let guests = Background::new(guests);
    let guards = guards::open(&plan.config, &sandbox, &on_guests).await?;

    let clock: Arc<dyn Clock> = Arc::new(WallClock);
    let secrets = plan.config.secrets()?;
    #[cfg(not(feature = "server"))]
    plan.config.refuse_links()?;
    let webhooks = Arc::new(Webhooks::new(plan.config.webhooks()?));
    let mut settings = plan.config.registry(&data, &secrets);
    settings.folder = plan.plugins;
    let arguments = settings.plugins.values().filter_map(|plugin| plugin.limits).map(|limits| limits.arguments);
    let arguments = arguments.fold(settings.limits.arguments, usize::max);
    let start =
        Start { owner: OwnerId::from_bits(mint()), version: env!("CARGO_PKG_VERSION"), grants: granted(&settings) };
    let owner = start.owner;
    let head = dispatch::begin(store.as_ref(), clock.as_ref(), start).await?;
    tracing::info!(%head, "the audit goes on from here");
    let actors = Actors::default();
    let (events, told) = record::events(actors.clone());
    let registry = Registry::open(settings, sandbox, clock.clone(), events).await?;

    let policy = Arc::new(Combined::new(plan.config.operator_rules(), guards));
    let core = dispatch::Host::start(Parts {
        store: store.clone(),
        tools: Arc::new(registry.clone()),
        policy: policy.clone(),
        clock: clock.clone(),
        guests: on_guests,
        owner,
        mint: Arc::new(mint),
        rules: plan.config.rules(),
        bounds: Bounds { arguments, ..Bounds::default() },
        quotas: plan.config.quota.quotas(),
        subscribers: webhooks.clone(),
    });
    let handle = core.handle();
    let mut tasks = vec![
        tokio::spawn(record::record(told, handle.clone())),
        tokio::spawn(record::collect(store.clone(), registry.clone())),
    ];
    // The key is made only where somebody wants links: a program that embeds the host may have no tokens.
    #[cfg(feature = "server")]
    let links =
        if webhooks.want_links() { Some(crate::links::open(&data, handle.clone()).map_err(unusable)?) } else { None };
    #[cfg(not(feature = "server"))]
    let links = None;
    tasks.extend(webhooks.deliver(&Courier {
        store: store.clone(),
        clock,
        suspensions: Arc::new(handle.clone()),
        transport: Arc::new(Http::new(Arc::new(Lookups(resolver)))),
        links,
    }));
    let running = Running { _core: core, tasks, guests, _sending: sending, _claim: claim, _temporary: temporary };
    Ok(Host { handle, registry, store, policy, actors, data, running })
}

/// What sends the requests of guests, on a thread apart from the doors: what strangers' servers answer is unpacked and searched
/// there. The runtime of guests has no I/O.
fn requests(resolver: Arc<dyn Resolver>) -> Result<(HttpClient, Background), OpenError> {
    let sending =
        runtime::Builder::new_multi_thread().worker_threads(1).thread_name("toolgate-http").enable_all().build();
    let sending = sending.map_err(OpenError::Threads)?;
    let http = HttpClient::new(sending.handle().clone(), resolver, &[]);
    let sending = Background::new(sending);
    Ok((http.map_err(|error| OpenError::Sandbox(error.to_string()))?, sending))
}

/// What the operator grants, and to which components: lines with the name of the plugin, sorted.
fn granted(settings: &registry::Settings) -> Vec<String> {
    let plugins: BTreeMap<_, _> = settings.plugins.iter().collect();
    let of = |(name, plugin): (&PluginName, &PluginSettings)| -> Vec<String> {
        let mut lines = registry::grants::recorded(&plugin.grants);
        if !lines.is_empty() {
            match &plugin.holder {
                Holder::AnyComponent => lines.push("to any component".to_owned()),
                Holder::Components(some) => lines.extend(some.iter().map(|digest| format!("to component {digest}"))),
            }
        }
        lines.iter().map(|line| format!("{name}: {line}")).collect()
    };
    plugins.into_iter().flat_map(of).collect()
}

/// Bytes of compiled code that are kept for a user.
const USER_CACHE: u64 = 2 << 30;

/// Where compiled code is kept.
enum Code {
    Nowhere,
    OfHost(PathBuf),
    OfUser(PathBuf),
}

/// A sandbox that is set up as a host's is, for checking components. Compiled code is kept in the folder that is given, if one is:
/// [`CacheOwner::User`](sandbox::CacheOwner).
///
/// # Errors
/// [`OpenError::Sandbox`].
pub fn checking_sandbox(
    config: &Config,
    compiler: Option<CompilerProgram>,
    user_cache: Option<PathBuf>,
) -> Result<Sandbox, OpenError> {
    sandbox(checking_settings(config, compiler, user_cache))
}

/// How such a sandbox is set up, for whoever wants to change something.
#[must_use]
pub fn checking_settings(
    config: &Config,
    compiler: Option<CompilerProgram>,
    user_cache: Option<PathBuf>,
) -> sandbox::Settings {
    let code = user_cache.map_or(Code::Nowhere, Code::OfUser);
    sandbox_settings(config, compiler, code, StoredBuckets(KeyValue::in_memory()), None)
}

fn sandbox(settings: sandbox::Settings) -> Result<Sandbox, OpenError> {
    Sandbox::new(settings).map_err(|error| OpenError::Sandbox(format!("{error:#}")))
}

/// How a sandbox is set up.
fn sandbox_settings(
    config: &Config,
    program: Option<CompilerProgram>,
    code: Code,
    buckets: StoredBuckets,
    http: Option<HttpClient>,
) -> sandbox::Settings {
    let usual = sandbox::Settings::default();
    let (cache, cache_owner, cache_bytes) = match code {
        Code::Nowhere => (None, CacheOwner::Host, usual.cache_bytes),
        Code::OfHost(folder) => (Some(folder), CacheOwner::Host, usual.cache_bytes),
        Code::OfUser(folder) => (Some(folder), CacheOwner::User, USER_CACHE),
    };
    sandbox::Settings {
        cache,
        cache_owner,
        cache_bytes,
        compiler: compiler(program, &config.compile),
        max_component: config.compile.component(),
        pool: config.pool.map_or(POOL, NonZeroU32::get),
        keyvalue: Some(Arc::new(buckets)),
        http,
        ..usual
    }
}

fn temporary() -> Result<tempfile::TempDir, OpenError> {
    let folder = tempfile::Builder::new().prefix("toolgate-").tempdir();
    folder.map_err(|reason| OpenError::Folder { path: std::env::temp_dir(), reason })
}

async fn open_store(memory: bool, path: PathBuf) -> Result<(Arc<dyn Store>, KeyValue), OpenError> {
    if memory {
        return Ok((Arc::new(MemoryStore::new()), KeyValue::in_memory()));
    }
    let at = path.clone();
    let opened = tokio::task::spawn_blocking(move || store::open(&path, &store::Settings::default())).await;
    let store = opened.map_err(|error| OpenError::Folder { path: at, reason: std::io::Error::other(error) })??;
    let key_value = store.key_value();
    Ok((Arc::new(store), key_value))
}
