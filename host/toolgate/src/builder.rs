//! Opens a host: the builder, its options and its errors.

use std::path::PathBuf;

use crate::compiler::CompilerProgram;
use crate::config::{Config, Grant};
use crate::error::OpenError;
use crate::host::Host;
use crate::wire_up::{Plan, wire_up};

impl Host {
    /// Options of a host that is about to open.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}

/// Options of a host. By default it watches no folder and keeps its data in a temporary one.
#[derive(Debug, Default)]
pub struct Builder(Plan);

impl Builder {
    /// Uses this configuration. Folders that the builder names override those of the configuration.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.0.config = config;
        self
    }

    /// Watches this folder for plugins.
    #[must_use]
    pub fn plugins(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.plugins = Some(folder.into());
        self
    }

    /// Keeps all data in this folder. Only one host at a time can use it.
    #[must_use]
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.0.data = Some(folder.into());
        self
    }

    /// Keeps turns and the plugins' key-value data in memory. They are lost when the host ends.
    #[must_use]
    pub fn memory(mut self) -> Self {
        self.0.memory = true;
        self
    }

    /// Uses the compiled code in this folder of the user, so that the host need not compile what a command has compiled.
    ///
    /// Several programs of the user can share the folder. The host needs a [compiler](Self::compiler) for it, and ignores a
    /// folder that it cannot use. [`CacheOwner::User`](sandbox::CacheOwner) describes its content. A host with a data folder
    /// copies what it needs into its own folder and writes nothing here. A host without one, which lives as long as one
    /// command, also keeps here what it compiles.
    #[must_use]
    pub fn user_cache(mut self, folder: Option<PathBuf>) -> Self {
        self.0.user_cache = folder;
        self
    }

    /// Opens the host before the plugins in its folder are loaded. Until then, [`Registry::loading`](registry::Registry::loading)
    /// names them, and a call to a tool that is not live yet gets an error that asks to submit it again.
    #[must_use]
    pub fn load_in_background(mut self) -> Self {
        self.0.background = true;
        self
    }

    /// Compiles each component in its own process with this program, within the limits of the configuration's table
    /// `[compile]`.
    ///
    /// Without a program, this process compiles components, and nothing limits the compiler's time and memory: do that only
    /// with components that you trust. If your program cannot run itself again, name `toolgate-compiler`, which is built with
    /// the crate `toolgate-sandbox`.
    #[must_use]
    pub fn compiler(mut self, compiler: CompilerProgram) -> Self {
        self.0.compiler = Some(compiler);
        self
    }

    /// Starts the upstream MCP servers of the configuration, and offers their tools. They run outside the sandbox. Without this call,
    /// the tables `[upstream]` only reserve names.
    ///
    /// With a supervisor, each server ends even if this process is killed. The program must pass the arguments after its own to
    /// [`upstream::supervise`](::upstream::supervise) before it does anything else.
    #[cfg(feature = "upstream")]
    #[must_use]
    pub fn upstreams(mut self, supervisor: Option<CompilerProgram>) -> Self {
        self.0.upstream.supervisor = Some(supervisor);
        self
    }

    /// Lets callers approve their own calls. Use it if the program that submits also asks the person.
    #[must_use]
    pub fn approve_own_calls(mut self) -> Self {
        self.0.config.approve_own_calls = true;
        self
    }

    /// Grants a plugin an access.
    #[must_use]
    pub fn grant(mut self, plugin: domain::PluginName, grant: Grant) -> Self {
        self.0.config.grant(plugin, grant);
        self
    }

    /// Opens the host. Must be called in a tokio runtime, which the host uses for everything except guests.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(self) -> Result<Host, OpenError> {
        let Self(mut plan) = self;
        plan.plugins = plan.plugins.or_else(|| plan.config.plugins.clone());
        plan.data = plan.data.or_else(|| plan.config.data.clone());
        wire_up(plan).await
    }
}
