//! A host inside of a program: what opens it, and what it is asked through.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dispatch::Handle;
use dispatch::ports::{Clock as _, Store, StoreFault};
use domain::{Principal, PrincipalId, Role, Span};
use policy::Combined;
use registry::Registry;
use tokio::runtime;
use tokio::task::JoinHandle;

use crate::clock::WallClock;
use crate::compiler::CompilerProgram;
use crate::config::{Config, Grant};
use crate::folder::Claim;
use crate::record::Actors;
use crate::wire_up::{OpenError, Plan, wire_up};

/// How often a host that closes looks whether its calls have ended.
const LOOK: Span = Span::from_millis(20);

/// A running host. Dropping it stops it as a kill would: what was acknowledged is kept, and what ran is carried out again by
/// the next one. [`Host::close`] lets calls end first.
pub struct Host {
    pub(crate) handle: Handle,
    pub(crate) registry: Registry,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Arc<Combined>,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API changes plugins in a name"))]
    pub(crate) actors: Actors,
    pub(crate) data: PathBuf,
    pub(crate) running: Running,
}

/// What runs, in the order in which it must end.
pub(crate) struct Running {
    pub(crate) _core: dispatch::Host,
    pub(crate) tasks: Vec<JoinHandle<()>>,
    pub(crate) guests: Background,
    pub(crate) _sending: Background,
    pub(crate) _claim: Claim,
    pub(crate) _temporary: Option<tempfile::TempDir>,
}

impl Host {
    /// A host to be opened.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Everything that can be asked of the host. Cheap to clone.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The live plugins: load, replace and remove them.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Who decides that a person is needed: the operator's rules and dynamic policies.
    #[must_use]
    pub fn policy(&self) -> &Combined {
        &self.policy
    }

    /// The host's own folder.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The threads that guests run on. Whoever submits many small turns does so from a task that lives there, with
    /// [`Handle::submit_here`], and spares two hops between threads for each.
    #[must_use]
    pub fn guests(&self) -> Option<&runtime::Handle> {
        self.running.guests.0.as_ref().map(runtime::Runtime::handle)
    }

    /// A principal with every role but that of answering for itself: the program that embeds the host, by any name.
    ///
    /// # Errors
    /// When the name is none: see [`PrincipalId::new`].
    pub fn principal(name: &str) -> Result<Principal, domain::InvalidId> {
        Ok(Principal::new(PrincipalId::new(name)?, Role::ALL))
    }

    /// Waits until no call runs, but no longer than this; then everything that was written is on disk and the host has ended.
    ///
    /// # Errors
    /// [`StoreFault`] when the disk failed at the last moment.
    pub async fn close(self, at_most: Duration) -> Result<(), StoreFault> {
        let quiet = async {
            while self.handle.turns_in_memory() > 0 {
                WallClock.sleep_until(WallClock.now() + LOOK).await;
            }
        };
        if tokio::time::timeout(at_most, quiet).await.is_err() {
            tracing::warn!("some calls still ran; they are carried out again at the next start");
        }
        self.store.sync().await?;
        let head = self.store.head().await?;
        tracing::info!(%head, "the audit ends here");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Threads for one purpose. Nobody waits for their end: that could take as long as a guest likes, and is not allowed in
/// async code.
pub(crate) struct Background(Option<runtime::Runtime>);

impl Background {
    /// Threads that end with what is returned.
    pub(crate) fn new(runtime: runtime::Runtime) -> Self {
        Self(Some(runtime))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// How a host is opened. Without a word it watches no folder, and keeps what it has in a temporary one.
#[derive(Debug, Default)]
pub struct Builder {
    config: Config,
    plugins: Option<PathBuf>,
    data: Option<PathBuf>,
    memory: bool,
    user_cache: Option<PathBuf>,
    compiler: Option<CompilerProgram>,
}

impl Builder {
    /// Everything that `toolgate.toml` can say. Its folders count unless others are named here.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Watches this folder for plugins.
    #[must_use]
    pub fn plugins(mut self, folder: impl Into<PathBuf>) -> Self {
        self.plugins = Some(folder.into());
        self
    }

    /// Keeps everything in this folder, which no other host may use meanwhile.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Keeps turns and the plugins' key-value data in memory: they end with the host.
    #[must_use]
    pub fn memory(mut self) -> Self {
        self.memory = true;
        self
    }

    /// Keeps compiled code in this folder of the user's, if there is one, and not in the host's own: for hosts that live as long as
    /// one command. Other programs of the user's may use it at the same time. Needs a [compiler](Self::compiler); what is kept is
    /// said at [`CacheOwner::User`](sandbox::CacheOwner). A folder that cannot be used is done without.
    #[must_use]
    pub fn user_cache(mut self, folder: Option<PathBuf>) -> Self {
        self.user_cache = folder;
        self
    }

    /// Compiles components with this program, in a process of its own for each, within the bounds of the configuration's
    /// table `[compile]`.
    ///
    /// Without one they are compiled in this process, and nothing bounds the time and the memory that a component makes the
    /// compiler spend: good for components that somebody vouches for. A program that was not made to be run again can name
    /// `toolgate-compiler`, which is built with the crate `toolgate-sandbox`.
    #[must_use]
    pub fn compiler(mut self, compiler: CompilerProgram) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Lets callers answer for their own calls: right where the program that submits also asks the person.
    #[must_use]
    pub fn approve_own_calls(mut self) -> Self {
        self.config.approve_own_calls = true;
        self
    }

    /// Grants a plugin an access.
    #[must_use]
    pub fn grant(mut self, plugin: domain::PluginName, grant: Grant) -> Self {
        self.config.grant(plugin, grant);
        self
    }

    /// Opens the host. Must be called in a tokio runtime, which it uses for everything but the guests.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(self) -> Result<Host, OpenError> {
        let Self { config, plugins, data, memory, user_cache, compiler } = self;
        let plugins = plugins.or_else(|| config.plugins.clone());
        let data = data.or_else(|| config.data.clone());
        wire_up(Plan { config, plugins, data, memory, user_cache, compiler }).await
    }
}
