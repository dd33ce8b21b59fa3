//! A running host inside a program.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use dispatch::Handle;
use dispatch::ports::{Audit, Clock as _, Log, Principals, StoreFault};
use domain::{Principal, PrincipalId, Span, Timestamp, principal::Role};
use policy::Combined;
use registry::Registry;
use sandbox::Sandbox;
use store::SledStore;
use tokio::runtime;
use tokio::task::JoinHandle;

use crate::clock::WallClock;
use crate::folder::Claim;
#[cfg(feature = "server")]
use crate::host_files::HostFiles;
use crate::record::Actors;
#[cfg(feature = "server")]
use crate::tokens::{TokenError, Tokens};
use crate::upstream_servers::UpstreamServers;

/// How often a closing host checks whether its calls have ended.
const INTERVAL: Span = Span::from_millis(20);

/// How often a closed host checks whether its tasks have ended.
#[cfg(feature = "postgres")]
const LEAVE: usize = 250;

/// A running host.
///
/// Dropping it stops it like a kill: acknowledged work is stored, and the next host runs interrupted calls again.
/// [`Host::close`] lets calls end first.
pub struct Host {
    pub(crate) handle: Handle,
    pub(crate) registry: Registry,
    #[cfg_attr(
        not(all(feature = "server", feature = "upstream")),
        expect(dead_code, reason = "only the HTTP API shows it")
    )]
    pub(crate) servers: UpstreamServers,
    pub(crate) sandbox: Sandbox,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) audit: Arc<dyn Audit>,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API makes backups"))]
    pub(crate) kept: Kept,
    pub(crate) policy: Arc<Combined>,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API has tokens"))]
    pub(crate) principals: Arc<HostPrincipals>,
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API has a principal for a change"))]
    pub(crate) actors: Actors,
    pub(crate) data: PathBuf,
    #[cfg(feature = "server")]
    pub(crate) files: HostFiles,
    pub(crate) running: RunningParts,
}

/// Where the turns are.
#[derive(Clone)]
pub(crate) enum Kept {
    Memory,
    /// In the data folder.
    Folder(
        #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API makes backups"))]
        Arc<SledStore>,
    ),
    #[cfg(feature = "postgres")]
    Database(Arc<store::PostgresStore>),
}

#[cfg(feature = "server")]
impl Kept {
    /// The name of this host among those on the database.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Memory | Self::Folder(_) => None,
            #[cfg(feature = "postgres")]
            Self::Database(database) => Some(database.name().to_owned()),
        }
    }
}

/// The principals of the HTTP API, once it is open. Without tokens nobody can be revoked.
#[derive(Default)]
pub(crate) struct HostPrincipals(pub(crate) OnceLock<Arc<dyn Principals>>);

#[async_trait]
impl Principals for HostPrincipals {
    async fn refresh(&self) {
        if let Some(known) = self.0.get() {
            known.refresh().await;
        }
    }

    fn is_current(&self, id: &PrincipalId, since: Timestamp) -> bool {
        self.0.get().is_none_or(|known| known.is_current(id, since))
    }
}

/// The running parts, in the order in which they must end.
pub(crate) struct RunningParts {
    pub(crate) _core: dispatch::Dispatcher,
    pub(crate) tasks: Vec<JoinHandle<()>>,
    pub(crate) guests: Background,
    pub(crate) _sending: Background,
    pub(crate) _claim: Claim,
    pub(crate) _temporary: Option<tempfile::TempDir>,
}

impl Host {
    /// The handle for turns, answers and events. Cheap to clone.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The live plugins: load, replace and remove them.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The operator's rules and dynamic policies, which decide whether a call needs a person.
    #[must_use]
    pub fn policy(&self) -> &Combined {
        &self.policy
    }

    /// The data folder.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The tokens: those of its data folder, or those that all hosts on its database share.
    ///
    /// # Errors
    /// [`TokenError`].
    #[cfg(feature = "server")]
    pub async fn tokens(&self) -> Result<Tokens, TokenError> {
        self.files.tokens().await
    }

    /// The threads that run guests. A task on them can submit many small turns with [`Handle::submit_here`], which saves two
    /// switches between threads for each turn.
    #[must_use]
    pub fn guests(&self) -> Option<&runtime::Handle> {
        self.running.guests.0.as_ref().map(runtime::Runtime::handle)
    }

    /// A principal with every role, for the program that embeds the host.
    ///
    /// # Errors
    /// When the name is invalid: see [`PrincipalId::new`].
    pub fn principal(name: &str) -> Result<Principal, domain::ids::InvalidId> {
        Ok(Principal::new(PrincipalId::new(name)?, Role::ALL))
    }

    /// Returns when the store takes no commits until the host is started again. A store in the data folder never does this by itself.
    pub fn final_failure(&self) -> impl Future<Output = StoreFault> + Send + use<> {
        #[cfg(feature = "postgres")]
        let failure = match &self.kept {
            Kept::Database(database) => Some(database.final_failure()),
            Kept::Memory | Kept::Folder(_) => None,
        };
        #[cfg(not(feature = "postgres"))]
        let failure = None::<tokio::sync::watch::Receiver<Option<StoreFault>>>;
        async move {
            if let Some(mut failure) = failure
                && let Ok(found) = failure.wait_for(Option::is_some).await
                && let Some(fault) = found.clone()
            {
                return fault;
            }
            // It has none, or it is closed.
            std::future::pending().await
        }
    }

    /// Waits until no call runs, at most for this time. Then syncs the store to disk and stops the host.
    ///
    /// # Errors
    /// [`StoreFault`] when the disk fails.
    pub async fn close(self, at_most: Duration) -> Result<(), StoreFault> {
        self.sandbox.stop_lingering();
        let quiet = async {
            while self.handle.turns_in_memory() > 0 {
                WallClock.sleep(INTERVAL).await;
            }
        };
        if tokio::time::timeout(at_most, quiet).await.is_err() {
            tracing::warn!("some calls still run; the next start runs them again");
        }
        self.log.sync().await?;
        let head = self.audit.head().await?;
        tracing::info!(%head, "the head of the audit log at the end");
        #[cfg(feature = "postgres")]
        if let Kept::Database(database) = &self.kept {
            let database = database.clone();
            drop(self);
            leave(database).await;
        }
        Ok(())
    }
}

/// Tells the other hosts on the database that this one has ended, when the last task of it has.
#[cfg(feature = "postgres")]
async fn leave(mut database: Arc<store::PostgresStore>) {
    for _ in 0..LEAVE {
        match Arc::try_unwrap(database) {
            Ok(last) => {
                // It waits for the server, which async code must not.
                let _ = tokio::task::spawn_blocking(move || drop(last)).await;
                return;
            }
            Err(used) => database = used,
        }
        WallClock.sleep(INTERVAL).await;
    }
    tracing::warn!(
        "a task still uses the database; the other hosts find out that this one has ended when its lease ends"
    );
}

impl Drop for RunningParts {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Threads for one purpose. Dropping them does not wait for their end: a guest could delay that, and async code must not block.
pub(crate) struct Background(Option<runtime::Runtime>);

impl Background {
    /// Threads that end when the value is dropped.
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
