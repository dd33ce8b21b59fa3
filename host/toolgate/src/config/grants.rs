//! The tables `[plugin.NAME]` and `[plugin.NAME.grants]`: what one plugin may use, and which component of that name.
//! Nothing in it is a default.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use capabilities::Grants;
use capabilities::filesystem::{Folder, FolderHandle};
use capabilities::http::{HttpRule, Reach};
use capabilities::keyvalue::KeyValueQuota;
use capabilities::secrets::{Secret, SecretValue};
use domain::Digest;
use registry::GrantHolder;
use registry::words::{HostName, Method, Mount, Place, Target, ValueName};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The grants to a plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantsTable {
    /// wasi:keyvalue: buckets of the plugin's own that outlast its calls. `true`, or how much it may keep.
    #[serde(deserialize_with = "keyvalue")]
    #[schemars(with = "Option<KeyValueGrant>")]
    pub keyvalue: Option<KeyValueTable>,
    /// wasi:http: where it may send requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpTable>,
    /// wasi:config: the values that it is given, by name.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub config: Option<BTreeMap<ValueName, String>>,
    /// wasi:filesystem: folders of this machine that it may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderTable>,
    /// Values that it can send and not read, by the name under which wasi:config gives it a placeholder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, SecretTable>")]
    pub secrets: BTreeMap<ValueName, SecretTable>,
}

/// How much a plugin may keep in wasi:keyvalue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// Scheme, host, port and the beginning of the path: `https://api.example.com/v1/`, `https://*.example.com`.
    #[schemars(with = "String")]
    pub url: Target,
    /// The methods. Default: GET and HEAD.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub methods: BTreeSet<Method>,
    /// Whether the name may lead to addresses of this machine and of private networks. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// A folder that a plugin may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// Where it is on this machine. Relative to the configuration's file; it has to exist when the host starts.
    pub path: PathBuf,
    /// Under which path the plugin sees it, such as "/data".
    #[schemars(with = "String")]
    pub at: Mount,
    /// Whether the plugin may change what is in it. Default: false.
    #[serde(default)]
    pub write: bool,
}

/// A value that a plugin can send and not read. It comes from the environment or from a file, never from the
/// configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretTable {
    /// The variable of the environment that holds it. Either this or `file`.
    pub env: Option<String>,
    /// The file that holds it; a line break at its end does not count. Relative to the configuration's file.
    pub file: Option<PathBuf>,
    /// The hosts that it may be sent to.
    #[schemars(with = "Vec<String>")]
    pub hosts: Vec<HostName>,
    /// Where in a request it may stand: "header:authorization", "query:key", "body:/auth/token".
    #[schemars(with = "Vec<String>")]
    pub places: Vec<Place>,
}

/// Which components of a name its grants are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderTable(pub GrantHolder);

/// The forms of it, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum HolderForm {
    /// The digest of one component, "sha256:…"; or "any", to grant it to every component with the name.
    One(String),
    /// The digests of several.
    Several(Vec<String>),
}

/// The word for every component with the name.
const ANY: &str = "any";

/// The value of a secret that nobody looked up, where nothing is run.
const NOT_LOOKED_UP: &str = "(not looked up)";

impl GrantsTable {
    /// Whether it grants anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The grants of the table. Paths are relative to `beside`; `values` has the secrets that were read, and `handles`
    /// the folders that were opened.
    pub(super) fn grants(
        &self,
        beside: &Path,
        values: &dyn Fn(&ValueName) -> Option<SecretValue>,
        handles: &dyn Fn(usize) -> FolderHandle,
    ) -> Grants {
        let folder = |(position, table): (usize, &FolderTable)| Folder {
            path: beside.join(&table.path),
            at: table.at.to_string(),
            write: table.write,
            handle: handles(position),
        };
        let secret = |(name, table): (&ValueName, &SecretTable)| {
            Some(Secret {
                name: name.to_string(),
                value: values(name).or_else(|| SecretValue::new(NOT_LOOKED_UP).ok())?,
                hosts: table.hosts.iter().map(|host| host.pattern().clone()).collect(),
                places: table.places.iter().map(|place| place.place().clone()).collect(),
            })
        };
        let values = |values: &BTreeMap<ValueName, String>| {
            values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
        };
        Grants {
            keyvalue: self.keyvalue.map(KeyValueTable::quota),
            http: self.http.iter().map(HttpTable::rule).collect(),
            config: self.config.as_ref().map(values),
            folders: self.folders.iter().enumerate().map(folder).collect(),
            secrets: self.secrets.iter().filter_map(secret).collect(),
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

impl KeyValueTable {
    /// The quota that it says.
    #[must_use]
    pub fn quota(self) -> KeyValueQuota {
        let default = KeyValueQuota::default();
        KeyValueQuota { bytes: self.bytes.unwrap_or(default.bytes), keys: self.keys.unwrap_or(default.keys) }
    }
}

impl HttpTable {
    /// The rule that it says.
    #[must_use]
    pub fn rule(&self) -> HttpRule {
        self.url.rule(&self.methods, if self.private { Reach::Private } else { Reach::Public })
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
                let url = Target::try_from(url.to_owned()).map_err(|error| error.to_string())?;
                Ok(Self::Http(HttpTable { url, methods: BTreeSet::new(), private: false }))
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

impl<'de> Deserialize<'de> for HolderTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        fn digest<E: de::Error>(text: &str) -> Result<Digest, E> {
            let form =
                || E::custom(format!("{text:?} is no component: expected \"sha256:\" and 64 digits, or \"any\""));
            if text.starts_with("sha256:") { text.parse().map_err(|_| form()) } else { Err(form()) }
        }

        impl<'de> de::Visitor<'de> for Form {
            type Value = GrantHolder;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the digest of a component, a list of digests, or \"any\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                if text == ANY {
                    return Ok(GrantHolder::AnyComponent);
                }
                digest(text).map(|component| GrantHolder::Components([component].into()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut components = BTreeSet::new();
                while let Some(text) = items.next_element::<String>()? {
                    components.insert(digest(&text)?);
                }
                Ok(GrantHolder::Components(components))
            }
        }

        deserializer.deserialize_any(Form).map(Self)
    }
}

impl Serialize for HolderTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            GrantHolder::AnyComponent => serializer.serialize_str(ANY),
            GrantHolder::Components(components) => match components.iter().collect::<Vec<_>>().as_slice() {
                [one] => serializer.collect_str(one),
                several => serializer.collect_seq(several.iter().map(ToString::to_string)),
            },
        }
    }
}
