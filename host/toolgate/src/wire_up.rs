//! Builds a host from a plan. Only this file chooses the store, the sandbox and the threads.

use std::collections::BTreeMap;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capabilities::http::{HttpClient, Resolver, SystemResolver};
use dispatch::ports::{Clock, Disk, Store, StoreFault};
use dispatch::{Handle, Parts, Start};
use domain::{OwnerId, PluginName};
use policy::Combined;
use registry::{Events, GrantHolder, PluginSettings, Registry, RegistrySettings, RemoteComponents};
use sandbox::Sandbox;
use store::{KeyValue, MemoryStore};
use tokio::runtime;
use tokio::task::JoinHandle;
use webhook::{DeliveryWorker, Http, LinkMaker, Webhooks};

use crate::buckets::StoredBuckets;
#[cfg(feature = "server")]
use crate::checkpoint;
#[cfg(feature = "postgres")]
use crate::clock::DatabaseClock;
use crate::clock::{WallClock, mint};
use crate::compiler::CompilerProgram;
use crate::config::Config;
use crate::disk::measured;
use crate::error::OpenError;
use crate::folder::{self, Claim};
use crate::guards;
use crate::host::{Background, Host, HostPrincipals, Kept, RunningParts};
#[cfg(feature = "server")]
use crate::host_files::HostFiles;
#[cfg(feature = "server")]
use crate::keys::Keys;
#[cfg(feature = "server")]
use crate::moving;
use crate::reach::Lookups;
use crate::record::{self, Actors};
use crate::sandboxes::{Code, sandbox, sandbox_settings};
#[cfg(feature = "postgres")]
use crate::shared_components::SharedComponents;
#[cfg(all(feature = "postgres", feature = "server"))]
use crate::shared_documents::SharedDocuments;
use crate::upstream_servers::{UpstreamPlan, UpstreamServers};

/// The parts and options of a host.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    /// The watched folder of plugins.
    pub(crate) plugins: Option<PathBuf>,
    /// The data folder. Without one, the host uses a temporary folder.
    pub(crate) data: Option<PathBuf>,
    /// Whether turns are kept in memory only.
    pub(crate) memory: bool,
    /// The user's folder for compiled code.
    pub(crate) user_cache: Option<PathBuf>,
    /// Whether the host opens before its plugins are loaded.
    pub(crate) background: bool,
    /// The program that compiles components. Without one, this process compiles them.
    pub(crate) compiler: Option<CompilerProgram>,
    /// The upstream MCP servers, which run outside the sandbox.
    pub(crate) upstream: UpstreamPlan,
}

/// Builds a host and starts it. Recovers the turns of a killed host.
pub(crate) async fn wire_up(mut plan: Plan) -> Result<Host, OpenError> {
    let (data, temporary) = data_folder(plan.data.take())?;
    let unusable = |reason| OpenError::Folder { path: data.clone(), reason };
    let claim = claimed(&data).map_err(unusable)?.ok_or_else(|| OpenError::InUse(data.clone()))?;
    let (on_guests, guests) = guest_threads()?;
    let owner = OwnerId::from_bits(mint());
    let OpenedStore { log, kept, key_value, clock } = open_store(&plan, &data, owner, &on_guests).await?;
    #[cfg(feature = "server")]
    let files = host_files(&plan, &data, &kept)?;
    let (disk, measuring) = disk(plan.memory, &data).await;
    let (resolver, http, sending) = requests()?;
    let engine = engine(&mut plan, (temporary.is_some(), &data), StoredBuckets(key_value), http)?;
    let guards = guards::open(&plan.config, &engine, &on_guests).await?;
    let settings = registry_settings(&mut plan, &data)?;
    let (webhooks, arguments) = (Arc::new(Webhooks::new(plan.config.webhooks()?)), max_arguments(&settings));
    let servers = UpstreamServers::open(&plan.config, std::mem::take(&mut plan.upstream), &settings, &clock)?;
    begin(log.clone(), clock.as_ref(), owner, [granted(&settings), servers.recorded()].concat()).await?;
    let actors = Actors::default();
    let (events, changes) = record::events(actors.clone());
    let plugins = registry(&plan, settings, engine.clone(), clock.clone(), events, shared_components(&kept)).await?;

    let rules = Arc::new(Combined::new(plan.config.operator_rules(), guards));
    let principals = Arc::<HostPrincipals>::default();
    let core = dispatch::Dispatcher::start(Parts {
        store: log.clone(),
        tools: servers.start(&plugins),
        policy: rules.clone(),
        principals: principals.clone(),
        clock: clock.clone(),
        disk,
        guests: on_guests,
        owner,
        mint: Arc::new(mint),
        settings: plan.config.turn_settings(),
        bounds: plan.config.bounds(arguments),
        quotas: plan.config.quota.quotas(),
        retention: plan.config.retention.rules(),
        logs: plan.config.retention.logs(),
        subscribers: webhooks.clone(),
    });
    let handle = core.handle();
    let mut tasks = recording(changes, &log, (&plugins, &servers), &handle);
    tasks.extend(measuring);
    // Turns in memory are not audited after this run.
    #[cfg(feature = "server")]
    tasks.extend(
        checkpoint::start(stored(&kept, &log), &handle, (&data, files.keys.clone()), clock.clone())
            .map_err(unusable)?,
    );
    #[cfg(feature = "server")]
    let links = links(&webhooks, &files, &handle).await.map_err(unusable)?;
    #[cfg(not(feature = "server"))]
    let links = None;
    tasks.extend(deliver(&webhooks, &handle, &log, (clock, resolver), links));
    let running = RunningParts { _core: core, tasks, guests, _sending: sending, _claim: claim, _temporary: temporary };
    Ok(Host {
        handle,
        registry: plugins,
        servers,
        sandbox: engine,
        log: log.clone(),
        audit: log,
        kept,
        policy: rules,
        principals,
        actors,
        data,
        #[cfg(feature = "server")]
        files,
        running,
    })
}

/// Claims a data folder, which is closed to other users. `None`: another host uses it.
fn claimed(data: &Path) -> io::Result<Option<Claim>> {
    folder::private(data)?;
    Claim::take(data)
}

/// The tasks that record changes of plugins, report them to the other hosts, and remove components that no call needs.
fn recording(
    changes: record::Changes,
    log: &Arc<dyn Store>,
    (plugins, servers): (&Registry, &UpstreamServers),
    handle: &Handle,
) -> Vec<JoinHandle<()>> {
    let mut tasks = vec![
        tokio::spawn(record::record(changes, handle.clone())),
        tokio::spawn(record::collect(log.clone(), plugins.clone(), handle.clone())),
    ];
    if log.is_shared() {
        tasks.push(tokio::spawn(record::report(plugins.clone(), servers.clone(), log.clone())));
    }
    tasks
}

/// The maker of links in messages. Its key is made only if a webhook sends links: a program that embeds the host may have no tokens.
#[cfg(feature = "server")]
async fn links(webhooks: &Webhooks, files: &HostFiles, handle: &Handle) -> io::Result<Option<Arc<dyn LinkMaker>>> {
    match webhooks.send_links() {
        true => crate::links::open(files, handle.clone()).await.map(Some),
        false => Ok(None),
    }
}

/// Starts the deliveries of webhooks.
fn deliver(
    webhooks: &Webhooks,
    handle: &Handle,
    log: &Arc<dyn Store>,
    (clock, resolver): (Arc<dyn Clock>, Arc<dyn Resolver>),
    links: Option<Arc<dyn LinkMaker>>,
) -> Vec<JoinHandle<()>> {
    let transport = Arc::new(Http::new(Arc::new(Lookups::new(resolver))));
    let (host, outbox, peers) = (Arc::new(handle.clone()), log.clone(), log.clone());
    webhooks.deliver(&DeliveryWorker { host, outbox, peers, clock, transport, links })
}

/// The registry. Its plugins may still be loading if the plan says so.
async fn registry(
    plan: &Plan,
    settings: RegistrySettings,
    engine: Sandbox,
    clock: Arc<dyn Clock>,
    events: Events,
    shared: Option<Arc<dyn RemoteComponents>>,
) -> Result<Registry, OpenError> {
    let plugins = Registry::open(settings, engine, clock, events, shared).await?;
    if !plan.background {
        plugins.loaded().await;
    }
    Ok(plugins)
}

/// The sandbox. Its compiled code is in a folder of the user, or in the data folder.
fn engine(
    plan: &mut Plan,
    (is_temporary, data): (bool, &Path),
    buckets: StoredBuckets,
    http: HttpClient,
) -> Result<Sandbox, OpenError> {
    let of_host = || Code::OfHost { own: data.join("compiled"), user: plan.user_cache.clone() };
    let code = plan.user_cache.clone().filter(|_| is_temporary).map_or_else(of_host, Code::OfUser);
    sandbox(sandbox_settings(&plan.config, plan.compiler.take(), code, buckets, Some(http)))
}

/// The threads of the guests.
fn guest_threads() -> Result<(runtime::Handle, Background), OpenError> {
    let threads = std::thread::available_parallelism().map_or(2, NonZeroUsize::get);
    let guests = sandbox::guest_runtime(threads).map_err(OpenError::Threads)?;
    Ok((guests.handle().clone(), Background::new(guests)))
}

/// The settings of the registry. The command line may name other folders than the file does: no granted folder may overlap
/// those that are used.
fn registry_settings(plan: &mut Plan, data: &Path) -> Result<RegistrySettings, OpenError> {
    let config = &mut plan.config;
    config.data = Some(data.to_owned());
    config.user_cache = plan.user_cache.take();
    config.plugins = plan.plugins.clone().or(config.plugins.take());
    let secrets = config.secrets()?;
    #[cfg(not(feature = "server"))]
    config.refuse_links()?;
    Ok(RegistrySettings { folder: plan.plugins.take(), ..config.registry(data, &secrets) })
}

/// The maximum size of arguments that any plugin accepts, in bytes.
fn max_arguments(settings: &RegistrySettings) -> usize {
    let of_plugins = settings.plugins.values().filter_map(|plugin| plugin.limits).map(|limits| limits.arguments);
    of_plugins.fold(settings.limits.arguments, usize::max)
}

/// Records the start of the host, with what has which access.
async fn begin(log: Arc<dyn Store>, clock: &dyn Clock, owner: OwnerId, grants: Vec<String>) -> Result<(), StoreFault> {
    let start = Start { owner, version: env!("CARGO_PKG_VERSION"), grants };
    let head = dispatch::begin(log.clone(), log.as_ref(), clock, start).await?;
    tracing::info!(%head, "the head of the audit log at the start");
    Ok(())
}

/// The HTTP client of guests, on its own thread: it unpacks and searches answers of untrusted servers, which must not delay
/// the host. The guests' runtime has no I/O.
fn requests() -> Result<(Arc<dyn Resolver>, HttpClient, Background), OpenError> {
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver::default());
    let sending =
        runtime::Builder::new_multi_thread().worker_threads(1).thread_name("toolgate-http").enable_all().build();
    let sending = sending.map_err(OpenError::Threads)?;
    let http = HttpClient::new(sending.handle().clone(), resolver.clone(), &[]);
    let sending = Background::new(sending);
    Ok((resolver, http.map_err(|error| OpenError::Sandbox(error.to_string()))?, sending))
}

/// The operator's grants and the components that hold them: one line each, sorted by plugin.
fn granted(settings: &registry::RegistrySettings) -> Vec<String> {
    let plugins: BTreeMap<_, _> = settings.plugins.iter().collect();
    let of = |(name, plugin): (&PluginName, &PluginSettings)| -> Vec<String> {
        let mut lines = registry::grants::recorded(&plugin.grants);
        if !lines.is_empty() {
            match &plugin.holder {
                GrantHolder::AnyComponent => lines.push("to any component".to_owned()),
                GrantHolder::Components(some) => {
                    lines.extend(some.iter().map(|digest| format!("to component {digest}")))
                }
            }
        }
        lines.iter().map(|line| format!("{name}: {line}")).collect()
    };
    plugins.into_iter().flat_map(of).collect()
}

/// The data folder; a temporary one if none is named.
fn data_folder(named: Option<PathBuf>) -> Result<(PathBuf, Option<tempfile::TempDir>), OpenError> {
    if let Some(named) = named {
        return Ok((named, None));
    }
    let folder = tempfile::Builder::new().prefix("toolgate-").tempdir();
    let folder = folder.map_err(|reason| OpenError::Folder { path: std::env::temp_dir(), reason })?;
    Ok((folder.path().to_owned(), Some(folder)))
}

/// The disk of a host that writes to one, and the task that measures it.
async fn disk(memory: bool, data: &Path) -> (Arc<dyn Disk>, Option<JoinHandle<()>>) {
    if memory {
        return (Arc::new(()), None);
    }
    let (disk, measuring) = measured(data).await;
    (disk, Some(measuring))
}

/// The tokens and the keys.
#[cfg(feature = "server")]
fn host_files(plan: &Plan, data: &Path, kept: &Kept) -> Result<HostFiles, OpenError> {
    let folder = data.to_owned();
    #[cfg(feature = "postgres")]
    if let Kept::Database(database) = kept {
        let keys = plan.config.shared_secret()?.map_or_else(|| Keys::Folder(folder.clone()), Keys::Shared);
        let shared = SharedDocuments::new(Arc::new(database.documents()));
        return Ok(HostFiles { folder, keys, shared: Some(Arc::new(shared)) });
    }
    let _ = (plan, kept);
    Ok(HostFiles { keys: Keys::Folder(folder.clone()), folder, shared: None })
}

/// The components that all hosts on one database share.
fn shared_components(kept: &Kept) -> Option<Arc<dyn RemoteComponents>> {
    #[cfg(feature = "postgres")]
    if let Kept::Database(database) = kept {
        return Some(Arc::new(SharedComponents::new(database.components())));
    }
    let _ = kept;
    None
}

/// The store, unless it is in memory.
#[cfg(feature = "server")]
fn stored(kept: &Kept, log: &Arc<dyn Store>) -> Option<Arc<dyn Store>> {
    (!matches!(kept, Kept::Memory)).then(|| log.clone())
}

/// The store, where it is, the plugins' values, and the clock that its hosts share.
struct OpenedStore {
    log: Arc<dyn Store>,
    kept: Kept,
    key_value: KeyValue,
    clock: Arc<dyn Clock>,
}

async fn open_store(
    plan: &Plan,
    data: &Path,
    owner: OwnerId,
    guests: &runtime::Handle,
) -> Result<OpenedStore, OpenError> {
    let clock = Arc::new(WallClock);
    if plan.memory {
        let in_memory = MemoryStore::new();
        let key_value = in_memory.key_value();
        return Ok(OpenedStore { log: Arc::new(in_memory), kept: Kept::Memory, key_value, clock });
    }
    #[cfg(feature = "postgres")]
    if let Some(settings) = plan.config.database_of(data, owner)? {
        let opened = Arc::new(store::PostgresStore::open(&settings).await?);
        let clock = Arc::new(DatabaseClock { time: opened.time() });
        let key_value = opened.key_value();
        return Ok(OpenedStore { log: opened.clone(), kept: Kept::Database(opened), key_value, clock });
    }
    let (path, _) = (data.join("store"), owner);
    // A disk that hangs may hold one thread of the guests, but not the only one.
    let reading_runtime = (guests.metrics().num_workers() > 1).then(|| guests.id());
    let default = store::StoreSettings::default();
    let cache_bytes = plan.config.database_cache_bytes.map_or(default.cache_bytes, NonZeroU64::get);
    let settings = store::StoreSettings { cache_bytes, reading_runtime, ..default };
    let at = path.clone();
    #[cfg(feature = "server")]
    let data = data.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        #[cfg(feature = "server")]
        moving::complete(&data).map_err(|reason| OpenError::Folder { path: data, reason })?;
        store::open(&path, &settings).map_err(OpenError::from)
    })
    .await;
    let opened = opened.map_err(|error| OpenError::Folder { path: at, reason: io::Error::other(error) })??;
    let (key_value, opened) = (opened.key_value(), Arc::new(opened));
    Ok(OpenedStore { log: opened.clone(), kept: Kept::Folder(opened), key_value, clock })
}
