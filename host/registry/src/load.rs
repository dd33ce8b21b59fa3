//! Makes a component live: examine, store, replace the catalog, publish. A failure before the last step changes
//! nothing.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use domain::{CatalogLimits, Digest, PluginName, ToolName, event::PluginChange};

use crate::component::Component;
use crate::components::Known;
use crate::examine::{self, Candidate};
use crate::finding::Findings;
use crate::guests::LoadedComponent;
use crate::rules::{self, Subject};
use crate::shared::{Refused, Shared};
use crate::{Access, Finding, Note, files};

/// The result of a successful load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadReport {
    /// The digest of its component.
    pub component: Digest,
    pub tools: Vec<ToolName>,
    /// The parts of its declaration that this host reduces.
    pub notes: Vec<Note>,
    /// False if this component was already live.
    pub changed: bool,
}

/// Why a plugin is not live.
#[derive(Debug, thiserror::Error)]
pub enum NotLoaded {
    /// The component breaks rules.
    #[error("the plugin was refused: {}", .findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rejected {
        component: Digest,
        /// Every rule that it breaks.
        findings: Vec<Finding>,
    },
    /// The host failed, not the plugin.
    #[error("the host could not load the plugin")]
    Fault(#[source] io::Error),
}

/// Where a component comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// An API caller or the embedding program. If there is a folder, the component is also written there.
    Given(Option<&'a Path>),
    /// The watched folder.
    Found,
}

impl Origin<'_> {
    fn write(self, plugin: &PluginName, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Given(Some(folder)) => files::write(folder, &file_name(plugin), bytes),
            Self::Given(None) | Self::Found => Ok(()),
        }
    }

    fn is_found(self) -> bool {
        matches!(self, Self::Found)
    }
}

/// The name of a plugin's file in the watched folder.
fn file_name(plugin: &PluginName) -> String {
    format!("{plugin}.wasm")
}

impl Shared {
    /// Makes a component live, and writes it into a folder if one is given. Blocks its thread while it compiles.
    pub(crate) fn load(
        &self,
        plugin: &PluginName,
        bytes: &[u8],
        folder: Option<&Path>,
    ) -> Result<LoadReport, NotLoaded> {
        let _in_progress = self.in_progress(plugin);
        self.load_holding(&mut self.loading(), plugin, bytes, Origin::Given(folder))
    }

    /// Loads while the caller holds the lock. The watcher reads a file under the same lock, so that it cannot load
    /// bytes that were replaced or removed meanwhile.
    pub(crate) fn load_holding(
        &self,
        loading: &mut HashSet<Digest>,
        plugin: &PluginName,
        bytes: &[u8],
        origin: Origin<'_>,
    ) -> Result<LoadReport, NotLoaded> {
        let begun = {
            let mut begun = self.begun();
            begun.0 += 1;
            begun.0
        };
        let digest = Digest::of(bytes);
        let catalog = self.catalog.load_full();
        if let Some(live) = catalog.plugin(plugin).filter(|live| live.digest == digest) {
            origin.write(plugin, bytes).map_err(NotLoaded::Fault)?;
            self.begun().1.insert(plugin.clone(), begun);
            self.forget_refusal(plugin, origin);
            return Ok(LoadReport { component: digest, tools: names(live), notes: live.notes(), changed: false });
        }
        let owner = |tool: &str| {
            let owner = catalog.tool(tool).map(|tool| &tool.tool.plugin);
            owner.filter(|owner| *owner != plugin).cloned()
        };
        let candidate = Candidate { settings: &self.settings, plugin, component: digest, bytes, owner: &owner };
        let examined = examine::examine(&*self.loader, &candidate, self.components.known(digest));
        let examined = examined.map_err(NotLoaded::Fault)?;
        if !examined.findings.is_empty() {
            let findings = examined.findings;
            let refused = Refused {
                component: digest,
                findings: findings.clone(),
                access: Some(examined.access),
                built_against: examined.built_against,
                found: origin.is_found(),
            };
            self.reject(plugin, refused);
            return Err(NotLoaded::Rejected { component: digest, findings });
        }
        let keep = || {
            self.components.keep(digest, bytes)?;
            examined.news.as_ref().map_or(Ok(()), |known| self.components.describe(digest, known))?;
            self.components.share(digest, bytes)?;
            origin.write(plugin, bytes)
        };
        keep().map_err(NotLoaded::Fault)?;
        // If the component was live before, it may still have its guest.
        let guest =
            examined.loaded.or_else(|| catalog.component(plugin, digest).and_then(|known| known.loaded.get().cloned()));
        let permits = self.permits(plugin);
        let mut component =
            Component::new(plugin, examined.access, digest, examined.tools, &self.settings, permits, guest);
        component.built_against = examined.built_against;
        let component = Arc::new(component);
        loading.insert(digest);
        self.rejected().remove(plugin);
        let _publishing = self.publishing();
        self.catalog.rcu(|catalog| catalog.with(&component));
        self.begun().1.insert(plugin.clone(), begun);
        // Calls of the component before it continue in new instances.
        self.loader.release_plugin(plugin);
        let (tools, notes) = (names(&component), component.notes());
        for note in &notes {
            tracing::warn!(%plugin, component = %digest, "{note}");
        }
        self.report(plugin, digest, PluginChange::Loaded { tools: tools.clone() }, Some(&component.access));
        Ok(LoadReport { component: digest, tools, notes, changed: true })
    }

    /// Records a refusal and publishes it.
    pub(crate) fn reject(&self, plugin: &PluginName, refused: Refused) {
        let sentences = refused.findings.iter().map(ToString::to_string).collect();
        let (component, access) = (refused.component, refused.access.clone());
        self.rejected().insert(plugin.clone(), refused);
        self.report(plugin, component, PluginChange::Rejected { findings: sentences }, access.as_ref());
    }

    /// Drops the recorded refusal when the live component is loaded again. If the folder brings it, a refusal of an
    /// uploaded component stays, because the unchanged file says nothing about that upload.
    fn forget_refusal(&self, plugin: &PluginName, origin: Origin<'_>) {
        let mut rejected = self.rejected();
        if rejected.get(plugin).is_some_and(|refused| refused.found || !origin.is_found()) {
            rejected.remove(plugin);
        }
    }

    /// Unloads a plugin whose file is missing, unless the file exists again.
    pub(crate) fn unload_missing(&self, plugin: &PluginName, file: &Path) {
        let _loading = self.loading();
        if !file.is_file() {
            self.unload(plugin);
        }
    }

    /// Removes a plugin from the catalog. Returns whether it was live.
    fn unload(&self, plugin: &PluginName) -> bool {
        self.rejected().remove(plugin);
        let _publishing = self.publishing();
        let mut live = None;
        self.catalog.rcu(|catalog| {
            live = catalog.plugin(plugin).cloned();
            catalog.without(plugin)
        });
        let Some(live) = live else { return false };
        self.loader.release_plugin(plugin);
        self.report(plugin, live.digest, PluginChange::Unloaded, None);
        true
    }

    /// Unloads a plugin, and removes its file from a folder if one is given. It does so at once, without the lock,
    /// because another load may hold the lock for minutes. Then it repeats it under the lock, in case a load that was
    /// already running made the plugin live. A load that began after the removal stays.
    pub(crate) fn remove(&self, plugin: &PluginName, folder: Option<&Path>) -> io::Result<bool> {
        let remove = || -> io::Result<bool> {
            let was_there = folder.map_or(Ok(false), |folder| files::remove(&folder.join(file_name(plugin))))?;
            Ok(self.unload(plugin) || was_there)
        };
        let before = self.begun().0;
        let was = remove()?;
        let _loading = self.loading();
        let is_later = self.begun().1.get(plugin).is_some_and(|load| *load > before);
        Ok((!is_later && remove()?) || was)
    }

    /// The digests of the live components.
    pub(crate) fn live(&self) -> HashSet<Digest> {
        self.catalog.load().plugins().map(|component| component.digest).collect()
    }

    /// Removes the components that neither the catalog nor a call needs.
    pub(crate) fn collect(&self, mut kept: HashSet<Digest>) -> io::Result<usize> {
        let mut recent = self.loading();
        let live = self.live();
        kept.extend(recent.drain());
        kept.extend(&live);
        *recent = live;
        self.catalog.rcu(|catalog| catalog.retaining(&kept));
        self.loader.retain(&kept)?;
        self.components.retain(&kept)
    }

    /// A plugin's component by its digest, from the catalog or from its record. A call runs with the grants of the
    /// plugin that it is pinned to, even if the same bytes were later loaded as another plugin. The first call reads
    /// one small file. It takes no lock, so a running load delays no caller.
    pub(crate) fn component(&self, plugin: &PluginName, digest: Digest) -> Option<Arc<Component>> {
        if let Some(component) = self.catalog.load().component(plugin, digest) {
            return Some(component.clone());
        }
        if !self.components.has(digest) {
            return None;
        }
        Some(self.knowing(plugin, digest, self.components.known(digest)?, None))
    }

    /// A component that only another host has, or whose record is lost or of an unknown form. Without a record, it asks the guest
    /// again. Blocks its thread. `None` if no bytes have this digest.
    pub(crate) fn recall(&self, plugin: &PluginName, digest: Digest) -> io::Result<Option<Arc<Component>>> {
        let Some(bytes) = self.components.bytes(digest)? else { return Ok(None) };
        if let Some(component) = self.component(plugin, digest) {
            return Ok(Some(component));
        }
        let candidate =
            Candidate { settings: &self.settings, plugin, component: digest, bytes: &bytes, owner: &|_| None };
        let (known, guest, access) = examine::again(&*self.loader, &candidate)?;
        let Some(known) = known else {
            // Without its result schemas it may still run. If not, the step that makes its guest reports why.
            let permits = self.permits(plugin);
            let component = Component::new(plugin, access, digest, Vec::new(), &self.settings, permits, None);
            return Ok(Some(Arc::new(component)));
        };
        self.components.describe(digest, &known)?;
        Ok(Some(self.knowing(plugin, digest, known, guest)))
    }

    /// Adds a component that is not live to the catalog.
    fn knowing(
        &self,
        plugin: &PluginName,
        digest: Digest,
        known: Known,
        guest: Option<Arc<dyn LoadedComponent>>,
    ) -> Arc<Component> {
        let Known { has_server, declared, manifest, .. } = known;
        // The rules were checked when the component was loaded. Rules and limits that are stricter today do not stop its
        // waiting calls. Its grants are today's.
        let limits = &CatalogLimits::MAX;
        let subject = Subject { plugin, component: digest, has_server, declared: &declared, limits };
        let tools = rules::check(&subject, &self.settings, &|_| None, &mut Findings::default());
        let access = Access::of(&self.settings, plugin, digest, manifest);
        let permits = self.permits(plugin);
        let component = Arc::new(Component::new(plugin, access, digest, tools, &self.settings, permits, guest));
        self.catalog.rcu(|catalog| catalog.knowing(&component));
        self.catalog.load().component(plugin, digest).cloned().unwrap_or(component)
    }
}

fn names(component: &Component) -> Vec<ToolName> {
    component.tools.iter().map(|tool| tool.tool.name.clone()).collect()
}
