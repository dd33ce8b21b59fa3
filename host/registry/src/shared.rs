//! The state that all clones of a registry share, and its locks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use dispatch::ports::Clock;
use domain::{
    Digest, PluginName,
    event::{PluginChange, PluginEvent},
};
use tokio::sync::watch;

use crate::catalog::Catalog;
use crate::components::Components;
use crate::grants;
use crate::guests::ComponentLoader;
use crate::permits::Permits;
use crate::results::LargeResults;
use crate::{Access, Finding, RegistrySettings};

/// Receives every load, refusal and unload in order. It is called during a load, so it must not block.
pub type Events = Arc<dyn Fn(PluginEvent) + Send + Sync>;

/// The last refusal under a name.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) component: Digest,
    pub(crate) findings: Vec<Finding>,
    pub(crate) access: Option<Access>,
    pub(crate) built_against: Option<String>,
    /// Whether the component came from the watched folder.
    pub(crate) found: bool,
}

/// The state that all clones share.
pub(crate) struct Shared {
    pub(crate) settings: RegistrySettings,
    pub(crate) loader: Arc<dyn ComponentLoader>,
    pub(crate) components: Components,
    pub(crate) catalog: ArcSwap<Catalog>,
    clock: Arc<dyn Clock>,
    events: Events,
    permits: Mutex<HashMap<PluginName, Arc<Permits>>>,
    pub(crate) large_results: LargeResults,
    rejected: Mutex<BTreeMap<PluginName, Refused>>,
    /// The files of the watched folder whose names cannot name a plugin.
    misnamed: Mutex<BTreeMap<PathBuf, Finding>>,
    /// Held during each load and at the end of each unload, including the access to the plugin's file. So two loads
    /// never check tool names against the same catalog, and a removed file is never loaded. It contains the components
    /// that were live since the last [`crate::Registry::collect`].
    loading: Mutex<HashSet<Digest>>,
    /// The plugins that are loaded now or wait for it. A name is there once for each of its loads, and once more from the
    /// start until the component that the folder had then was loaded or refused.
    in_progress: Mutex<Vec<PluginName>>,
    /// Whether the components that the folder had at the start were loaded or refused.
    started: watch::Sender<bool>,
    /// Held during each change of the catalog and its event, so that events have the order of the changes.
    publishing: Mutex<()>,
    /// The number of loads so far, and the load that made each plugin live. A removal spares plugins that a later load
    /// made live.
    begun: Mutex<(u64, HashMap<PluginName, u64>)>,
    /// Runs right before the lock is next taken.
    #[cfg(test)]
    pub(crate) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Shared {
    /// A registry with no plugins.
    pub(crate) fn new(
        settings: RegistrySettings,
        loader: Arc<dyn ComponentLoader>,
        components: Components,
        clock: Arc<dyn Clock>,
        events: Events,
    ) -> Self {
        Self {
            settings,
            loader,
            components,
            clock,
            events,
            catalog: ArcSwap::default(),
            permits: Mutex::default(),
            large_results: LargeResults::default(),
            rejected: Mutex::default(),
            misnamed: Mutex::default(),
            loading: Mutex::default(),
            in_progress: Mutex::default(),
            started: watch::Sender::new(true),
            publishing: Mutex::default(),
            begun: Mutex::default(),
            #[cfg(test)]
            meanwhile: Mutex::default(),
        }
    }

    /// Locks out other loads until the guard is dropped.
    pub(crate) fn loading(&self) -> MutexGuard<'_, HashSet<Digest>> {
        #[cfg(test)]
        if let Some(meanwhile) = { lock(&self.meanwhile).take() } {
            meanwhile();
        }
        lock(&self.loading)
    }

    /// Shows operators that a plugin is being loaded, until the guard is dropped.
    pub(crate) fn in_progress(&self, plugin: &PluginName) -> InProgress<'_> {
        lock(&self.in_progress).push(plugin.clone());
        InProgress(&self.in_progress, plugin.clone())
    }

    /// Shows these plugins as being loaded, each until [`Start::ended`] and all until the value is dropped.
    pub(crate) fn starting(self: &Arc<Self>, plugins: impl IntoIterator<Item = PluginName>) -> Start {
        let plugins: Vec<_> = plugins.into_iter().collect();
        lock(&self.in_progress).extend(plugins.iter().cloned());
        self.started.send_replace(false);
        Start { shared: self.clone(), plugins }
    }

    pub(crate) fn is_starting(&self) -> bool {
        !*self.started.borrow()
    }

    /// Waits until the components that the folder had at the start were loaded or refused.
    pub(crate) async fn started(&self) {
        // The sender is a part of this value, so it is still there.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
    }

    /// The plugins that are being loaded.
    pub(crate) fn names_in_progress(&self) -> BTreeSet<PluginName> {
        lock(&self.in_progress).iter().cloned().collect()
    }

    pub(crate) fn begun(&self) -> MutexGuard<'_, (u64, HashMap<PluginName, u64>)> {
        lock(&self.begun)
    }

    /// Locks the catalog and its events for a change.
    pub(crate) fn publishing(&self) -> MutexGuard<'_, ()> {
        lock(&self.publishing)
    }

    /// The last refusal of each plugin.
    pub(crate) fn rejected(&self) -> MutexGuard<'_, BTreeMap<PluginName, Refused>> {
        lock(&self.rejected)
    }

    /// Records a file whose name cannot name a plugin. No plugin is concerned, so there is no event.
    pub(crate) fn misname(&self, path: &Path, finding: Finding) {
        tracing::warn!(file = %path.display(), %finding, "ignored a file whose name cannot name a plugin");
        lock(&self.misnamed).insert(path.to_owned(), finding);
    }

    pub(crate) fn forget_misnamed(&self, path: &Path) {
        lock(&self.misnamed).remove(path);
    }

    pub(crate) fn misnamed(&self) -> BTreeMap<PathBuf, Finding> {
        lock(&self.misnamed).clone()
    }

    /// The permits for a plugin's running calls. All its components share them.
    pub(crate) fn permits(&self, plugin: &PluginName) -> Arc<Permits> {
        let permits = || Arc::new(Permits::new(&self.settings.limits(plugin)));
        lock(&self.permits).entry(plugin.clone()).or_insert_with(permits).clone()
    }

    /// Publishes a change of a plugin, with the access of its component.
    pub(crate) fn report(&self, plugin: &PluginName, component: Digest, change: PluginChange, access: Option<&Access>) {
        match &change {
            PluginChange::Rejected { findings } => tracing::warn!(%plugin, %component, ?findings, "plugin rejected"),
            PluginChange::Loaded { tools } => tracing::info!(%plugin, %component, ?tools, "plugin loaded"),
            PluginChange::Unloaded => tracing::info!(%plugin, %component, "plugin unloaded"),
        }
        let at = self.clock.now();
        let grants = access.map_or_else(Vec::new, |access| grants::recorded(&access.effective));
        // The server adds who did it.
        (self.events)(PluginEvent { plugin: plugin.clone(), component, change, at, by: None, grants });
    }
}

/// The load of the components that the folder had at the start. It ends also if a load panics.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    plugins: Vec<PluginName>,
}

impl Start {
    /// This plugin was loaded or refused.
    pub(crate) fn ended(&mut self, plugin: &PluginName) {
        if let Some(position) = self.plugins.iter().position(|name| name == plugin) {
            remove_one(&self.shared.in_progress, &self.plugins.swap_remove(position));
        }
    }

    /// Whether nobody else has the registry any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        self.plugins.iter().for_each(|plugin| remove_one(&self.shared.in_progress, plugin));
        self.shared.started.send_replace(true);
    }
}

/// A plugin that is being loaded.
pub(crate) struct InProgress<'a>(&'a Mutex<Vec<PluginName>>, PluginName);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        remove_one(self.0, &self.1);
    }
}

/// Removes one of the entries with this name.
fn remove_one(names: &Mutex<Vec<PluginName>>, name: &PluginName) {
    let mut names = lock(names);
    if let Some(position) = names.iter().position(|other| other == name) {
        names.swap_remove(position);
    }
}

/// Takes a lock even after a panic, because each value under these locks is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
