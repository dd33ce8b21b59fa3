//! The capabilities: what an operator can grant a plugin beyond the inert world that every guest has.
//!
//! Adding one means a file in `capability/`, a variant of [`Capability`] and a field of [`Grants`].

pub(crate) mod keyvalue;

use std::fmt;

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// `wasi:keyvalue`: buckets of the plugin's own that outlast its calls.
    KeyValue,
}

/// What a plugin was granted. The default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Grants {
    /// [`Capability::KeyValue`].
    pub keyvalue: bool,
}

impl Capability {
    /// The capability that an import needs, given its package, version and interface.
    pub(crate) fn behind(package: &str, version: &str, interface: &str) -> Option<Self> {
        match (package, version, interface) {
            ("wasi:keyvalue", "0.2.0-draft2", "store" | "atomics" | "batch") => Some(Self::KeyValue),
            _ => None,
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KeyValue => "keyvalue",
        })
    }
}

impl Grants {
    /// Whether this access was given.
    #[must_use]
    pub const fn holds(&self, capability: Capability) -> bool {
        match capability {
            Capability::KeyValue => self.keyvalue,
        }
    }
}
