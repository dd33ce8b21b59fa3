//! The registry as the rest of the host sees it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::Clock;
use domain::{Digest, PluginName, Tool, ToolName};
use sandbox::Sandbox;

use crate::blocking::blocking;
use crate::components::{Components, RemoteComponents};
use crate::examine::{self, Candidate, Examined};
use crate::guests::ComponentLoader;
use crate::load::{LoadReport, NotLoaded};
use crate::shared::{Events, Shared};
use crate::watch;
use crate::{Access, Finding, Note, RegistrySettings, note};

/// The live plugins. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    pub(crate) shared: Arc<Shared>,
}

/// A plugin as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStatus {
    pub name: PluginName,
    /// The live component and its tools.
    pub live: Option<(Digest, Vec<ToolName>)>,
    /// Whether a component is being loaded or waits for it.
    pub loading: bool,
    /// The last component under this name and its findings, if it was refused.
    pub rejected: Option<(Digest, Vec<Finding>)>,
    /// The access of the live component. Without a live one, the access that the refused component would have. `None` if
    /// nothing was readable.
    pub access: Option<Access>,
    /// The version of the interface that this component was built against, such as `toolgate:plugin@0.1.1`. `None` if
    /// it was not readable.
    pub built_against: Option<String>,
    /// The parts of the live component's declaration that this host reduces.
    pub notes: Vec<Note>,
}

/// The result of a check that makes nothing live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    pub component: Digest,
    /// Its tools, as far as they could be read.
    pub tools: Vec<Tool>,
    /// The version of the interface that it was built against, such as `toolgate:plugin@0.1.1`. `None` if it was not
    /// readable.
    pub built_against: Option<String>,
    /// Every broken rule. If empty, the component would load.
    pub findings: Vec<Finding>,
    /// The parts of the declaration that have less effect than its author may expect. They keep no component from loading.
    pub notes: Vec<Note>,
    pub access: Access,
    /// Whether the component has a section with its declaration. If so, this report needed no run of the component.
    pub is_packed: bool,
}

/// Why a registry cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("conflicting settings: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Settings(Vec<Finding>),
    /// A folder cannot be used.
    #[error("the folder {} cannot be used", path.display())]
    Folder { path: PathBuf, source: io::Error },
    /// The host failed.
    #[error("the registry could not be started")]
    Host(#[source] io::Error),
}

impl Registry {
    /// Opens the data folder, begins to load the watched folder, and watches it from then on. [`Registry::loaded`] waits
    /// for the plugins that are there. A faulty plugin is an event, not an error. With `remote`, every component that becomes
    /// live is also kept there, and calls can run components that only another host has loaded.
    ///
    /// # Errors
    /// [`OpenError`] if the settings or a folder cannot be used.
    pub async fn open(
        settings: RegistrySettings,
        engine: Sandbox,
        clock: Arc<dyn Clock>,
        events: Events,
        remote: Option<Arc<dyn RemoteComponents>>,
    ) -> Result<Self, OpenError> {
        blocking(move || Self::start(settings, Arc::new(engine), clock, events, remote))
            .await
            .map_err(OpenError::Host)?
    }

    /// The same as [`Registry::open`] with any guests. Blocks its thread.
    pub(crate) fn start(
        settings: RegistrySettings,
        loader: Arc<dyn ComponentLoader>,
        clock: Arc<dyn Clock>,
        events: Events,
        remote: Option<Arc<dyn RemoteComponents>>,
    ) -> Result<Self, OpenError> {
        let findings = settings.check();
        if !findings.is_empty() {
            return Err(OpenError::Settings(findings));
        }
        let components = Components::open(&settings.data, remote)
            .map_err(|source| OpenError::Folder { path: settings.data.clone(), source })?;
        let folder = settings.folder.clone();
        let shared = Arc::new(Shared::new(settings, loader, components, clock, events));
        if let Some(folder) = folder {
            watch::start(&shared, &folder).map_err(|source| OpenError::Folder { path: folder, source })?;
        }
        Ok(Self { shared })
    }

    /// Loads a plugin without storing it in a folder. After a restart it is no longer live, but its waiting calls still
    /// run.
    ///
    /// # Errors
    /// [`NotLoaded`] with every finding. The plugin that was live under the name stays live.
    pub async fn load(&self, name: PluginName, bytes: Vec<u8>) -> Result<LoadReport, NotLoaded> {
        let shared = self.shared.clone();
        blocking(move || shared.load(&name, &bytes, None)).await.map_err(NotLoaded::Fault)?
    }

    /// Loads a plugin that passes every rule, and writes it into the watched folder.
    ///
    /// # Errors
    /// [`NotLoaded`] with every finding. The folder and the live plugin do not change.
    pub async fn put(&self, name: PluginName, bytes: Vec<u8>) -> Result<LoadReport, NotLoaded> {
        let shared = self.shared.clone();
        blocking(move || shared.load(&name, &bytes, shared.settings.folder.as_deref()))
            .await
            .map_err(NotLoaded::Fault)?
    }

    /// Unloads a plugin and removes it from the watched folder. Returns whether it existed.
    ///
    /// # Errors
    /// If its file cannot be removed. The plugin is then still live.
    pub async fn remove(&self, name: PluginName) -> io::Result<bool> {
        let shared = self.shared.clone();
        blocking(move || shared.remove(&name, shared.settings.folder.as_deref())).await?
    }

    /// Removes the components that are neither live nor in use, and returns how many. It spares components that were
    /// live since the last collection, because `in_use` may not contain the newest calls. It waits for [`Registry::loaded`],
    /// because a plugin that is not live yet needs its component.
    ///
    /// # Errors
    /// If the data folder cannot be read or changed.
    pub async fn collect(&self, in_use: HashSet<Digest>) -> io::Result<usize> {
        self.loaded().await;
        let shared = self.shared.clone();
        blocking(move || shared.collect(in_use)).await?
    }

    /// Tells the other hosts which components are live here or in use, so that none of them removes those that hosts share. Repeat it
    /// more often than [`Registry::collect_shared`] requires. Keeps for them those that only this host has.
    ///
    /// # Errors
    /// If the others may not know it.
    pub async fn share(&self, in_use: HashSet<Digest>) -> io::Result<()> {
        let shared = self.shared.clone();
        blocking(move || shared.components.share_needed(&(&in_use | &shared.live()))).await?
    }

    /// Removes the components that hosts share, are not in use, and that no host needed for this time. Returns how many.
    ///
    /// # Errors
    /// If they may not be removed.
    pub async fn collect_shared(&self, in_use: HashSet<Digest>, older_than: Duration) -> io::Result<usize> {
        let shared = self.shared.clone();
        let remote = move || {
            let remote = shared.components.remote.as_ref();
            remote.map_or(Ok(0), |remote| remote.collect(&in_use, older_than))
        };
        blocking(remote).await?
    }

    /// The live plugins, with the digests of their components.
    #[must_use]
    pub fn live(&self) -> BTreeMap<PluginName, Digest> {
        let catalog = self.shared.catalog.load();
        catalog.plugins().map(|component| (component.plugin.clone(), component.digest)).collect()
    }

    /// The plugins with a component that is being loaded or waits to be, sorted by name.
    #[must_use]
    pub fn loading(&self) -> Vec<PluginName> {
        self.shared.names_in_progress().into_iter().collect()
    }

    /// Whether plugins that were in the watched folder at the start are still being loaded, so that their tools are
    /// missing in every list.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        self.shared.is_starting()
    }

    /// Waits until the plugins that were in the watched folder at the start are live or refused.
    pub async fn loaded(&self) {
        self.shared.started().await;
    }

    /// Every plugin that is live, is being loaded or was refused, sorted by name.
    #[must_use]
    pub fn plugins(&self) -> Vec<PluginStatus> {
        let mut all: BTreeMap<PluginName, PluginStatus> = BTreeMap::new();
        let unknown = |name: &PluginName| {
            let name = name.clone();
            PluginStatus {
                name,
                live: None,
                loading: false,
                rejected: None,
                access: None,
                built_against: None,
                notes: Vec::new(),
            }
        };
        // Before the catalog is read: a plugin that is live meanwhile is not missing.
        for name in self.shared.names_in_progress() {
            all.entry(name).or_insert_with_key(unknown).loading = true;
        }
        for component in self.shared.catalog.load().plugins() {
            let tools = component.tools.iter().map(|tool| tool.tool.name.clone()).collect();
            let status = all.entry(component.plugin.clone()).or_insert_with_key(unknown);
            status.live = Some((component.digest, tools));
            status.access = Some(component.access.clone());
            status.built_against.clone_from(&component.built_against);
            status.notes = component.notes();
        }
        for (name, rejected) in self.shared.rejected().iter() {
            let status = all.entry(name.clone()).or_insert_with_key(unknown);
            status.rejected = Some((rejected.component, rejected.findings.clone()));
            if status.live.is_none() {
                status.access.clone_from(&rejected.access);
                status.built_against.clone_from(&rejected.built_against);
            }
        }
        all.into_values().collect()
    }

    /// The files of the watched folder whose names cannot name a plugin, sorted by path. Each has its finding until it is renamed
    /// or removed.
    #[must_use]
    pub fn misnamed(&self) -> BTreeMap<PathBuf, Finding> {
        self.shared.misnamed()
    }

    /// The access of a component under a name, and the findings about its imports and section. Does not compile or run
    /// it.
    #[must_use]
    pub fn access(settings: &RegistrySettings, name: &PluginName, bytes: &[u8]) -> (Access, Vec<Finding>) {
        let component = Digest::of(bytes);
        let candidate = Candidate { settings, plugin: name, component, bytes, owner: &|_| None };
        examine::access(&candidate)
    }

    /// Checks a component against every rule, without a running host. Blocks its thread while it compiles.
    ///
    /// # Errors
    /// If the host failed, not the component.
    pub fn check(
        engine: &Sandbox,
        settings: &RegistrySettings,
        name: &PluginName,
        bytes: &[u8],
    ) -> io::Result<CheckReport> {
        let component = Digest::of(bytes);
        let candidate = Candidate { settings, plugin: name, component, bytes, owner: &|_| None };
        Ok(CheckReport::new(&candidate, examine::examine(engine, &candidate, None)?))
    }
}

impl CheckReport {
    pub(crate) fn new(candidate: &Candidate<'_>, examined: Examined) -> Self {
        let Examined { built_against, tools, findings, access, is_packed, .. } = examined;
        let notes = note::notes(&tools, &candidate.settings.limits(candidate.plugin));
        Self { component: candidate.component, tools, built_against, findings, notes, access, is_packed }
    }
}
