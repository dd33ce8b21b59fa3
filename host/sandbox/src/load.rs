//! Why a component was not loaded. A finding of [`LoadError`] is the plugin's, save for the last kind, which is ours.

use std::fmt;

use crate::abi::PLUGIN;
use crate::abi::package::Newer;
use crate::capability::Capability;
use crate::compile::CompileCost;
use crate::ending::excerpt;
use crate::structure::StructureBound;

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are no WebAssembly: what they are instead, as far as their beginning tells.
    #[error("not a WebAssembly component but {0}; `toolgate build` makes a component of a plugin's folder")]
    NotWebAssembly(&'static str),
    /// The bytes are WebAssembly, and not a component.
    #[error("not a WebAssembly component: {0}")]
    Malformed(String),
    /// The bytes are a core module, which is what some toolchains make unless told otherwise.
    #[error(
        "a core module and not a component: build it with `toolgate build`, for the target wasm32-wasip2, or wrap it \
         with `wasm-tools component new`"
    )]
    Module,
    /// It is larger than a component may be.
    #[error("{size} bytes; a component may have at most {most}")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The largest that is taken.
        most: usize,
    },
    /// It exports no catalog.
    #[error(
        "not a plugin: it does not export `{}/catalog@{}.x`, as everything built against wit/ does; {exports}",
        PLUGIN.name,
        PLUGIN.spoken
    )]
    NotAPlugin {
        /// What it exports instead, in words.
        exports: String,
    },
    /// It was built against a version of the interface that this host does not speak.
    #[error(
        "built against version {found} of {package}; this host speaks {spoken}, up to {newest}: build it against {newest}, or \
         use a host that speaks {found}"
    )]
    Version {
        /// The package.
        package: &'static str,
        /// The version that it names.
        found: String,
        /// What this host speaks.
        spoken: &'static str,
        /// The newest version of that.
        newest: &'static str,
    },
    /// It needs something of the interface that only a newer host has.
    #[error("{0}")]
    Newer(Newer),
    /// It imports what it was not granted.
    #[error("imports outside of its grants: {}", list(.0))]
    Imports(Vec<ForeignImport>),
    /// It has more of something than what a toolchain makes of a tool.
    #[error("it has more than {} {}", .0.most, .0.what)]
    Structure(StructureBound),
    /// Compiling it costs too much.
    #[error("compiling it {0}")]
    Costs(CompileCost),
    /// It brought the compiler down.
    #[error("the compiler crashed on it: {0}")]
    Crashed(String),
    /// It was refused by the compiler: it is not valid, or uses what this host does not support.
    #[error("cannot be compiled: {0}")]
    Compile(String),
    /// What it imports or exports does not have the form that its interface says.
    #[error("does not fit the interface: {0}")]
    Link(String),
    /// The host failed, not the plugin.
    #[error("the host could not load it")]
    Host(#[source] anyhow::Error),
}

/// Exports that a message names.
const EXPORTS: usize = 3;

impl LoadError {
    /// That a component with these exports is no plugin.
    pub(crate) fn not_a_plugin(exports: &[String]) -> Self {
        let named: Vec<_> = exports.iter().take(EXPORTS).map(|name| format!("`{}`", excerpt(name))).collect();
        Self::NotAPlugin {
            exports: match exports.len() {
                0 => "it exports nothing".to_owned(),
                many if many > EXPORTS => format!("it exports {} and {} more", named.join(", "), many - EXPORTS),
                _ => format!("it exports {}", named.join(", ")),
            },
        }
    }
}

/// One import outside of a plugin's grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignImport {
    /// The name of the import, such as `wasi:http/outgoing-handler@0.2.3`.
    pub name: String,
    /// The capability that would have to be granted; none where no grant exists that allows it.
    pub needs: Option<Capability>,
}

impl fmt::Display for ForeignImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.needs {
            Some(capability) => write!(f, "`{}` (needs the grant `{capability}`)", self.name),
            None => write!(f, "`{}` (no grant exists that allows it)", self.name),
        }
    }
}

fn list(imports: &[ForeignImport]) -> String {
    imports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
