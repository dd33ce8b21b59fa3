//! What becomes of plugins is written down: the registry tells, and the core records it, with who did it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dispatch::Handle;
use dispatch::ports::{Store, StoreFault};
use domain::{Digest, PluginEvent, PluginName, PrincipalId, Turn};
use registry::Registry;
use tokio::sync::mpsc;

/// How often components that no call needs any more are removed.
const COLLECT: Duration = Duration::from_secs(60 * 60);

/// How many unfinished turns are looked at in one go.
const PAGE: usize = 500;

/// Who is changing which plugin through a door. What changes in the folder is nobody's doing that we know.
#[derive(Debug, Clone, Default)]
pub(crate) struct Actors(Arc<Mutex<HashMap<PluginName, PrincipalId>>>);

impl Actors {
    /// Until the value is dropped, what becomes of the plugin is this principal's doing.
    #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "only the HTTP API changes plugins in a name"))]
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

/// Somebody is changing a plugin.
pub(crate) struct Acting {
    actors: Actors,
    plugin: PluginName,
}

impl Drop for Acting {
    fn drop(&mut self) {
        self.actors.lock().remove(&self.plugin);
    }
}

/// What the registry tells, on its way to the core. The registry is there first, so what it tells meanwhile waits here.
pub(crate) type Told = mpsc::UnboundedReceiver<PluginEvent>;

/// A registry's events, and where they come out.
pub(crate) fn events(actors: Actors) -> (registry::Events, Told) {
    let (sender, told) = mpsc::unbounded_channel();
    let events = Arc::new(move |event: PluginEvent| {
        let by = actors.of(&event.plugin);
        // Nobody listens once the host is closing; what then becomes of plugins is told anew at the next start.
        let _ = sender.send(PluginEvent { by, ..event });
    });
    (events, told)
}

/// Records what is told, in its order.
pub(crate) async fn record(mut told: Told, handle: Handle) {
    while let Some(event) = told.recv().await {
        let plugin = event.plugin.clone();
        if let Err(error) = handle.plugin_changed(event).await {
            tracing::error!(%plugin, %error, "what became of a plugin could not be recorded");
        }
    }
}

/// Removes components that no unfinished turn needs, at the start and then now and again.
pub(crate) async fn collect(store: Arc<dyn Store>, registry: Registry) {
    let mut now = tokio::time::interval(COLLECT);
    loop {
        now.tick().await;
        let removed = match in_use(store.as_ref()).await {
            Ok(in_use) => registry.collect(in_use).await.map_err(|error| error.to_string()),
            Err(fault) => Err(fault.to_string()),
        };
        match removed {
            Ok(removed) => tracing::debug!(removed, "components that no call needs are gone"),
            Err(error) => tracing::warn!(error, "components that no call needs could not be removed"),
        }
    }
}

/// The components that calls of unfinished turns are pinned to.
async fn in_use(store: &dyn Store) -> Result<HashSet<Digest>, StoreFault> {
    let mut digests = HashSet::new();
    let mut after = None;
    loop {
        let page = store.unfinished(after, PAGE).await?;
        for (id, _) in &page {
            let Some(loaded) = store.load(*id).await? else { continue };
            let turn = Turn::replay(&loaded.events);
            let calls = turn.iter().flat_map(|turn| &turn.calls);
            digests.extend(calls.filter_map(|call| call.pinned.as_ref()).map(|pinned| pinned.component));
        }
        let Some((last, _)) = page.last() else { return Ok(digests) };
        after = Some(*last);
    }
}
