//! The accesses that an operator can grant to a plugin, beyond the inert WASI that every guest has.
//!
//! [`Capabilities`] decides which interfaces a component is linked against; [`Grants`] decides what a call may do with
//! them.

use std::collections::BTreeMap;
use std::fmt;

use crate::filesystem::Folder;
use crate::http::HttpRule;
use crate::keyvalue::KeyValueQuota;
use crate::secrets::Secret;

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// `wasi:keyvalue`: buckets of the plugin, which outlast its calls.
    KeyValue,
    /// `wasi:http`: requests to what the operator allows.
    Http,
    /// `wasi:config`: values that the operator gives, and placeholders of secrets.
    Config,
    /// `wasi:filesystem`: folders. Every guest may import the interface; without a grant it has no folder.
    Filesystem,
}

impl Capability {
    /// In the order of their documentation.
    pub const ALL: [Self; 4] = [Self::KeyValue, Self::Http, Self::Config, Self::Filesystem];

    /// The name in configuration, findings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyValue => "keyvalue",
            Self::Http => "http",
            Self::Config => "config",
            Self::Filesystem => "filesystem",
        }
    }

    /// The capability that an import needs, by its package, version and interface.
    #[must_use]
    pub fn behind(package: &str, version: &str, interface: &str) -> Option<Self> {
        match (package, version, interface) {
            ("wasi:keyvalue", "0.2.0-draft2", "store" | "atomics" | "batch") => Some(Self::KeyValue),
            ("wasi:http", version, "types" | "outgoing-handler") if version.starts_with("0.2.") => Some(Self::Http),
            ("wasi:config", "0.2.0-rc.1", "store") => Some(Self::Config),
            _ => None,
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities. The default set is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(u8);

impl Capabilities {
    /// All of them. A component is asked for its declarations with every interface linked and nothing granted.
    pub const EVERY: Self = Self(u8::MAX >> (8 - Capability::ALL.len()));

    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }

    #[must_use]
    pub const fn holds(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// In the order of their documentation.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.holds(*capability))
    }
}

/// The grants of a plugin. The default is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// [`Capability::KeyValue`]: how much the plugin may keep.
    pub keyvalue: Option<KeyValueQuota>,
    /// [`Capability::Http`]: where the plugin may send requests.
    pub http: Vec<HttpRule>,
    /// [`Capability::Config`]: values by name.
    pub config: Option<BTreeMap<String, String>>,
    /// [`Capability::Filesystem`]: the folders that the plugin can open.
    pub folders: Vec<Folder>,
    /// Secrets that the plugin may send and not read. Their placeholders are values of `wasi:config`.
    pub secrets: Vec<Secret>,
}

impl AsRef<[HttpRule]> for Grants {
    fn as_ref(&self) -> &[HttpRule] {
        &self.http
    }
}

impl Grants {
    /// Whether a call can be replayed from the results of its host functions. Changes to real files are not among these
    /// results, so a call with folders may not suspend.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        let Self { keyvalue: _, http: _, config: _, folders, secrets: _ } = self;
        folders.is_empty()
    }

    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let Self { keyvalue, http, config, folders, secrets } = self;
        let held = [
            (Capability::KeyValue, keyvalue.is_some()),
            (Capability::Http, !http.is_empty()),
            (Capability::Config, config.is_some() || !secrets.is_empty()),
            (Capability::Filesystem, !folders.is_empty()),
        ];
        Capabilities::of(held.into_iter().filter(|(_, held)| *held).map(|(capability, _)| capability))
    }
}
