//! Examines a component before it may become live.
//!
//! ```text
//! bytes ─ look ─► check imports and the section's declaration ─► any finding: stop
//!                                      │ no finding
//!                                      └─► compile, ask `tools()` ─► compare with the section; without one, check the tools
//! ```
//!
//! A component with a section is not compiled before its imports and declaration passed. Approvers see the declaration
//! of the section.

use std::io;
use std::sync::Arc;

use capabilities::{Capabilities, Capability};
use domain::{
    CatalogLimits, Digest, PluginName, Tool,
    outcome::{Failure, FailureCode},
};
use sandbox::{CompileCost, LoadError, Sandbox};

use crate::components::Known;
use crate::declaration::Declaration;
use crate::finding::Findings;
use crate::grants::{self, Access};
use crate::guests::{ComponentLoader, LoadedComponent, Looked};
use crate::rules::{self, Subject};
use crate::{Finding, GrantHolder, LoadRule, RegistrySettings};

/// A component, and the settings under which it is examined.
pub(crate) struct Candidate<'a> {
    pub(crate) settings: &'a RegistrySettings,
    pub(crate) plugin: &'a PluginName,
    pub(crate) component: Digest,
    pub(crate) bytes: &'a [u8],
    /// Returns the other live plugin that has a tool of this name.
    pub(crate) owner: &'a dyn Fn(&str) -> Option<PluginName>,
}

/// The result of an examination.
pub(crate) struct Examined {
    /// The version of the interface that it was built against. `None` if it could not be read.
    pub(crate) built_against: Option<String>,
    /// Its tools, as far as they could be read.
    pub(crate) tools: Vec<Tool>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) access: Access,
    /// Whether it has a section with its declaration.
    pub(crate) is_packed: bool,
    /// Its code, if the examination compiled it.
    pub(crate) loaded: Option<Arc<dyn LoadedComponent>>,
    /// A record to store, if there was none before.
    pub(crate) news: Option<Known>,
}

/// Checks a component against every rule. With a `known` record it need not be compiled and asked.
///
/// # Errors
/// If the host failed, not the component.
pub(crate) fn examine(
    loader: &dyn ComponentLoader,
    candidate: &Candidate<'_>,
    known: Option<Known>,
) -> io::Result<Examined> {
    let mut findings = Findings::default();
    let ended = |built_against, findings: Findings, tools, access, is_packed| {
        let findings = findings.into_vec();
        Ok(Examined { built_against, tools, findings, access, is_packed, loaded: None, news: None })
    };
    if candidate.plugin.is_upstream() {
        findings.add(
            LoadRule::PluginName,
            format!("{} is the name of an upstream MCP server, and no component can have it", candidate.plugin),
            "give the component another name",
        );
        return ended(None, findings, Vec::new(), candidate.access(None), false);
    }
    let looked = match loader.look(candidate.bytes) {
        Ok(looked) => looked,
        Err(error) => {
            refuse(error, &mut findings)?;
            return ended(None, findings, Vec::new(), candidate.access(None), false);
        }
    };
    let built_against = Some(looked.built_against.clone());
    let declaration = read(&looked, candidate.settings, &mut findings);
    // An unreadable declaration ends the examination, because the manifest in it is unknown too.
    let is_readable = findings.len() == 0;
    let access = candidate.access(declaration.as_ref().and_then(|declaration| declaration.manifest.clone()));
    let may_load = candidate.check_imports(&looked, &access, &mut findings);
    let check = |declared: &[sandbox::Declared], findings: &mut Findings| {
        let subject = candidate.subject(&looked, declared);
        let tools = rules::check(&subject, candidate.settings, candidate.owner, findings);
        rules::check_component(&looked, access.effective.capabilities(), &tools, findings);
        tools
    };
    let tools = declaration.as_ref().map(|declaration| check(&declaration.tools, &mut findings));
    let stop = if declaration.is_some() { findings.len() > 0 } else { !is_readable || !may_load };
    if stop {
        return ended(built_against, findings, tools.unwrap_or_default(), access, declaration.is_some());
    }
    // Reading declarations needs no capability. So a component that only lacks grants is still asked, and its author
    // sees every finding at once.
    let granted = if findings.len() > 0 { Capabilities::EVERY } else { access.effective.capabilities() };
    let usable = known.filter(|known| known.current && known.capabilities == granted);
    let is_known = usable.as_ref().is_some_and(|known| known.plugin == *candidate.plugin);
    let (known, loaded) = match usable {
        Some(known) => (Some(Known { plugin: candidate.plugin.clone(), ..known }), None),
        None => candidate.ask(loader, granted, declaration.as_ref(), &mut findings)?,
    };
    let is_packed = declaration.is_some();
    if let (Some(declaration), Some(known)) = (&declaration, &known) {
        declaration.compare(&known.declared, &mut findings);
    }
    let tools = tools.unwrap_or_else(|| {
        let declared = known.as_ref().map_or(&[][..], |known| &known.declared);
        check(declared, &mut findings)
    });
    let news = known.filter(|_| !is_known);
    Ok(Examined { built_against, tools, findings: findings.into_vec(), access, is_packed, loaded, news })
}

/// The access of a component, and the findings about its imports and section. Needs no sandbox.
pub(crate) fn access(candidate: &Candidate<'_>) -> (Access, Vec<Finding>) {
    let mut findings = Findings::default();
    let looked = match Sandbox::inspect(candidate.bytes).and_then(|interface| Looked::of(&interface, candidate.bytes)) {
        Ok(looked) => looked,
        Err(error) => {
            // The error is never the host's here: it only read the bytes.
            let _ = refuse(error, &mut findings);
            return (candidate.access(None), findings.into_vec());
        }
    };
    let declaration = read(&looked, candidate.settings, &mut findings);
    let access = candidate.access(declaration.and_then(|declaration| declaration.manifest));
    if findings.len() == 0 {
        candidate.check_imports(&looked, &access, &mut findings);
    }
    (access, findings.into_vec())
}

/// The record of a component that was asked again, its guest, and what it may use.
type Again = (Option<Known>, Option<Arc<dyn LoadedComponent>>, Access);

/// Asks a component again whose record was lost. The component passed when it was loaded, so findings only go to the
/// log.
///
/// # Errors
/// If the host failed, not the component.
pub(crate) fn again(loader: &dyn ComponentLoader, candidate: &Candidate<'_>) -> io::Result<Again> {
    let mut findings = Findings::default();
    let declaration = match loader.look(candidate.bytes) {
        Ok(looked) => read(&looked, candidate.settings, &mut findings),
        Err(error) => {
            refuse(error, &mut findings)?;
            None
        }
    };
    let access = candidate.access(declaration.as_ref().and_then(|declaration| declaration.manifest.clone()));
    let granted = access.effective.capabilities();
    let (known, guest) = candidate.ask(loader, granted, declaration.as_ref(), &mut findings)?;
    if known.is_none() {
        let findings = findings.into_vec();
        tracing::warn!(component = %candidate.component, ?findings, "a component did not list its tools again");
    }
    Ok((known, guest, access))
}

/// Reads the declaration in a component's section.
fn read(looked: &Looked, settings: &RegistrySettings, findings: &mut Findings) -> Option<Declaration> {
    match &looked.section {
        Ok(Some(content)) if content.len() > settings.catalog.declaration => {
            let (size, max) = (content.len(), settings.catalog.declaration);
            findings.add(
                LoadRule::DeclarationForm,
                format!("the component's declaration has {size} bytes; the maximum is {max} (limit `catalog.declaration_bytes`)"),
                "split the plugin into several",
            );
            None
        }
        Ok(Some(content)) => Declaration::read(content, findings),
        Ok(None) => {
            if settings.require_declaration {
                findings.add(
                    LoadRule::DeclarationMissing,
                    "the component has no declaration, and this host requires one",
                    "pack it with `toolgate pack FILE`",
                );
            }
            None
        }
        Err(error) => {
            let remedy = "pack the component again with `toolgate pack`";
            findings.add(LoadRule::DeclarationForm, error.to_string(), remedy);
            None
        }
    }
}

type Asked = (Option<Known>, Option<Arc<dyn LoadedComponent>>);

/// The remedy for an import that no host has.
const NO_GRANT: &str = "remove this import: no grant can allow it";

impl Candidate<'_> {
    fn access(&self, manifest: Option<crate::Manifest>) -> Access {
        Access::of(self.settings, self.plugin, self.component, manifest)
    }

    fn subject<'a>(&'a self, looked: &Looked, declared: &'a [sandbox::Declared]) -> Subject<'a> {
        let (plugin, component, has_server) = (self.plugin, self.component, looked.has_server);
        Subject { plugin, component, has_server, declared, limits: &self.settings.catalog }
    }

    /// Checks the imports against what the component may use. Returns false if an import can never be granted.
    fn check_imports(&self, looked: &Looked, access: &Access, findings: &mut Findings) -> bool {
        let (held, withheld) = (access.effective.capabilities(), access.withheld().capabilities());
        let (mut may_load, mut needs_review) =
            (true, looked.asks_for_folders && withheld.holds(Capability::Filesystem));
        let mut ungranted: Vec<(Capability, Vec<String>)> = Vec::new();
        for import in &looked.beyond {
            match import.needs {
                Some(capability) if held.holds(capability) => {}
                Some(capability) if withheld.holds(capability) => needs_review = true,
                Some(capability) => {
                    let name = format!("`{}`", import.name);
                    match ungranted.iter_mut().find(|(other, _)| *other == capability) {
                        Some((_, names)) => names.push(name),
                        None => ungranted.push((capability, vec![name])),
                    }
                }
                None => {
                    may_load = false;
                    let message = format!("the component imports {import}");
                    findings.add(LoadRule::ImportNotGranted, message, NO_GRANT);
                }
            }
        }
        for (capability, names) in ungranted {
            let message = format!("the component imports {} (needs the grant `{capability}`)", names.join(", "));
            findings.add_ungranted(capability, message, self.remedy(access, capability));
        }
        if needs_review {
            let (plugin, component) = (self.plugin, self.component);
            findings.add(
                LoadRule::NeedsReview,
                format!(
                    "the grants of the plugin {plugin} are for {}, and this component is {component}",
                    holders(access)
                ),
                format!(
                    "review it with `toolgate grants {plugin}`, then write `component = \"{component}\"` under \
                     `[plugin.{plugin}]`, or `component = \"any\"` to grant it to any component of that name"
                ),
            );
        }
        may_load
    }

    /// The lines of configuration that grant an import.
    fn remedy(&self, access: &Access, capability: Capability) -> String {
        if access.manifest.as_ref().is_some_and(|manifest| !manifest.requests_any(capability)) {
            return format!("request `{capability}` in the plugin's manifest and pack it again, or do without it");
        }
        if let Some(refusal) = grants::refusal(access, capability) {
            return format!("{refusal}; request another address in the plugin's manifest and pack it again");
        }
        let lines: Vec<_> =
            grants::lines(access, self.component, capability).iter().map(|line| format!("`{line}`")).collect();
        format!("grant it in toolgate.toml, under `[plugin.{}]`: {}; or do without it", self.plugin, lines.join(", "))
    }

    /// Compiles a component and asks it for its tools.
    fn ask(
        &self,
        loader: &dyn ComponentLoader,
        granted: Capabilities,
        declaration: Option<&Declaration>,
        findings: &mut Findings,
    ) -> io::Result<Asked> {
        let guest = match loader.make(self.component, self.bytes, granted) {
            Ok(guest) => guest,
            Err(error) => {
                refuse(error, findings)?;
                return Ok((None, None));
            }
        };
        let declared = match declarations(guest.as_ref(), &self.settings.catalog)? {
            Ok(declared) => declared,
            Err(failure) => {
                let message = format!("the plugin did not list its tools: {}", failure.message);
                let remedy = match failure.code {
                    FailureCode::LimitExceeded | FailureCode::OutOfMemory | FailureCode::OutOfTime => {
                        "let `catalog.tools` return a constant, or have the operator raise the limit in toolgate.toml"
                    }
                    _ => "let `catalog.tools` return a constant",
                };
                findings.add(LoadRule::Catalog, message, remedy);
                return Ok((None, None));
            }
        };
        let known = Known {
            plugin: self.plugin.clone(),
            capabilities: granted,
            has_server: guest.has_server(),
            declared,
            manifest: declaration.and_then(|declaration| declaration.manifest.clone()),
            current: true,
        };
        Ok((Some(known), Some(guest)))
    }
}

/// The components that a plugin's grants are for, as text.
fn holders(access: &Access) -> String {
    const SHOWN: usize = 4;
    let GrantHolder::Components(components) = &access.holder else { return "any component".to_owned() };
    let mut list: Vec<_> = components.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more) = components.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        list.push(format!("{more} others"));
    }
    list.join(", ")
}

/// Runs the guest on its own thread and runtime, because it may compute for as long as its limits allow and must not
/// delay others.
pub(crate) fn declarations(
    guest: &dyn LoadedComponent,
    limits: &CatalogLimits,
) -> io::Result<Result<Vec<sandbox::Declared>, Failure>> {
    let ask = || -> io::Result<_> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        Ok(runtime.block_on(guest.declarations(limits)))
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

/// The findings with which a host refuses a component because of this error.
///
/// # Errors
/// If the host failed, not the component.
pub fn refusal(error: LoadError) -> io::Result<Vec<Finding>> {
    let mut findings = Findings::default();
    refuse(error, &mut findings)?;
    Ok(findings.into_vec())
}

/// Turns an error of the sandbox into findings.
fn refuse(error: LoadError, findings: &mut Findings) -> io::Result<()> {
    let message = error.to_string();
    let (rule, remedy) = match error {
        LoadError::Host(source) => return Err(io::Error::other(source)),
        LoadError::Imports(imports) => {
            for import in imports {
                let message = format!("the component imports {import}");
                findings.add(LoadRule::ImportNotGranted, message, NO_GRANT);
            }
            return Ok(());
        }
        LoadError::Malformed(_) => (LoadRule::InvalidComponent, "build it again"),
        LoadError::NotWebAssembly(_) => {
            (LoadRule::InvalidComponent, "name the component, which `toolgate build` writes to build/NAME.wasm")
        }
        LoadError::Module => (LoadRule::InvalidComponent, "make it a component"),
        LoadError::TooLarge { .. } => {
            (LoadRule::ComponentFile, "make it smaller: strip it, leave out what it does not use")
        }
        LoadError::NotAPlugin { .. } => (LoadRule::UnknownInterface, "build it against a world of toolgate:plugin"),
        LoadError::Version { .. } => (LoadRule::UnknownInterface, "build it against a version that this host speaks"),
        LoadError::Newer(_) => {
            (LoadRule::UnknownInterface, "use a newer host, or build it without what this one lacks")
        }
        LoadError::Structure(_) => {
            (LoadRule::ComponentStructure, "leave out what it does not use, or make several plugins of it")
        }
        LoadError::Parts(_) => {
            let remedy = "make several plugins of it, or have the operator raise the limit in the table `[compile]` of toolgate.toml";
            (LoadRule::ComponentStructure, remedy)
        }
        LoadError::Costs(CompileCost::Wall(_)) => {
            let remedy = "load it again when the machine has less to do, or have the operator raise the bound in the table \
                `[compile]` of toolgate.toml";
            (LoadRule::CompileCost, remedy)
        }
        LoadError::Costs(_) => {
            let remedy =
                "make it smaller, or have the operator raise the bound in the table `[compile]` of toolgate.toml";
            (LoadRule::CompileCost, remedy)
        }
        LoadError::Crashed(_) => (LoadRule::InvalidComponent, "build it with another version or other settings"),
        LoadError::Compile(_) => (LoadRule::InvalidComponent, "build it for wasm32-wasip2, without further proposals"),
        LoadError::Link(_) => (LoadRule::InvalidComponent, "build it against the interface as it was released"),
    };
    findings.add(rule, message, remedy);
    Ok(())
}
