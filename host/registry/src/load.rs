//! From bytes to a live plugin: examine, keep, make live, tell. Whatever fails before the last step changes nothing.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use domain::{Digest, Failure, FailureCode, PluginChange, PluginName, Tool, ToolName};
use sandbox::{Capabilities, Capability, LoadError};

use crate::component::Component;
use crate::components::Known;
use crate::finding::Findings;
use crate::guests::{Guest, Guests};
use crate::registry::Shared;
use crate::rules::{self, Subject};
use crate::{Finding, LoadRule, Settings, files};

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

/// What was found about a component.
pub(crate) struct Examined {
    /// Its tools, as far as they could be read.
    pub(crate) tools: Vec<Tool>,
    /// What is wrong with it.
    pub(crate) findings: Vec<Finding>,
    /// Its guest, if it had to be compiled to find out.
    guest: Option<Arc<dyn Guest>>,
    /// What to write down, if that was not known before.
    news: Option<Known>,
}

/// Applies every rule to a component. `known` spares compiling and asking it; `owner` names the other live plugin that has a
/// tool of this name.
///
/// # Errors
/// When the host failed and not the component.
pub(crate) fn examine(
    guests: &dyn Guests,
    settings: &Settings,
    plugin: &PluginName,
    digest: Digest,
    bytes: &[u8],
    known: Option<Known>,
    owner: &dyn Fn(&str) -> Option<PluginName>,
) -> io::Result<Examined> {
    let mut findings = Findings::default();
    let capabilities = settings.grants(plugin).capabilities();
    let usable = known.filter(|known| known.current && known.capabilities == capabilities);
    let (known, guest, is_new) = match usable {
        Some(known) => {
            let is_new = known.plugin != *plugin;
            (Some(Known { plugin: plugin.clone(), ..known }), None, is_new)
        }
        None => {
            let (known, guest) = ask(guests, plugin, digest, bytes, capabilities, &mut findings)?;
            (known, guest, true)
        }
    };
    let tools = known.as_ref().map_or_else(Vec::new, |known| {
        let subject = Subject { plugin, component: digest, has_server: known.has_server, declared: &known.declared };
        rules::judge(&subject, settings, owner, &mut findings)
    });
    Ok(Examined { tools, findings: findings.into_vec(), guest, news: known.filter(|_| is_new) })
}

type Asked = (Option<Known>, Option<Arc<dyn Guest>>);

/// Compiles a component and asks it for its tools.
fn ask(
    guests: &dyn Guests,
    plugin: &PluginName,
    digest: Digest,
    bytes: &[u8],
    capabilities: Capabilities,
    findings: &mut Findings,
) -> io::Result<Asked> {
    let guest = match guests.load(digest, bytes, capabilities) {
        Ok(guest) => guest,
        Err(error) => {
            let only_grants =
                matches!(&error, LoadError::Imports(imports) if imports.iter().all(|i| i.needs.is_some()));
            refuse(error, findings)?;
            if !only_grants {
                return Ok((None, None));
            }
            // Declarations are read without any capability whatever is granted, so a component that lacks only grants can
            // still be asked, and its author sees every finding at once.
            match guests.load(digest, bytes, Capabilities::EVERY) {
                Ok(guest) => guest,
                Err(error) => {
                    refuse(error, findings)?;
                    return Ok((None, None));
                }
            }
        }
    };
    let declared = match declarations(guest.as_ref())? {
        Ok(declared) => declared,
        Err(failure) => {
            let message = format!("the plugin could not say what its tools are: {}", failure.message);
            findings.add(LoadRule::Catalog, message, "let `catalog.tools` return a constant, within the limits");
            return Ok((None, None));
        }
    };
    let has_server = guest.has_server();
    Ok((Some(Known { plugin: plugin.clone(), capabilities, has_server, declared, current: true }), Some(guest)))
}

/// Runs the guest on a thread and a runtime of its own: it may compute for as long as it is allowed to, and nobody else shall
/// wait for that.
fn declarations(guest: &dyn Guest) -> io::Result<Result<Vec<sandbox::Declared>, Failure>> {
    let ask = || -> io::Result<_> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(guest.declarations()))
    };
    let answer = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("toolgate-catalog".into()).spawn_scoped(scope, ask)?;
        thread.join().map_err(|_| io::Error::other("asking a plugin for its tools panicked"))?
    })?;
    match answer {
        Err(failure) if matches!(failure.code, FailureCode::Busy | FailureCode::HostFault) => {
            Err(io::Error::other(failure.message))
        }
        answer => Ok(answer),
    }
}

/// Makes findings of what the sandbox says of a component.
fn refuse(error: LoadError, findings: &mut Findings) -> io::Result<()> {
    let message = error.to_string();
    let (rule, remedy) = match error {
        LoadError::Host(source) => return Err(io::Error::other(source)),
        LoadError::Imports(imports) => {
            for import in imports {
                findings.add(
                    LoadRule::ImportNotGranted,
                    format!("the component imports {import}"),
                    remedy(import.needs),
                );
            }
            return Ok(());
        }
        LoadError::Malformed(_) => (LoadRule::InvalidComponent, "build it again"),
        LoadError::Module => (LoadRule::InvalidComponent, "make it a component"),
        LoadError::TooLarge { .. } => {
            (LoadRule::ComponentFile, "make it smaller: strip it, leave out what it does not use")
        }
        LoadError::NotAPlugin => (LoadRule::UnknownInterface, "build it against a world of toolgate:plugin"),
        LoadError::Version { .. } => (LoadRule::UnknownInterface, "build it against a version that this host speaks"),
        LoadError::Compile(_) => (LoadRule::InvalidComponent, "build it for wasm32-wasip2, without further proposals"),
        LoadError::Link(_) => (LoadRule::InvalidComponent, "build it against the interface as it was released"),
    };
    findings.add(rule, message, remedy);
    Ok(())
}

fn remedy(needs: Option<Capability>) -> String {
    match needs {
        Some(capability) => format!("grant `{capability}` to the plugin in the host's configuration, or do without it"),
        None => "do without it".to_owned(),
    }
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
        let known = self.components.known(digest);
        let examined = examine(&*self.guests, &self.settings, plugin, digest, bytes, known, &owner);
        let examined = examined.map_err(NotLoaded::Fault)?;
        if !examined.findings.is_empty() {
            self.reject(plugin, digest, examined.findings.clone());
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
        let component = Component::new(plugin, digest, examined.tools, &self.settings, self.places(plugin), guest);
        let component = Arc::new(component);
        self.catalog.rcu(|catalog| catalog.with(&component));
        loading.insert(digest);
        self.rejected().remove(plugin);
        let tools = names(&component);
        self.tell(plugin, digest, PluginChange::Loaded { tools: tools.clone() });
        Ok(Loaded { component: digest, tools, changed: true })
    }

    /// Remembers and tells that a component was refused.
    pub(crate) fn reject(&self, plugin: &PluginName, digest: Digest, findings: Vec<Finding>) {
        let sentences = findings.iter().map(ToString::to_string).collect();
        self.rejected().insert(plugin.clone(), (digest, findings));
        self.tell(plugin, digest, PluginChange::Rejected { findings: sentences });
    }

    /// Takes a plugin out of the catalog. Says whether it was live.
    pub(crate) fn unload(&self, plugin: &PluginName) -> bool {
        let _loading = self.loading();
        self.rejected().remove(plugin);
        let Some(live) = self.catalog.load().plugin(plugin).cloned() else { return false };
        self.catalog.rcu(|catalog| catalog.without(plugin));
        self.tell(plugin, live.digest, PluginChange::Unloaded);
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
        let capabilities = self.settings.grants(plugin).capabilities();
        let mut findings = Findings::default();
        let (known, guest) = ask(&*self.guests, plugin, digest, &bytes, capabilities, &mut findings)?;
        let Some(known) = known else {
            // What it promised of its results is lost, and it may run all the same; or whoever makes its guest says why not.
            tracing::warn!(component = %digest, findings = ?findings.into_vec(), "a component could not be asked again");
            let places = self.places(plugin);
            return Ok(Some(Arc::new(Component::new(plugin, digest, Vec::new(), &self.settings, places, None))));
        };
        self.components.describe(digest, &known)?;
        Ok(Some(self.knowing(digest, known, guest)))
    }

    /// Puts a component that is not live into the catalog.
    fn knowing(&self, digest: Digest, known: Known, guest: Option<Arc<dyn Guest>>) -> Arc<Component> {
        let Known { plugin, has_server, declared, .. } = known;
        let subject = Subject { plugin: &plugin, component: digest, has_server, declared: &declared };
        // It was judged when it was loaded. Should the rules be stricter by now, its waiting calls are served all the same.
        let tools = rules::judge(&subject, &self.settings, &|_| None, &mut Findings::default());
        let component = Component::new(&plugin, digest, tools, &self.settings, self.places(&plugin), guest);
        let component = Arc::new(component);
        self.catalog.rcu(|catalog| catalog.knowing(&component));
        self.catalog.load().component(digest).cloned().unwrap_or(component)
    }
}

fn names(component: &Component) -> Vec<ToolName> {
    component.tools.iter().map(|tool| tool.tool.name.clone()).collect()
}
