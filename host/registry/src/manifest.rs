//! The manifest: what a plugin requests, and why. It grants nothing.
//!
//! An author writes it beside the source as `toolgate-plugin.toml`, and packing stores it in the component's section. A
//! plugin with a manifest gets what is both granted and requested. A plugin without one gets all that is granted.

use std::collections::{BTreeMap, BTreeSet};

use capabilities::Capability;
use capabilities::http::Reach;
use capabilities::keyvalue::KeyValueQuota;
use serde::{Deserialize, Serialize};

use crate::words::{HostName, Method, Mount, Place, Target, ValueName};

/// The most requests of one kind.
pub const MAX_REQUESTS: usize = 64;

/// The most characters of a reason.
pub const MAX_WHY: usize = 500;

/// The requests of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    /// To store data in wasi:keyvalue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyvalue: Option<RequestedKeyValue>,
    /// To send requests over wasi:http.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<RequestedHttp>,
    /// To read values from wasi:config.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<RequestedValue>,
    /// To use folders over wasi:filesystem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<RequestedFolder>,
    /// To send secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<RequestedSecret>,
}

/// A request for key-value storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedKeyValue {
    /// Bytes of all keys and values together. Without it, as many as are granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The number of keys. Without it, as many as are granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    pub why: String,
}

/// A request to send HTTP requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedHttp {
    pub url: Target,
    /// The methods. Without any, GET and HEAD.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub methods: BTreeSet<Method>,
    pub why: String,
}

/// A request for a configuration value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedValue {
    pub name: ValueName,
    pub why: String,
}

/// A request for a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedFolder {
    /// The path at which the plugin sees the folder.
    pub at: Mount,
    /// Whether it also writes.
    #[serde(default)]
    pub write: bool,
    pub why: String,
}

/// A request for a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedSecret {
    /// The name under which the plugin reads its placeholder.
    pub name: ValueName,
    /// The hosts to which the secret may be sent.
    pub hosts: Vec<HostName>,
    /// The parts of a request that may contain the secret.
    pub places: Vec<Place>,
    pub why: String,
}

/// Why a manifest is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidManifest {
    #[error("{0} has no `why`: the operator who is asked to grant it will read the reason")]
    NoWhy(String),
    #[error("the `why` of {0} has more than {MAX_WHY} characters")]
    LongWhy(String),
    /// Too many requests of one kind.
    #[error("it requests more than {MAX_REQUESTS} of one kind: {0}")]
    TooMany(&'static str),
    /// The same request twice.
    #[error("it requests {0} twice")]
    Twice(String),
    /// A secret that could never be sent.
    #[error("the request for the secret `{0}` names no host or no place in a request")]
    Nowhere(ValueName),
}

/// One request of a manifest.
pub(crate) struct Request<'a> {
    /// The request, in the host's words.
    pub(crate) words: String,
    /// The reason, in the plugin's words.
    pub(crate) why: &'a str,
    /// A manifest with this request only.
    pub(crate) alone: Manifest,
}

impl Manifest {
    /// Checks the manifest.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), InvalidManifest> {
        let Self { keyvalue: _, http, config, folders, secrets } = self;
        let counts =
            [("http", http.len()), ("config", config.len()), ("folders", folders.len()), ("secrets", secrets.len())];
        if let Some((kind, _)) = counts.into_iter().find(|(_, count)| *count > MAX_REQUESTS) {
            return Err(InvalidManifest::TooMany(kind));
        }
        let mut names = BTreeSet::new();
        for request in self.requests() {
            if request.why.trim().is_empty() {
                return Err(InvalidManifest::NoWhy(request.words));
            }
            if request.why.chars().count() > MAX_WHY {
                return Err(InvalidManifest::LongWhy(request.words));
            }
        }
        for name in config.iter().map(|value| &value.name).chain(secrets.iter().map(|secret| &secret.name)) {
            // A plugin reads both by name from wasi:config, so a name belongs to one of them.
            if !names.insert(name.to_string()) {
                return Err(InvalidManifest::Twice(format!("`{name}`")));
            }
        }
        for folder in folders {
            if !names.insert(folder.at.to_string()) {
                return Err(InvalidManifest::Twice(format!("the folder {}", folder.at)));
            }
        }
        let many = |secret: &&RequestedSecret| secret.hosts.len().max(secret.places.len()) > MAX_REQUESTS;
        if secrets.iter().any(|secret| many(&secret)) {
            return Err(InvalidManifest::TooMany("hosts or places of a secret"));
        }
        let nowhere = secrets.iter().find(|secret| secret.hosts.is_empty() || secret.places.is_empty());
        nowhere.map_or(Ok(()), |secret| Err(InvalidManifest::Nowhere(secret.name.clone())))
    }

    /// Whether it requests anything of this capability.
    #[must_use]
    pub fn requests_any(&self, capability: Capability) -> bool {
        match capability {
            Capability::KeyValue => self.keyvalue.is_some(),
            Capability::Http => !self.http.is_empty(),
            Capability::Config => !self.config.is_empty() || !self.secrets.is_empty(),
            Capability::Filesystem => !self.folders.is_empty(),
        }
    }

    /// Every request, one by one.
    pub(crate) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let Self { keyvalue, http, config, folders, secrets } = self;
        let keyvalue = keyvalue.iter().map(|request| {
            let words = match (request.bytes, request.keys) {
                (None, None) => "keyvalue".to_owned(),
                (Some(bytes), None) => format!("keyvalue: up to {bytes} bytes"),
                (None, Some(keys)) => format!("keyvalue: up to {keys} keys"),
                (Some(bytes), Some(keys)) => format!("keyvalue: up to {bytes} bytes in {keys} keys"),
            };
            Request { words, why: &request.why, alone: Self { keyvalue: Some(request.clone()), ..Self::default() } }
        });
        let http = http.iter().map(|request| {
            let words = format!("http: {}", request.url.rule(&request.methods, Reach::Public));
            Request { words, why: &request.why, alone: Self { http: vec![request.clone()], ..Self::default() } }
        });
        let config = config.iter().map(|request| {
            let words = format!("config: {}", request.name);
            Request { words, why: &request.why, alone: Self { config: vec![request.clone()], ..Self::default() } }
        });
        let folders = folders.iter().map(|request| {
            let words =
                format!("folder: {}, {}", request.at, if request.write { "read and write" } else { "read only" });
            Request { words, why: &request.why, alone: Self { folders: vec![request.clone()], ..Self::default() } }
        });
        let secrets = secrets.iter().map(|request| {
            let words = format!("secret: {}, to {}, in {}", request.name, list(&request.hosts), list(&request.places));
            Request { words, why: &request.why, alone: Self { secrets: vec![request.clone()], ..Self::default() } }
        });
        keyvalue.chain(http).chain(config).chain(folders).chain(secrets)
    }

    /// The lines of `[plugin.NAME]` in `toolgate.toml` that grant its requests for a capability. Values that only the
    /// operator knows are placeholders.
    pub(crate) fn lines(&self, capability: Capability) -> Vec<String> {
        match capability {
            Capability::KeyValue => self.keyvalue.iter().map(RequestedKeyValue::line).collect(),
            Capability::Http => {
                let rules: Vec<_> = self.http.iter().map(RequestedHttp::inline).collect();
                if rules.is_empty() { Vec::new() } else { vec![format!("grants.http = [{}]", rules.join(", "))] }
            }
            Capability::Config => {
                let values =
                    self.config.iter().map(|request| format!("grants.config.{} = \"\"", key(request.name.as_str())));
                values.chain(self.secrets.iter().map(RequestedSecret::line)).collect()
            }
            Capability::Filesystem => {
                let folders: Vec<_> = self.folders.iter().map(RequestedFolder::inline).collect();
                if folders.is_empty() { Vec::new() } else { vec![format!("grants.folders = [{}]", folders.join(", "))] }
            }
        }
    }
}

/// The placeholder for a folder that the operator has to name.
pub const SOME_FOLDER: &str = "/a/folder/of/this/machine";

impl RequestedKeyValue {
    /// The quota that grants it in full.
    #[must_use]
    pub fn quota(&self) -> KeyValueQuota {
        let default = KeyValueQuota::default();
        KeyValueQuota { bytes: self.bytes.unwrap_or(default.bytes), keys: self.keys.unwrap_or(default.keys) }
    }

    fn line(&self) -> String {
        if self.bytes.is_none() && self.keys.is_none() {
            return "grants.keyvalue = true".to_owned();
        }
        let KeyValueQuota { bytes, keys } = self.quota();
        format!("grants.keyvalue = {{ bytes = {bytes}, keys = {keys} }}")
    }
}

impl RequestedHttp {
    fn inline(&self) -> String {
        if self.methods.is_empty() {
            return format!("{{ url = {} }}", string(&self.url));
        }
        format!("{{ url = {}, methods = [{}] }}", string(&self.url), strings(&self.methods))
    }
}

impl RequestedFolder {
    fn inline(&self) -> String {
        format!("{{ path = \"{SOME_FOLDER}\", at = {}, write = {} }}", string(&self.at), self.write)
    }
}

impl RequestedSecret {
    /// A suggested environment variable for the secret.
    #[must_use]
    pub fn variable(&self) -> String {
        self.name.as_str().to_ascii_uppercase().replace(['.', '-'], "_")
    }

    fn line(&self) -> String {
        let Self { name, hosts, places, .. } = self;
        format!(
            "grants.secrets.{} = {{ env = {}, hosts = [{}], places = [{}] }}",
            key(name.as_str()),
            string(&self.variable()),
            strings(hosts),
            strings(places)
        )
    }
}

/// A TOML string. The texts that come here consist of visible ASCII characters.
fn string(text: &impl ToString) -> String {
    format!("\"{}\"", text.to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn strings<'a, T: ToString + 'a>(texts: impl IntoIterator<Item = &'a T>) -> String {
    texts.into_iter().map(string).collect::<Vec<_>>().join(", ")
}

/// A TOML key, quoted if necessary.
fn key(name: &str) -> String {
    if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() }
}

pub(crate) fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The requested secrets by name.
pub(crate) fn secrets(manifest: &Manifest) -> BTreeMap<&str, &RequestedSecret> {
    manifest.secrets.iter().map(|secret| (secret.name.as_str(), secret)).collect()
}
