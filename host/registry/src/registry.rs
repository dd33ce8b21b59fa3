//! The registry as the rest of the host sees it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use dispatch::ports::Clock;
use domain::{Digest, PluginChange, PluginEvent, PluginName, Tool, ToolName};
use sandbox::Sandbox;

use crate::catalog::Catalog;
use crate::components::Components;
use crate::examine::{self, Question};
use crate::grants;
use crate::guests::Guests;
use crate::load::{Loaded, NotLoaded};
use crate::places::Places;
use crate::watch;
use crate::{Access, Finding, Settings};

/// Receives every load, refusal and unload, in the order in which they happened. Called while a load is going on: hand it
/// on, do not wait.
pub type Events = Arc<dyn Fn(PluginEvent) + Send + Sync>;

/// The live plugins. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

/// A plugin as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStatus {
    /// Its name.
    pub name: PluginName,
    /// What is live of it.
    pub live: Option<(Digest, Vec<ToolName>)>,
    /// What was found last under its name, if that was refused.
    pub rejected: Option<(Digest, Vec<Finding>)>,
    /// What the live component may use, or would that was refused. `None` where nothing could be read.
    pub access: Option<Access>,
    /// The version of our interface that the live component was built against, or that was refused, such as
    /// `toolgate:plugin@0.1.1`. `None` where it could not be read.
    pub built_against: Option<String>,
}

/// What was refused last under a name.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) component: Digest,
    pub(crate) findings: Vec<Finding>,
    pub(crate) access: Option<Access>,
    pub(crate) built_against: Option<String>,
    /// Whether it was found in the watched folder.
    pub(crate) found: bool,
}

/// What was found about a component without making anything of it live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The digest of its bytes.
    pub component: Digest,
    /// Its tools, as far as they could be read.
    pub tools: Vec<Tool>,
    /// The version of our interface that it was built against, such as `toolgate:plugin@0.1.1`. `None` where it could not be
    /// read.
    pub built_against: Option<String>,
    /// Everything that is wrong. Empty: it would be loaded.
    pub findings: Vec<Finding>,
    /// What it may use.
    pub access: Access,
    /// Whether it carries its declaration, so that what is said here was found without running anything of it.
    pub is_packed: bool,
}

/// Why there is no registry.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings make no sense.
    #[error("the settings contradict themselves: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Settings(Vec<Finding>),
    /// A folder cannot be used.
    #[error("the folder {} cannot be used", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The host failed.
    #[error("the registry could not be started")]
    Host(#[source] io::Error),
}

/// What all clones share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) guests: Arc<dyn Guests>,
    pub(crate) components: Components,
    pub(crate) catalog: ArcSwap<Catalog>,
    clock: Arc<dyn Clock>,
    events: Events,
    places: Mutex<HashMap<PluginName, Arc<Places>>>,
    rejected: Mutex<BTreeMap<PluginName, Refused>>,
    /// Held over each load, and over the end of each unload, with the reading and writing of the plugin's file, so that two
    /// loads never judge their tools' names against the same catalog and the folder's content never outlives its file. Holds
    /// the components that were live since the last [`Registry::collect`].
    loading: Mutex<HashSet<Digest>>,
    /// Held over each change of what is live and its event, so that events come in the order of the changes.
    publishing: Mutex<()>,
    /// How many loads have begun, and which of them made each plugin live: what was put after it was removed stays.
    begun: Mutex<(u64, HashMap<PluginName, u64>)>,
    /// What happens right before the lock is taken next.
    #[cfg(test)]
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Registry {
    /// Opens the data folder, loads what is in the watched folder and goes on watching it. A mistake in a plugin
    /// is an event and no error.
    ///
    /// # Errors
    /// [`OpenError`] when the settings or a folder cannot be used.
    pub async fn open(
        settings: Settings,
        sandbox: Sandbox,
        clock: Arc<dyn Clock>,
        events: Events,
    ) -> Result<Self, OpenError> {
        blocking(move || Self::start(settings, Arc::new(sandbox), clock, events)).await.map_err(OpenError::Host)?
    }

    /// What [`Registry::open`] does, on any guests. Keeps its thread meanwhile.
    pub(crate) fn start(
        settings: Settings,
        guests: Arc<dyn Guests>,
        clock: Arc<dyn Clock>,
        events: Events,
    ) -> Result<Self, OpenError> {
        let findings = settings.check();
        if !findings.is_empty() {
            return Err(OpenError::Settings(findings));
        }
        let components = Components::open(&settings.data)
            .map_err(|source| OpenError::Folder { path: settings.data.clone(), source })?;
        let folder = settings.folder.clone();
        let shared = Arc::new(Shared {
            settings,
            guests,
            components,
            clock,
            events,
            catalog: ArcSwap::default(),
            places: Mutex::default(),
            rejected: Mutex::default(),
            loading: Mutex::default(),
            publishing: Mutex::default(),
            begun: Mutex::default(),
            #[cfg(test)]
            meanwhile: Mutex::default(),
        });
        if let Some(folder) = folder {
            watch::start(&shared, &folder).map_err(|source| OpenError::Folder { path: folder, source })?;
        }
        Ok(Self { shared })
    }

    /// Loads a plugin that is in no folder. It is gone after a restart; calls that wait for it are not.
    ///
    /// # Errors
    /// [`NotLoaded`] with every finding; what was live under the name still is.
    pub async fn load(&self, name: PluginName, bytes: Vec<u8>) -> Result<Loaded, NotLoaded> {
        let shared = self.shared.clone();
        blocking(move || shared.load(&name, &bytes, None)).await.map_err(NotLoaded::Fault)?
    }

    /// Loads a plugin and writes it into the watched folder, once it passed every rule.
    ///
    /// # Errors
    /// [`NotLoaded`] with every finding; the folder and what was live under the name are as before.
    pub async fn put(&self, name: PluginName, bytes: Vec<u8>) -> Result<Loaded, NotLoaded> {
        let shared = self.shared.clone();
        blocking(move || shared.load(&name, &bytes, shared.settings.folder.as_deref()))
            .await
            .map_err(NotLoaded::Fault)?
    }

    /// Unloads a plugin and removes it from the watched folder. Says whether there was one.
    ///
    /// # Errors
    /// When its file cannot be removed; it is then still live.
    pub async fn remove(&self, name: PluginName) -> io::Result<bool> {
        let shared = self.shared.clone();
        blocking(move || shared.remove(&name, shared.settings.folder.as_deref())).await?
    }

    /// Removes the components that are neither live nor in use, and says how many. One that was live since the last time is
    /// left as well: a call that was just pinned to it may not be in the set yet.
    ///
    /// # Errors
    /// When the data folder cannot be read or changed.
    pub async fn collect(&self, in_use: HashSet<Digest>) -> io::Result<usize> {
        let shared = self.shared.clone();
        blocking(move || shared.collect(in_use)).await?
    }

    /// Every plugin that is live or was refused, sorted by name.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginStatus> {
        let mut all: BTreeMap<PluginName, PluginStatus> = BTreeMap::new();
        let unknown = |name: &PluginName| {
            let name = name.clone();
            PluginStatus { name, live: None, rejected: None, access: None, built_against: None }
        };
        for component in self.shared.catalog.load().plugins() {
            let tools = component.tools.iter().map(|tool| tool.tool.name.clone()).collect();
            let status = all.entry(component.plugin.clone()).or_insert_with_key(unknown);
            status.live = Some((component.digest, tools));
            status.access = Some(component.access.clone());
            status.built_against.clone_from(&component.built_against);
        }
        for (name, rejected) in lock(&self.shared.rejected).iter() {
            let status = all.entry(name.clone()).or_insert_with_key(unknown);
            status.rejected = Some((rejected.component, rejected.findings.clone()));
            if status.live.is_none() {
                status.access.clone_from(&rejected.access);
                status.built_against.clone_from(&rejected.built_against);
            }
        }
        all.into_values().collect()
    }

    /// What a component may use under a name, and what is wrong with its imports and its section. Nothing of it is compiled
    /// or run.
    #[must_use]
    pub fn access(settings: &Settings, name: &PluginName, bytes: &[u8]) -> (Access, Vec<Finding>) {
        let component = Digest::of(bytes);
        let question = Question { settings, plugin: name, component, bytes, owner: &|_| None };
        examine::access(&question)
    }

    /// Everything that is wrong with a component, without a running host. Compiles it, so it keeps its thread for a while.
    ///
    /// # Errors
    /// When the host failed and not the component.
    pub fn check(sandbox: &Sandbox, settings: &Settings, name: &PluginName, bytes: &[u8]) -> io::Result<CheckReport> {
        let component = Digest::of(bytes);
        let question = Question { settings, plugin: name, component, bytes, owner: &|_| None };
        let examined = examine::examine(sandbox, &question, None)?;
        Ok(CheckReport {
            component,
            tools: examined.tools,
            built_against: examined.built_against,
            findings: examined.findings,
            access: examined.access,
            is_packed: examined.is_packed,
        })
    }
}

impl Shared {
    /// Begins a load; the next one begins when this is dropped.
    pub(crate) fn loading(&self) -> MutexGuard<'_, HashSet<Digest>> {
        #[cfg(test)]
        if let Some(meanwhile) = { lock(&self.meanwhile).take() } {
            meanwhile();
        }
        lock(&self.loading)
    }

    /// Which loads have begun.
    pub(crate) fn begun(&self) -> MutexGuard<'_, (u64, HashMap<PluginName, u64>)> {
        lock(&self.begun)
    }

    /// Begins a change of what is live.
    pub(crate) fn publishing(&self) -> MutexGuard<'_, ()> {
        lock(&self.publishing)
    }

    /// What was refused last, by plugin.
    pub(crate) fn rejected(&self) -> MutexGuard<'_, BTreeMap<PluginName, Refused>> {
        lock(&self.rejected)
    }

    /// The permits of a plugin's running calls, shared by its versions.
    pub(crate) fn places(&self, plugin: &PluginName) -> Arc<Places> {
        let places = || Arc::new(Places::new(&self.settings.limits(plugin)));
        lock(&self.places).entry(plugin.clone()).or_insert_with(places).clone()
    }

    /// Tells what became of a plugin, and what it may use, or might have if it was refused.
    pub(crate) fn tell(&self, plugin: &PluginName, component: Digest, change: PluginChange, access: Option<&Access>) {
        match &change {
            PluginChange::Rejected { findings } => tracing::warn!(%plugin, %component, ?findings, "plugin rejected"),
            PluginChange::Loaded { tools } => tracing::info!(%plugin, %component, ?tools, "plugin loaded"),
            PluginChange::Unloaded => tracing::info!(%plugin, %component, "plugin unloaded"),
        }
        let at = self.clock.now();
        let grants = access.map_or_else(Vec::new, |access| grants::recorded(&access.effective));
        // Who did it is known where the doors are, not here.
        (self.events)(PluginEvent { plugin: plugin.clone(), component, change, at, by: None, grants });
    }
}

/// Runs what keeps its thread on one that is there for that. It runs to its end even if nobody waits for it any longer.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// A panic under one of these locks leaves values that are each whole, so the lock goes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
