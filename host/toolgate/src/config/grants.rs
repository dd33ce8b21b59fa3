//! The table `[plugin.NAME.grants]`: what one plugin may use. Nothing in it is a default.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::str::FromStr;

use sandbox::{Folder, Grants, HostPattern, HttpRule, InvalidRule, Quota, Reach};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use super::Parsed;

/// What a plugin may use.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantsTable {
    /// wasi:keyvalue: buckets of the plugin's own that outlast its calls. `true`, or how much it may keep.
    #[serde(deserialize_with = "keyvalue")]
    #[schemars(with = "Option<KeyValueGrant>")]
    pub keyvalue: Option<KeyValueTable>,
    /// wasi:http: where it may send requests.
    pub http: Vec<HttpTable>,
    /// wasi:config: the values that it is given, by name.
    pub config: Option<BTreeMap<String, String>>,
    /// wasi:filesystem: folders of this machine that it may use.
    pub folders: Vec<FolderTable>,
    /// Values that it can send and not read, by the name under which wasi:config gives it a placeholder.
    pub secrets: BTreeMap<String, SecretTable>,
}

/// How much a plugin may keep in wasi:keyvalue.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeyValueTable {
    /// All its keys and values together. Default: 16777216, 16 MiB.
    pub bytes: Option<u64>,
    /// Its keys. Default: 100000.
    pub keys: Option<u64>,
}

/// The forms of the grant, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum KeyValueGrant {
    /// Granted, or not.
    Plain(bool),
    /// Granted, with bounds.
    Bounded(KeyValueTable),
}

/// Requests that a plugin may send.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// Scheme, host, port and the beginning of the path: `https://api.example.com/v1/`, `https://*.example.com`.
    pub url: String,
    /// The methods. Default: GET and HEAD.
    #[serde(default)]
    pub methods: BTreeSet<String>,
    /// Whether the name may lead to addresses of this machine and of private networks. Default: false.
    #[serde(default)]
    pub private: bool,
}

/// A folder that a plugin may use.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// Where it is on this machine.
    pub path: PathBuf,
    /// Under which path the plugin sees it, such as "/data".
    pub at: String,
    /// Whether the plugin may change what is in it. Default: false.
    #[serde(default)]
    pub write: bool,
}

/// A value that a plugin can send and not read. It comes from the environment or from a file, never from the configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretTable {
    /// The variable of the environment that holds it.
    pub env: Option<String>,
    /// The file that holds it; a line break at its end does not count.
    pub file: Option<PathBuf>,
    /// The hosts that it may be sent to.
    #[schemars(with = "Vec<String>")]
    pub hosts: Vec<Parsed<HostPattern>>,
    /// Where in a request it may stand: "header:authorization", "query:key", "body:/auth/token".
    pub places: Vec<String>,
}

impl GrantsTable {
    /// The grants that it says, without its secrets, whose values have to be looked up.
    #[must_use]
    pub fn grants(&self) -> Grants {
        let quota = |table: KeyValueTable| {
            let default = Quota::default();
            Quota { bytes: table.bytes.unwrap_or(default.bytes), keys: table.keys.unwrap_or(default.keys) }
        };
        let folder =
            |table: &FolderTable| Folder { path: table.path.clone(), at: table.at.clone(), write: table.write };
        Grants {
            keyvalue: self.keyvalue.map(quota),
            http: self.http.iter().filter_map(|table| table.rule().ok()).collect(),
            config: self.config.clone(),
            folders: self.folders.iter().map(folder).collect(),
            secrets: Vec::new(),
        }
    }

    /// Adds one grant.
    pub fn add(&mut self, grant: Grant) {
        match grant {
            Grant::KeyValue => self.keyvalue = Some(self.keyvalue.unwrap_or_default()),
            Grant::Http(table) => self.http.push(table),
        }
    }
}

impl HttpTable {
    fn rule(&self) -> Result<HttpRule, InvalidRule> {
        let reading = || ["GET", "HEAD"].map(str::to_owned).into();
        let methods = if self.methods.is_empty() { reading() } else { self.methods.clone() };
        HttpRule::parse(&self.url, methods, if self.private { Reach::Private } else { Reach::Public })
    }
}

/// A grant as it is given on a command line.
#[derive(Debug, Clone)]
pub enum Grant {
    /// `keyvalue`
    KeyValue,
    /// `http=URL`: GET and HEAD below the URL.
    Http(HttpTable),
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "keyvalue" => Ok(Self::KeyValue),
            Some(("http", url)) => {
                let table = HttpTable { url: url.to_owned(), methods: BTreeSet::new(), private: false };
                table.rule().map_err(|error| error.to_string())?;
                Ok(Self::Http(table))
            }
            _ => Err("what can be granted here: keyvalue, http=URL; everything else in the configuration".into()),
        }
    }
}

fn keyvalue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<KeyValueTable>, D::Error> {
    struct Form;

    impl<'de> de::Visitor<'de> for Form {
        type Value = Option<KeyValueTable>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("true, false, or a table of `bytes` and `keys`")
        }

        fn visit_bool<E>(self, granted: bool) -> Result<Self::Value, E> {
            Ok(granted.then(KeyValueTable::default))
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            KeyValueTable::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Form)
}
