//! The registry's interface to the sandbox. The registry's own tests implement it without an engine and without
//! components.

use std::collections::HashSet;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use capabilities::Capabilities;
use domain::{CatalogLimits, Digest, Limits, PluginName, outcome::Failure};
use sandbox::section::{self, SeveralSections};
use sandbox::{
    ComponentInterface, Declared, ForeignImport, GuestEnd, Job, LingerCounts, LoadError, Plugin, Sandbox, Sink,
};

/// Makes guests from components.
pub(crate) trait ComponentLoader: Send + Sync + 'static {
    /// Reads a component's interface and section, without compiling or running it.
    fn look(&self, bytes: &[u8]) -> Result<Looked, LoadError>;
    /// Compiles and links a component, or takes its compiled code from a cache. Blocks its thread.
    fn load(&self, digest: Digest, bytes: &[u8], granted: Capabilities) -> Result<Arc<dyn LoadedComponent>, LoadError>;
    /// Removes the compiled code of every component that is not in the set, and returns the number of files.
    fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize>;
    /// Drops the instance that is kept for a waiting call.
    fn release(&self, _component: Digest, _idempotency_key: &str) {}
    /// Drops the instances that are kept for the waiting calls of a plugin.
    fn release_plugin(&self, _plugin: &PluginName) {}
    fn lingering(&self) -> LingerCounts {
        LingerCounts::default()
    }
}

impl dyn ComponentLoader {
    /// Calls [`ComponentLoader::load`] and turns a panic into a finding about the component. Parsers read the untrusted bytes on
    /// this thread, and so does the compiler if it has no process of its own. A failed load leaves nothing behind.
    pub(crate) fn make(
        &self,
        digest: Digest,
        bytes: &[u8],
        granted: Capabilities,
    ) -> Result<Arc<dyn LoadedComponent>, LoadError> {
        let loaded = std::panic::catch_unwind(AssertUnwindSafe(|| self.load(digest, bytes, granted)));
        loaded.unwrap_or_else(|_| Err(LoadError::Crashed("it panicked".to_owned())))
    }
}

/// The interface and section of a component.
pub(crate) struct Looked {
    /// The version of the interface that it was built against.
    pub(crate) built_against: String,
    /// Its imports beyond what every guest has, with the capability that each needs.
    pub(crate) beyond: Vec<ForeignImport>,
    /// Whether it asks for the list of its folders.
    pub(crate) asks_for_folders: bool,
    pub(crate) has_server: bool,
    /// Whether it can wait in the middle of a call.
    pub(crate) imports_durable: bool,
    pub(crate) section: Result<Option<Vec<u8>>, SeveralSections>,
}

impl Looked {
    /// Reads the section of a component with this interface.
    pub(crate) fn of(interface: &ComponentInterface, bytes: &[u8]) -> Result<Self, LoadError> {
        Ok(Self {
            built_against: interface.built_against(),
            beyond: interface.foreign(Capabilities::default()),
            asks_for_folders: interface.asks_for_folders(),
            has_server: interface.has_server,
            imports_durable: interface.imports_durable(),
            section: section::find(bytes)?.map(|content| content.map(<[u8]>::to_vec)),
        })
    }
}

/// A component that is ready to run.
#[async_trait]
pub(crate) trait LoadedComponent: Send + Sync {
    fn has_server(&self) -> bool;
    /// Calls the component's `tools()`.
    async fn declarations(&self, limits: &CatalogLimits) -> Result<Vec<Declared>, Failure>;
    /// Runs one call.
    async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> GuestEnd;
}

impl ComponentLoader for Sandbox {
    fn look(&self, bytes: &[u8]) -> Result<Looked, LoadError> {
        Looked::of(&self.look(bytes)?, bytes)
    }

    fn load(&self, digest: Digest, bytes: &[u8], granted: Capabilities) -> Result<Arc<dyn LoadedComponent>, LoadError> {
        Ok(Arc::new(self.load(digest, bytes, granted)?))
    }

    fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize> {
        self.retain(kept)
    }

    fn release(&self, component: Digest, idempotency_key: &str) {
        self.release(component, idempotency_key);
    }

    fn release_plugin(&self, plugin: &PluginName) {
        self.release_plugin(plugin);
    }

    fn lingering(&self) -> LingerCounts {
        self.lingering()
    }
}

#[async_trait]
impl LoadedComponent for Plugin {
    fn has_server(&self) -> bool {
        self.has_server()
    }

    async fn declarations(&self, limits: &CatalogLimits) -> Result<Vec<Declared>, Failure> {
        self.declarations(limits).await
    }

    async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> GuestEnd {
        self.run(job, limits, sink).await
    }
}
