//! From bytes to a live plugin: examine, keep, make live, publish. A failure before the last step changes nothing.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use domain::{Digest, PluginChange, PluginName, ToolName};

use crate::component::Component;
use crate::components::Known;
use crate::examine::{self, Question};
use crate::finding::Findings;
use crate::guests::Guest;
use crate::registry::{Refused, Shared};
use crate::rules::{self, Subject};
use crate::{Access, Finding, files};

/// A plugin that is live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The digest of its component.
    pub component: Digest,
    /// Its tools.
    pub tools: Vec<ToolName>,
    /// Whether anything changed: loading what is already live does nothing.
    pub changed: bool,
}

/// Why a plugin is not live.
#[derive(Debug, thiserror::Error)]
pub enum NotLoaded {
    /// It breaks rules.
    #[error("the plugin was refused: {}", .findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rejected {
        /// The digest of its component.
        component: Digest,
        /// Which, all of them.
        findings: Vec<Finding>,
    },
    /// The host failed, not the plugin.
    #[error("the host could not load the plugin")]
    Fault(#[source] io::Error),
}

/// Who brings a component.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// Somebody hands it over, and it is written into this folder if there is one.
    Given(Option<&'a Path>),
    /// It was found in the watched folder.
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
    /// Makes a component live, and writes it into a folder if one is given. Keeps its thread for as long as compiling takes.
    pub(crate) fn load(&self, plugin: &PluginName, bytes: &[u8], folder: Option<&Path>) -> Result<Loaded, NotLoaded> {
        self.load_holding(&mut self.loading(), plugin, bytes, Origin::Given(folder))
    }

    /// Loads while the caller holds the lock: the bytes of the watched folder are read under it, or they could
    /// be those of a plugin that was replaced or removed meanwhile.
    pub(crate) fn load_holding(
        &self,
        loading: &mut HashSet<Digest>,
        plugin: &PluginName,
        bytes: &[u8],
        origin: Origin<'_>,
    ) -> Result<Loaded, NotLoaded> {
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
            return Ok(Loaded { component: digest, tools: names(live), changed: false });
        }
        let owner = |tool: &str| {
            let owner = catalog.tool(tool).map(|tool| &tool.tool.plugin);
            owner.filter(|owner| *owner != plugin).cloned()
        };
        let question = Question { settings: &self.settings, plugin, component: digest, bytes, owner: &owner };
        let examined = examine::examine(&*self.guests, &question, self.components.known(digest));
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
            origin.write(plugin, bytes)
        };
        keep().map_err(NotLoaded::Fault)?;
        // A component that was live before and is again may have its guest still.
        let guest =
            examined.guest.or_else(|| catalog.component(plugin, digest).and_then(|known| known.guest.get().cloned()));
        let places = self.places(plugin);
        let mut component =
            Component::new(plugin, examined.access, digest, examined.tools, &self.settings, places, guest);
        component.built_against = examined.built_against;
        let component = Arc::new(component);
        loading.insert(digest);
        self.rejected().remove(plugin);
        let _publishing = self.publishing();
        self.catalog.rcu(|catalog| catalog.with(&component));
        self.begun().1.insert(plugin.clone(), begun);
        let tools = names(&component);
        self.tell(plugin, digest, PluginChange::Loaded { tools: tools.clone() }, Some(&component.access));
        Ok(Loaded { component: digest, tools, changed: true })
    }

    /// Remembers and tells that a component was refused.
    pub(crate) fn reject(&self, plugin: &PluginName, refused: Refused) {
        let sentences = refused.findings.iter().map(ToString::to_string).collect();
        let (component, access) = (refused.component, refused.access.clone());
        self.rejected().insert(plugin.clone(), refused);
        self.tell(plugin, component, PluginChange::Rejected { findings: sentences }, access.as_ref());
    }

    /// What is live was brought again. That the folder still has it says nothing of a component that was handed over and
    /// refused since: its findings stay.
    fn forget_refusal(&self, plugin: &PluginName, origin: Origin<'_>) {
        let mut rejected = self.rejected();
        if rejected.get(plugin).is_some_and(|refused| refused.found || !origin.is_found()) {
            rejected.remove(plugin);
        }
    }

    /// Unloads a plugin whose file is gone, unless it is there again.
    pub(crate) fn unload_missing(&self, plugin: &PluginName, file: &Path) {
        let _loading = self.loading();
        if !file.is_file() {
            self.unload(plugin);
        }
    }

    /// Takes a plugin out of the catalog. Says whether it was live.
    fn unload(&self, plugin: &PluginName) -> bool {
        self.rejected().remove(plugin);
        let _publishing = self.publishing();
        let mut live = None;
        self.catalog.rcu(|catalog| {
            live = catalog.plugin(plugin).cloned();
            catalog.without(plugin)
        });
        let Some(live) = live else { return false };
        self.tell(plugin, live.digest, PluginChange::Unloaded, None);
        true
    }

    /// Unloads a plugin and removes its file from a folder if one is given. At once, though another one may be compiled for
    /// minutes under the lock; and then once more under it, should a load have been going on that made it live since. What was
    /// loaded after that is somebody's later wish, and stays.
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

    /// Removes what neither the catalog nor a call needs.
    pub(crate) fn collect(&self, mut kept: HashSet<Digest>) -> io::Result<usize> {
        let mut recent = self.loading();
        let live: HashSet<Digest> = self.catalog.load().plugins().map(|component| component.digest).collect();
        kept.extend(recent.drain());
        kept.extend(&live);
        *recent = live;
        self.catalog.rcu(|catalog| catalog.retaining(&kept));
        self.guests.retain(&kept)?;
        self.components.retain(&kept)
    }

    /// A plugin's component by its digest, from the catalog or from the kept description. A call runs with the grants of the
    /// plugin that it is pinned to, even if the same bytes were since loaded as another plugin. Reads one small file the first
    /// time, and takes no lock: a running load delays no caller.
    pub(crate) fn component(&self, plugin: &PluginName, digest: Digest) -> Option<Arc<Component>> {
        if let Some(component) = self.catalog.load().component(plugin, digest) {
            return Some(component.clone());
        }
        if !self.components.has(digest) {
            return None;
        }
        Some(self.knowing(plugin, digest, self.components.known(digest)?, None))
    }

    /// A component whose bytes are kept and of which nothing is known any more: a record can be lost, or be of another host's
    /// form. Its guest is asked again, which keeps the thread. `None` where there are no bytes of this digest.
    pub(crate) fn recall(&self, plugin: &PluginName, digest: Digest) -> io::Result<Option<Arc<Component>>> {
        let Some(bytes) = self.components.bytes(digest)? else { return Ok(None) };
        let question =
            Question { settings: &self.settings, plugin, component: digest, bytes: &bytes, owner: &|_| None };
        let (known, guest, access) = examine::again(&*self.guests, &question)?;
        let Some(known) = known else {
            // Its result schemas are lost. It may still run; if not, the step that makes its guest reports why.
            let places = self.places(plugin);
            let component = Component::new(plugin, access, digest, Vec::new(), &self.settings, places, None);
            return Ok(Some(Arc::new(component)));
        };
        self.components.describe(digest, &known)?;
        Ok(Some(self.knowing(plugin, digest, known, guest)))
    }

    /// Puts a component that is not live into the catalog.
    fn knowing(
        &self,
        plugin: &PluginName,
        digest: Digest,
        known: Known,
        guest: Option<Arc<dyn Guest>>,
    ) -> Arc<Component> {
        let Known { has_server, declared, wants, .. } = known;
        let subject = Subject { plugin, component: digest, has_server, declared: &declared };
        // The rules were checked when it was loaded. Stricter rules since then do not stop its waiting calls; its grants are the
        // current ones.
        let tools = rules::judge(&subject, &self.settings, &|_| None, &mut Findings::default());
        let access = Access::of(&self.settings, plugin, digest, wants);
        let places = self.places(plugin);
        let component = Arc::new(Component::new(plugin, access, digest, tools, &self.settings, places, guest));
        self.catalog.rcu(|catalog| catalog.knowing(&component));
        self.catalog.load().component(plugin, digest).cloned().unwrap_or(component)
    }
}

fn names(component: &Component) -> Vec<ToolName> {
    component.tools.iter().map(|tool| tool.tool.name.clone()).collect()
}
