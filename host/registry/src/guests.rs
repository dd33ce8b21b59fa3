//! What the registry needs of a sandbox: a seam, so that its own tests need neither an engine nor components.

use std::collections::HashSet;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use capabilities::Capabilities;
use domain::{Digest, Failure, Limits};
use sandbox::section::{self, SectionError};
use sandbox::{Declared, End, ForeignImport, Interface, Job, LoadError, Plugin, Sandbox, Sink};

/// Makes guests of components.
pub(crate) trait Guests: Send + Sync + 'static {
    /// What a component says of itself, found without compiling or running anything of it.
    fn look(&self, bytes: &[u8]) -> Result<Looked, LoadError>;
    /// Compiles and links a component, or takes its compiled code from a cache. Keeps its thread meanwhile.
    fn load(&self, digest: Digest, bytes: &[u8], capabilities: Capabilities) -> Result<Arc<dyn Guest>, LoadError>;
    /// Forgets the compiled code of every component that is not in the set, and says how many files that were.
    fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize>;
}

impl dyn Guests {
    /// What [`Guests::load`] does. What stands between a stranger's bytes and the thread that watches the folder are parsers,
    /// and a compiler where it is not a process of its own. Should one panic, that is a finding about the component; nothing
    /// of a load that did not end is kept.
    pub(crate) fn make(
        &self,
        digest: Digest,
        bytes: &[u8],
        capabilities: Capabilities,
    ) -> Result<Arc<dyn Guest>, LoadError> {
        let loaded = std::panic::catch_unwind(AssertUnwindSafe(|| self.load(digest, bytes, capabilities)));
        loaded.unwrap_or_else(|_| Err(LoadError::Crashed("it panicked".to_owned())))
    }
}

/// What a component says of itself.
pub(crate) struct Looked {
    /// The version of our interface that it was built against.
    pub(crate) built_against: String,
    /// Its imports beyond what every guest has, with the capability that each needs.
    pub(crate) beyond: Vec<ForeignImport>,
    /// Whether it asks which folders there are.
    pub(crate) asks_for_folders: bool,
    /// Whether it exports `server`.
    pub(crate) has_server: bool,
    /// The content of its section, if it has one.
    pub(crate) section: Result<Option<Vec<u8>>, SectionError>,
}

impl Looked {
    /// What is known of a component with this interface.
    pub(crate) fn of(interface: &Interface, bytes: &[u8]) -> Result<Self, LoadError> {
        Ok(Self {
            built_against: interface.built_against(),
            beyond: interface.foreign(Capabilities::default()),
            asks_for_folders: interface.asks_for_folders(),
            has_server: interface.has_server,
            section: section::find(bytes)?.map(|content| content.map(<[u8]>::to_vec)),
        })
    }
}

/// A component that is ready to run.
#[async_trait]
pub(crate) trait Guest: Send + Sync {
    /// Whether it exports `server`.
    fn has_server(&self) -> bool;
    /// What it says of its tools.
    async fn declarations(&self) -> Result<Vec<Declared>, Failure>;
    /// Carries out one job.
    async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> End;
}

impl Guests for Sandbox {
    fn look(&self, bytes: &[u8]) -> Result<Looked, LoadError> {
        Looked::of(&self.look(bytes)?, bytes)
    }

    fn load(&self, digest: Digest, bytes: &[u8], capabilities: Capabilities) -> Result<Arc<dyn Guest>, LoadError> {
        Ok(Arc::new(self.load(digest, bytes, capabilities)?))
    }

    fn retain(&self, kept: &HashSet<Digest>) -> io::Result<usize> {
        self.retain(kept)
    }
}

#[async_trait]
impl Guest for Plugin {
    fn has_server(&self) -> bool {
        self.has_server()
    }

    async fn declarations(&self) -> Result<Vec<Declared>, Failure> {
        self.declarations().await
    }

    async fn run(&self, job: &Job, limits: &Limits, sink: Arc<dyn Sink>) -> End {
        self.run(job, limits, sink).await
    }
}
