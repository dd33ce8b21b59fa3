//! The capabilities: what an operator can grant a plugin beyond the inert world that every guest has.
//!
//! Adding one means a file in `capability/`, a variant of [`Capability`] and a field of [`Grants`]; `docs/how-to` has the
//! other places. Which interfaces a component is linked against follows from [`Capabilities`]; what a call may do with them
//! is in the [`Grants`] of its job.

pub(crate) mod config;
pub(crate) mod filesystem;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod secrets;

use std::collections::BTreeMap;
use std::fmt;

use self::filesystem::Folder;
use self::http::HttpRule;
use self::keyvalue::Quota;
use self::secrets::Secret;

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// `wasi:keyvalue`: buckets of the plugin's own that outlast its calls.
    KeyValue,
    /// `wasi:http`: requests to what the operator allows.
    Http,
    /// `wasi:config`: values that the operator gives, and placeholders of secrets.
    Config,
    /// `wasi:filesystem`: folders. The interface itself is everybody's and inert; this puts something behind it.
    Filesystem,
}

impl Capability {
    /// All of them, in the order of their documentation.
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

    /// The capability that an import needs, given its package, version and interface.
    pub(crate) fn behind(package: &str, version: &str, interface: &str) -> Option<Self> {
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

/// A set of capabilities: what a component is linked against. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Every one there is. For asking a component for its declarations, which happens without any grant.
    pub const EVERY: Self = Self(0b1111);

    /// The set of these.
    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }

    /// Whether it is in the set.
    #[must_use]
    pub const fn holds(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// What is in the set, in the order of documentation.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.holds(*capability))
    }
}

/// What a plugin was granted. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// [`Capability::KeyValue`]: how much it may keep.
    pub keyvalue: Option<Quota>,
    /// [`Capability::Http`]: where it may send requests.
    pub http: Vec<HttpRule>,
    /// [`Capability::Config`]: the values that it is given, by name.
    pub config: Option<BTreeMap<String, String>>,
    /// [`Capability::Filesystem`]: the folders that it may use.
    pub folders: Vec<Folder>,
    /// Secrets that it may use and not read. Their placeholders are values of `wasi:config`.
    pub secrets: Vec<Secret>,
}

impl Grants {
    /// Whether a call with these grants does the same when it is carried out again from what its host functions returned. What
    /// happens to real files is not among that, so such a call may not suspend inside.
    #[must_use]
    pub fn is_replayable(&self) -> bool {
        self.folders.is_empty()
    }

    /// The capabilities of which something is granted.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let held = [
            (Capability::KeyValue, self.keyvalue.is_some()),
            (Capability::Http, !self.http.is_empty()),
            (Capability::Config, self.config.is_some() || !self.secrets.is_empty()),
            (Capability::Filesystem, !self.folders.is_empty()),
        ];
        Capabilities::of(held.into_iter().filter(|(_, held)| *held).map(|(capability, _)| capability))
    }
}
