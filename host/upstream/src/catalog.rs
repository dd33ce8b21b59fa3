//! The tools of one upstream: those whose declaration is the accepted one. All others have a problem, and are not offered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use dispatch::ports::KnownTool;
use domain::Digest;

use crate::Declaration;
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
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("the server declares it, and the operator has not accepted it"),
            Self::Changed => f.write_str("the server has changed its declaration since the operator accepted it"),
            Self::Missing => f.write_str("the server no longer declares it"),
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
}

impl Catalog {
    /// `listed` is `None` as long as the server has not been asked. Then the accepted tools are offered: a call asks first.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        identity: Digest,
        accepted: Option<&BTreeMap<String, Declaration>>,
        listed: Option<&Listed>,
        make: &MakeTool,
    ) -> Self {
        let mut catalog = Self::default();
        for (name, declaration) in accepted.into_iter().flatten() {
            let full = settings.tool_name(name);
            let now = listed.map(|listed| listed.get(name));
            let problem = match now {
                Some(None) => Some(Problem::Missing),
                Some(Some(now)) if now.digest() != declaration.digest() => Some(Problem::Changed),
                Some(Some(_)) | None => None,
            };
            let offer = || {
                make(&Offer {
                    plugin: &settings.plugin,
                    identity,
                    name: full.clone(),
                    declaration,
                    approval: settings.approval_of(name),
                    recovery: settings.recovery_of(declaration),
                })
            };
            match problem.map_or_else(|| offer().map_err(Problem::Unusable), Err) {
                Ok(known) => {
                    catalog.tools.insert(full, Offered { known: Arc::new(known), name: name.clone() });
                }
                Err(problem) => {
                    catalog.problems.insert(full, problem);
                }
            }
        }
        let is_new = |name: &&String| accepted.is_none_or(|accepted| !accepted.contains_key(*name));
        for name in listed.into_iter().flat_map(BTreeMap::keys).filter(is_new) {
            catalog.problems.insert(settings.tool_name(name), Problem::New);
        }
        catalog
    }
}
