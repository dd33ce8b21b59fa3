//! The tools of one upstream: those whose declaration is the accepted one. All others have a problem, and are not offered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dispatch::ports::KnownTool;
use domain::Digest;

use crate::Declaration;
use crate::pins::AcceptedServer;
use crate::settings::{MakeTool, Offer, UpstreamSettings};

/// Why a tool is not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The server declares it now, and the operator has not accepted it.
    New,
    /// The server declares it differently than the operator accepted.
    Changed,
    /// The server no longer declares it.
    Missing,
    /// The declaration breaks these rules of the host.
    Unusable(Vec<String>),
    /// The operator has changed these parts of the server's table since the acceptance.
    Target(Vec<&'static str>),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("the server declares it, and the operator has not accepted it"),
            Self::Changed => f.write_str("the server has changed its declaration since the operator accepted it"),
            Self::Missing => f.write_str("the server no longer declares it"),
            Self::Target(parts) => {
                write!(
                    f,
                    "the configuration of the server has changed since the operator accepted it: {}",
                    parts.join(", ")
                )
            }
            Self::Unusable(findings) => write!(f, "the host cannot offer it: {}", findings.join("; ")),
        }
    }
}

/// The tools that a server declared when it was last asked.
pub(crate) type Listed = BTreeMap<String, Declaration>;

#[derive(Default)]
pub(crate) struct Catalog {
    /// By the names in the catalog.
    pub(crate) tools: BTreeMap<String, Offered>,
    pub(crate) problems: BTreeMap<String, Problem>,
}

/// A tool that is offered.
pub(crate) struct Offered {
    pub(crate) known: Arc<KnownTool>,
    /// The server's own name.
    pub(crate) name: String,
    /// Of the accepted declaration.
    digest: Digest,
}

impl Catalog {
    /// `listed` is `None` as long as the server has not been asked. Then the accepted tools are offered: a call asks first. Making a
    /// tool compiles its schemas, so a tool of the catalog `before` is used again if its accepted declaration is the same.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        identity: Digest,
        accepted: Option<&AcceptedServer>,
        listed: Option<&Listed>,
        make: &MakeTool,
        before: &Self,
    ) -> Self {
        let mut catalog = Self::default();
        let target =
            accepted.and_then(|accepted| accepted.target.as_ref()).map(|target| target.difference(&settings.target));
        let moved = target.filter(|parts| !parts.is_empty());
        for (name, declaration) in accepted.into_iter().flat_map(|accepted| &accepted.tools) {
            let (full, digest) = (settings.tool_name(name), declaration.digest());
            let now = listed.map(|listed| listed.get(name));
            let problem = match (&moved, now) {
                (Some(parts), _) => Some(Problem::Target(parts.clone())),
                (None, Some(None)) => Some(Problem::Missing),
                (None, Some(Some(now))) if now.digest() != digest => Some(Problem::Changed),
                (None, Some(Some(_)) | None) => None,
            };
            let known = before.tools.get(&full).filter(|offered| offered.digest == digest);
            let offer = || match known {
                Some(offered) => Ok(offered.known.clone()),
                None => made(settings, identity, declaration, make).map_err(Problem::Unusable),
            };
            match problem.map_or_else(offer, Err) {
                Ok(known) => {
                    catalog.tools.insert(full, Offered { known, name: name.clone(), digest });
                }
                Err(problem) => {
                    catalog.problems.insert(full, problem);
                }
            }
        }
        let is_new = |name: &&String| accepted.is_none_or(|accepted| !accepted.tools.contains_key(*name));
        for name in listed.into_iter().flat_map(BTreeMap::keys).filter(is_new) {
            catalog.problems.insert(settings.tool_name(name), Problem::New);
        }
        catalog
    }
}

/// The tool of a declaration, or the rules that it breaks.
pub(crate) fn made(
    settings: &UpstreamSettings,
    identity: Digest,
    declaration: &Declaration,
    make: &MakeTool,
) -> Result<Arc<KnownTool>, Vec<String>> {
    let name = declaration.name();
    let offer = Offer {
        plugin: &settings.plugin,
        origin: settings.target.origin(),
        identity,
        name: settings.tool_name(name),
        declaration,
        approval: settings.approval_of(name),
        recovery: settings.recovery_of(declaration),
    };
    make(&offer).map(Arc::new)
}
