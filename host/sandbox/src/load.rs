//! Why a component was not loaded. A finding of [`LoadError`] is the plugin's, save for the last kind, which is ours.

use std::fmt;

use crate::abi::AbiVersion;
use crate::capability::Capability;
use crate::compile::CompileCost;
use crate::structure::StructureBound;

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not a component.
    #[error("not a WebAssembly component: {0}")]
    Malformed(String),
    /// The bytes are a core module, which is what some toolchains make unless told otherwise.
    #[error(
        "a core module and not a component: build for the target wasm32-wasip2, or wrap it with \
         `wasm-tools component new`"
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
        "not a plugin: it does not export `toolgate:plugin/catalog@{}.x`, as everything built against wit/ does",
        AbiVersion::SPOKEN
    )]
    NotAPlugin,
    /// It was built against a version of the interface that this host does not speak.
    #[error(
        "built against version {found} of toolgate:plugin; this host speaks {}: build against that version, or use a newer \
         host",
        AbiVersion::SPOKEN
    )]
    Version {
        /// The version that it exports.
        found: String,
    },
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
