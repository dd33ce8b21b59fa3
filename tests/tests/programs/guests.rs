//! The real parts below the loop that all lives of a host share: the sandbox with the plugin `program`, its grants, and
//! the server that records its requests. They hold nothing of a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capabilities::calls::ToolPattern;
use capabilities::http::{HttpClient, HttpRule, Reach, SystemResolver};
use capabilities::keyvalue::{KeyValueQuota, Service};
use capabilities::{Grants, Services};
use dispatch::ports::Clock as _;
use domain::{Limits, PluginName, Span};
use registry::{GrantHolder, PluginSettings, Registry, RegistrySettings};
use sandbox::{GuestClock, LingerCounts, Sandbox, SandboxSettings, SystemClock};
use store::KeyValue;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolgate_tests::clock::SimClock;
use toolgate_tests::effects::Server;
use toolgate_tests::guests::illegal;
use toolgate_tests::world::World;

use crate::buckets::StoreBuckets;
use crate::model::program::{IDEMPOTENT, ONCE};

/// The longest wait for a server.
const RETRY: Span = Span::from_secs(3_600);

/// Longer than any program takes.
const LINGER: Span = Span::from_secs(3_600);

/// The bucket of the SDKs.
const BUCKET: &str = "default";

pub(crate) struct Guests {
    /// A new instance for each run.
    pub(crate) registry: Arc<Registry>,
    /// Instances are kept while their calls wait.
    pub(crate) lingering: Arc<Registry>,
    pub(crate) server: Server,
    sandbox: Sandbox,
    plugin: PluginName,
    current: Arc<Current>,
    _sending: Runtime,
    _data: [TempDir; 2],
}

/// The world of the calls that run.
struct Current {
    parts: Mutex<(KeyValue, Arc<SimClock>)>,
    monotonic: SystemClock,
}

impl Current {
    fn values(&self) -> KeyValue {
        self.parts.lock().expect("no thread panicked").0.clone()
    }
}

impl GuestClock for Current {
    fn wall(&self) -> Duration {
        Duration::from_millis(self.parts.lock().expect("no thread panicked").1.now().millis())
    }

    fn monotonic(&self) -> Duration {
        self.monotonic.monotonic()
    }
}

impl Guests {
    pub(crate) fn new() -> Self {
        let (server, data) = (Server::start(), [(); 2].map(|()| tempfile::tempdir().expect("a folder")));
        let sending = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let sending = sending.expect("a runtime");
        let resolver = Arc::new(SystemResolver::default());
        let http = HttpClient::new(sending.handle().clone(), resolver, &[]).expect("a client");
        let parts = Mutex::new((KeyValue::in_memory(), Arc::<SimClock>::default()));
        let current = Arc::new(Current { parts, monotonic: SystemClock::default() });
        let of_current = current.clone();
        let keyvalue = Service::over(Arc::new(StoreBuckets::new(move |_| of_current.values())));
        let services = Services { keyvalue, http: Some(http), ..Services::default() };
        let settings = SandboxSettings { pool: 8, services, clock: current.clone(), ..SandboxSettings::default() };
        let sandbox = Sandbox::new(settings).expect("a sandbox");
        let plugin = PluginName::new("program").expect("a name");
        let rule = |path| {
            let methods = ["GET", "POST"].map(str::to_owned).into();
            let rule = HttpRule::parse(&server.url(path), methods, Reach::Private).expect("a rule");
            HttpRule { idempotent: path == IDEMPOTENT, retry: Some(RETRY), ..rule }
        };
        let http = vec![rule(IDEMPOTENT), rule(ONCE)];
        let calls = vec![ToolPattern::try_from("run".to_owned()).expect("a tool")];
        let config = Some([("region".to_owned(), "eu".to_owned())].into());
        let grants = Grants { keyvalue: Some(KeyValueQuota::default()), http, config, calls, ..Grants::default() };
        let grants = Arc::new(grants);
        let registry = |data: &TempDir, linger| {
            let limits = Some(Limits { linger, ..Limits::default() });
            let granted = PluginSettings { grants: grants.clone(), holder: GrantHolder::AnyComponent, limits };
            let mut settings = RegistrySettings::new(data.path());
            settings.plugins.insert(plugin.clone(), granted);
            runtime().block_on(async {
                let (clock, sandbox) = (Arc::<SimClock>::default(), sandbox.clone());
                let registry = Registry::open(settings, sandbox, clock, Arc::new(|_| {}), None).await;
                let registry = registry.expect("a registry");
                registry.load(plugin.clone(), illegal("program")).await.expect("the plugin loads");
                Arc::new(registry)
            })
        };
        let (registry, lingering) = (registry(&data[0], Span::ZERO), registry(&data[1], LINGER));
        Self { registry, lingering, server, sandbox, plugin, current, _sending: sending, _data: data }
    }

    pub(crate) fn counts(&self) -> LingerCounts {
        self.sandbox.lingering()
    }

    /// A new world for the next calls, with a new server.
    pub(crate) fn world(&self) -> World {
        let world = World::default();
        self.server.reset();
        *self.current.parts.lock().expect("no thread panicked") = (world.store.key_value(), world.clock.clone());
        world
    }

    /// The stored values, each with its key.
    pub(crate) fn values(&self) -> Vec<String> {
        let values = self.current.values();
        let keys = values.list(self.plugin.as_str(), BUCKET, b"", None, 1_000).expect("a listing").keys;
        let value = |key: &[u8]| values.get(self.plugin.as_str(), BUCKET, key).expect("a read").expect("a value");
        let shown = |key: &Vec<u8>| format!("{} = {}", key.escape_ascii(), value(key).escape_ascii());
        keys.iter().map(shown).collect()
    }
}

/// The runtime of one life of a host, and of its guests.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
