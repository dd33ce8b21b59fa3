//! Records changes of plugins in the audit log, with the principal that made them. Tells other hosts which plugins are live. Also removes
//! unused components.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dispatch::Handle;
use dispatch::ports::{Indexes, LivePlugins, Log, Peers, StoreFault};
use domain::{Digest, PluginName, PrincipalId, Turn, event::PluginEvent};
use registry::Registry;
use tokio::sync::mpsc;

use crate::upstream_servers::UpstreamServers;

/// How often unused components are removed.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// How often the live plugins are read for the other hosts.
const REPORT: Duration = Duration::from_secs(1);

/// How many unfinished turns are read at once.
const PAGE: usize = 500;

/// The principals that are changing plugins over the HTTP API. A change in the folder has no known principal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actors(Arc<Mutex<HashMap<PluginName, PrincipalId>>>);

impl Actors {
    /// Until the value is dropped, changes of the plugin are recorded with this principal.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API has a principal for a change"))]
    pub(crate) fn acting(&self, plugin: &PluginName, by: PrincipalId) -> Acting {
        self.lock().insert(plugin.clone(), by);
        Acting { actors: self.clone(), plugin: plugin.clone() }
    }

    fn of(&self, plugin: &PluginName) -> Option<PrincipalId> {
        self.lock().get(plugin).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PluginName, PrincipalId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change of a plugin by a principal.
pub(crate) struct Acting {
    actors: Actors,
    plugin: PluginName,
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.actors.lock().remove(&self.plugin);
    }
}

/// Events of the registry. The registry starts before the core, so its first events wait here.
pub(crate) type Changes = mpsc::UnboundedReceiver<PluginEvent>;

/// The sink for a registry's events, and the receiver of them.
pub(crate) fn events(actors: Actors) -> (registry::Events, Changes) {
    let (sender, changes) = mpsc::unbounded_channel();
    let events = Arc::new(move |event: PluginEvent| {
        let by = actors.of(&event.plugin);
        // A closing host has no receiver. The next start reports the plugins again.
        let _ = sender.send(PluginEvent { by, ..event });
    });
    (events, changes)
}

/// Records the changes in their order.
pub(crate) async fn record(mut changes: Changes, handle: Handle) {
    while let Some(event) = changes.recv().await {
        let plugin = event.plugin.clone();
        if let Err(error) = handle.plugin_changed(event).await {
            tracing::error!(%plugin, %error, "a change of a plugin could not be recorded in the audit log");
        }
    }
}

/// Tells the other hosts on the store which plugins are live here. Begins when the plugins of the start are loaded.
pub(crate) async fn report(plugins: Registry, servers: UpstreamServers, peers: Arc<impl Peers + ?Sized>) {
    plugins.loaded().await;
    let mut now = tokio::time::interval(REPORT);
    loop {
        now.tick().await;
        peers.report_plugins(LivePlugins(plugins.live().into_iter().chain(servers.accepted()).collect()));
    }
}

/// Removes components that no unfinished turn needs: at the start, and then at intervals.
pub(crate) async fn collect(log: Arc<impl Log + Indexes + ?Sized>, plugins: Registry, handle: Handle) {
    let mut now = tokio::time::interval(INTERVAL);
    loop {
        now.tick().await;
        match collect_once(log.as_ref(), &plugins, &handle).await {
            Ok(removed) => tracing::debug!(removed, "removed components that no call needs"),
            Err(error) => tracing::warn!(%error, "components that no call needs could not be removed"),
        }
    }
}

/// Removes components of this host and, if it is the first one, those that hosts share. A component that no host needed for two
/// intervals is in no newer turn than those that are read here.
async fn collect_once<S: Log + Indexes + ?Sized>(log: &S, plugins: &Registry, handle: &Handle) -> io::Result<usize> {
    plugins.loaded().await;
    let in_use = in_use(log).await.map_err(io::Error::other);
    // The live ones stay also if the turns cannot be read here.
    plugins.share(in_use.as_ref().map_or_else(|_| HashSet::new(), HashSet::clone)).await?;
    let in_use = in_use?;
    let removed = plugins.collect(in_use.clone()).await?;
    if handle.share().is_first() {
        plugins.collect_shared(in_use, 2 * INTERVAL).await?;
    }
    Ok(removed)
}

/// The components that calls of unfinished turns are pinned to.
async fn in_use<S: Log + Indexes + ?Sized>(log: &S) -> Result<HashSet<Digest>, StoreFault> {
    let mut digests = HashSet::new();
    let mut after = None;
    loop {
        let page = log.unfinished(after, PAGE).await?;
        for (id, _) in &page {
            let Some(loaded) = log.load(*id).await?.found() else { continue };
            let turn = Turn::replay(&loaded.events);
            let calls = turn.iter().flat_map(|turn| &turn.calls);
            digests.extend(calls.filter_map(|call| call.pinned.as_ref()).map(|pinned| pinned.component));
        }
        let Some((last, _)) = page.last() else { return Ok(digests) };
        after = Some(*last);
    }
}
