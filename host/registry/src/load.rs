//! From bytes to a live plugin: examine, keep, make live, tell. Whatever fails before the last step changes nothing.

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

impl Shared {
    /// Makes a component live, and writes it into a folder if one is given. Keeps its thread for as long as compiling takes.
    pub(crate) fn load(&self, plugin: &PluginName, bytes: &[u8], folder: Option<&Path>) -> Result<Loaded, NotLoaded> {
        let digest = Digest::of(bytes);
        let mut loading = self.loading();
        let catalog = self.catalog.load_full();
        let write = |bytes| folder.map_or(Ok(()), |folder| files::write(folder, &format!("{plugin}.wasm"), bytes));
        if let Some(live) = catalog.plugin(plugin).filter(|live| live.digest == digest) {
            write(bytes).map_err(NotLoaded::Fault)?;
            self.rejected().remove(plugin);
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
            self.reject(plugin, digest, examined.findings.clone(), Some(examined.access));
            return Err(NotLoaded::Rejected { component: digest, findings: examined.findings });
        }
        let keep = || {
            self.components.keep(digest, bytes)?;
            examined.news.as_ref().map_or(Ok(()), |known| self.components.describe(digest, known))?;
            write(bytes)
        };
        keep().map_err(NotLoaded::Fault)?;
        // A component that was live before and is again may have its guest still.
        let guest = examined.guest.or_else(|| catalog.component(digest).and_then(|known| known.guest.get().cloned()));
        let places = self.places(plugin);
        let component = Component::new(plugin, examined.access, digest, examined.tools, &self.settings, places, guest);
        let component = Arc::new(component);
        self.catalog.rcu(|catalog| catalog.with(&component));
        loading.insert(digest);
        self.rejected().remove(plugin);
        let tools = names(&component);
        self.tell(plugin, digest, PluginChange::Loaded { tools: tools.clone() }, Some(&component.access));
        Ok(Loaded { component: digest, tools, changed: true })
    }

    /// Remembers and tells that a component was refused.
    pub(crate) fn reject(&self, plugin: &PluginName, digest: Digest, findings: Vec<Finding>, access: Option<Access>) {
        let sentences = findings.iter().map(ToString::to_string).collect();
        self.rejected().insert(plugin.clone(), Refused { component: digest, findings, access: access.clone() });
        self.tell(plugin, digest, PluginChange::Rejected { findings: sentences }, access.as_ref());
    }

    /// Takes a plugin out of the catalog. Says whether it was live.
    pub(crate) fn unload(&self, plugin: &PluginName) -> bool {
        let _loading = self.loading();
        self.rejected().remove(plugin);
        let Some(live) = self.catalog.load().plugin(plugin).cloned() else { return false };
        self.catalog.rcu(|catalog| catalog.without(plugin));
        self.tell(plugin, live.digest, PluginChange::Unloaded, None);
        true
    }

    /// Unloads a plugin and removes its file.
    pub(crate) fn remove(&self, plugin: &PluginName) -> io::Result<bool> {
        let file = self.settings.folder.as_ref().map(|folder| folder.join(format!("{plugin}.wasm")));
        let was_there = file.map_or(Ok(false), |file| files::remove(&file))?;
        Ok(self.unload(plugin) || was_there)
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

    /// A component by its digest, from the catalog or from what was kept of it. Reads one small file where it is neither
    /// live nor was asked for before, and takes no lock: a load that is going on keeps nobody waiting.
    pub(crate) fn component(&self, digest: Digest) -> Option<Arc<Component>> {
        if let Some(component) = self.catalog.load().component(digest) {
            return Some(component.clone());
        }
        if !self.components.has(digest) {
            return None;
        }
        Some(self.knowing(digest, self.components.known(digest)?, None))
    }

    /// A component whose bytes are kept and of which nothing is known any more: a record can be lost, or be of another host's
    /// form. Its guest is asked again, which keeps the thread. `None` where there are no bytes of this digest.
    pub(crate) fn recall(&self, plugin: &PluginName, digest: Digest) -> io::Result<Option<Arc<Component>>> {
        let Some(bytes) = self.components.bytes(digest)? else { return Ok(None) };
        let question =
            Question { settings: &self.settings, plugin, component: digest, bytes: &bytes, owner: &|_| None };
        let (known, guest, access) = examine::again(&*self.guests, &question)?;
        let Some(known) = known else {
            // What it promised of its results is lost, and it may run all the same; or whoever makes its guest says why not.
            let places = self.places(plugin);
            let component = Component::new(plugin, access, digest, Vec::new(), &self.settings, places, None);
            return Ok(Some(Arc::new(component)));
        };
        self.components.describe(digest, &known)?;
        Ok(Some(self.knowing(digest, known, guest)))
    }

    /// Puts a component that is not live into the catalog.
    fn knowing(&self, digest: Digest, known: Known, guest: Option<Arc<dyn Guest>>) -> Arc<Component> {
        let Known { plugin, has_server, declared, wants, .. } = known;
        let subject = Subject { plugin: &plugin, component: digest, has_server, declared: &declared };
        // It was judged when it was loaded. Should the rules be stricter by now, its waiting calls are served all the same;
        // what it may use is what it is granted now.
        let tools = rules::judge(&subject, &self.settings, &|_| None, &mut Findings::default());
        let access = Access::of(&self.settings, &plugin, digest, wants);
        let places = self.places(&plugin);
        let component = Arc::new(Component::new(&plugin, access, digest, tools, &self.settings, places, guest));
        self.catalog.rcu(|catalog| catalog.knowing(&component));
        self.catalog.load().component(digest).cloned().unwrap_or(component)
    }
}

fn names(component: &Component) -> Vec<ToolName> {
    component.tools.iter().map(|tool| tool.tool.name.clone()).collect()
}
