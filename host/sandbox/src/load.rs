//! The reasons why a component is not loaded. All but [`LoadError::Host`] are the plugin's fault.

use std::fmt;

use std::time::Duration;

use capabilities::{Capability, excerpt, size};

/// The reason why a component is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are another kind of file, as their beginning shows.
    #[error("this is {0} and not a WebAssembly component; run `toolgate build` to make one from the plugin's folder")]
    NotWebAssembly(&'static str),
    /// The bytes are WebAssembly that cannot be read.
    #[error("the WebAssembly cannot be read: {0}")]
    Malformed(String),
    /// Some toolchains make a core module by default.
    #[error(
        "a core module and not a component: build it with `toolgate build`, for the target wasm32-wasip2, or wrap it \
         with `wasm-tools component new`"
    )]
    Module,
    #[error("{size} bytes; a component may have at most {max} (limit `compile.component_bytes`)")]
    TooLarge { size: usize, max: usize },
    #[error(
        "not a plugin: it does not export `{package}/catalog@{spoken}.x`, as everything built against wit/ does; {exports}"
    )]
    NotAPlugin {
        package: &'static str,
        spoken: &'static str,
        /// The exports in words.
        exports: String,
    },
    #[error(
        "built against version {found} of {package}; this host supports {spoken}, up to {newest}: build it against {newest}, or \
         use a host that supports {found}"
    )]
    Version { package: &'static str, found: String, spoken: &'static str, newest: &'static str },
    #[error("{0}")]
    Newer(Newer),
    #[error("imports without a grant: {}", list(.0))]
    Imports(Vec<ForeignImport>),
    #[error("it has more than {} {}", .0.max, .0.what)]
    Structure(StructureBound),
    #[error("it has more than {} {} (limit `compile.{}`)", .0.max, .0.what, .0.key)]
    Parts(TooManyParts),
    #[error("compiling it {0}")]
    Costs(CompileCost),
    #[error("the compiler crashed on it: {0}")]
    Crashed(String),
    /// The component is not valid, or uses a proposal that this host does not support.
    #[error("cannot be compiled: {0}")]
    Compile(String),
    #[error("does not fit the interface: {0}")]
    Link(String),
    #[error("the host could not load the component")]
    Host(#[source] anyhow::Error),
}

/// Exports that a message names.
const MAX_EXPORTS: usize = 3;

impl LoadError {
    pub(crate) fn not_a_plugin(package: &'static str, spoken: &'static str, exports: &[String]) -> Self {
        let named: Vec<_> = exports.iter().take(MAX_EXPORTS).map(|name| format!("`{}`", excerpt(name))).collect();
        Self::NotAPlugin {
            package,
            spoken,
            exports: match exports.len() {
                0 => "it exports nothing".to_owned(),
                many if many > MAX_EXPORTS => {
                    format!("it exports {} and {} more", named.join(", "), many - MAX_EXPORTS)
                }
                _ => format!("it exports {}", named.join(", ")),
            },
        }
    }
}

/// An import outside of a plugin's grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignImport {
    /// The name of the import, such as `wasi:http/outgoing-handler@0.2.3`.
    pub name: String,
    /// The capability to grant. `None` if no grant allows the import.
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

/// A bound on the structure of one component, with all components and modules inside of it.
///
/// The largest measured components are a Python plugin (18.4 MB), a StarlingMonkey JavaScript plugin (12 MB) and a
/// Go plugin (4.5 MB); `docs/decisions/0008-compile-in-a-child.md` has their figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StructureBound {
    /// The counted items, in plural.
    pub what: &'static str,
    pub max: usize,
}

/// Parts that a component has too many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyParts {
    /// The parts, in plural.
    pub what: &'static str,
    pub max: u32,
    /// The key in the table `[compile]`.
    pub key: &'static str,
}

/// A bound that compiling exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileCost {
    /// The limit on processor time.
    Time(Duration),
    /// The limit on time from start to end.
    Wall(Duration),
    /// The limit on memory in bytes.
    Memory(u64),
    /// The limit on machine code in bytes.
    Output(u64),
}

impl fmt::Display for CompileCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = |bytes: u64| size(usize::try_from(bytes).unwrap_or(usize::MAX));
        match self {
            Self::Time(max) => {
                write!(f, "takes more than {} ms of processor time (limit `compile.time_ms`)", max.as_millis())
            }
            Self::Wall(max) => {
                let max = max.as_millis();
                write!(
                    f,
                    "did not end within {max} ms (limit `compile.wall_ms`): the machine is busy, or the compiler hangs"
                )
            }
            Self::Memory(max) => {
                write!(f, "needs more than {} of memory (limit `compile.memory_bytes`)", bytes(*max))
            }
            Self::Output(max) => {
                write!(f, "makes more than {} of machine code (limit `compile.output_bytes`)", bytes(*max))
            }
        }
    }
}

/// Imports of one of our packages that this host does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newer {
    pub(crate) package: &'static str,
    pub(crate) newest: &'static str,
    pub(crate) found: String,
    pub(crate) missing: Vec<String>,
}

/// Missing imports that a message names; the rest is counted.
const MAX_NAMED: usize = 5;

impl fmt::Display for Newer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, newest, found, missing } = self;
        let (named, rest) = missing.split_at(missing.len().min(MAX_NAMED));
        write!(f, "it needs {}", named.join(", "))?;
        if !rest.is_empty() {
            write!(f, " and {} more", rest.len())?;
        }
        write!(
            f,
            ", which this host does not have: it was built against version {found} of {package}, and this host has {newest}: \
             use a newer host, or build it against {newest}"
        )
    }
}
