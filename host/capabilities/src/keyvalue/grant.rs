//! Grants of key-value data: how much a plugin may keep.

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::KeyValueQuota;
use crate::request::GrantRequest;

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

/// How much a plugin may keep in wasi:keyvalue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeyValueTable {
    /// All its keys and values together. Default: 16777216, 16 MiB.
    pub bytes: Option<u64>,
    /// Its keys. Default: 100000.
    pub keys: Option<u64>,
}

/// The grant in a configuration. `None` grants nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct KeyValueEntry(#[schemars(with = "Option<KeyValueGrant>")] pub Option<KeyValueTable>);

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

impl KeyValueTable {
    fn quota(self) -> KeyValueQuota {
        let default = KeyValueQuota::default();
        KeyValueQuota { bytes: self.bytes.unwrap_or(default.bytes), keys: self.keys.unwrap_or(default.keys) }
    }
}

impl GrantRequest for RequestedKeyValue {
    type All = Option<Self>;
    type Granted = Option<KeyValueQuota>;
    type Table = KeyValueEntry;
    type Opened = ();

    const IS_REPLAYABLE: bool = true;
    const EXAMPLE: Option<&'static str> = Some("grants.keyvalue = true");

    fn reaches_outside(_: &Self::Granted) -> bool {
        false
    }

    fn may_change(granted: &Self::Granted) -> bool {
        granted.is_some()
    }

    fn words(&self) -> String {
        match (self.bytes, self.keys) {
            (None, None) => "keyvalue".to_owned(),
            (Some(bytes), None) => format!("keyvalue: up to {bytes} bytes"),
            (None, Some(keys)) => format!("keyvalue: up to {keys} keys"),
            (Some(bytes), Some(keys)) => format!("keyvalue: up to {bytes} bytes in {keys} keys"),
        }
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        let line = |request: &Self| {
            if request.bytes.is_none() && request.keys.is_none() {
                return "grants.keyvalue = true".to_owned();
            }
            let KeyValueQuota { bytes, keys } = KeyValueTable { bytes: request.bytes, keys: request.keys }.quota();
            format!("grants.keyvalue = {{ bytes = {bytes}, keys = {keys} }}")
        };
        requests.iter().map(line).collect()
    }

    fn made_up(_requests: Option<&[Self]>) -> Self::Granted {
        Some(KeyValueQuota::default())
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        granted.zip(requests.first()).map(|(granted, requested)| KeyValueQuota {
            bytes: requested.bytes.map_or(granted.bytes, |bytes| bytes.min(granted.bytes)),
            keys: requested.keys.map_or(granted.keys, |keys| keys.min(granted.keys)),
        })
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        let fits = |requested: Option<u64>, granted| requested.is_none_or(|requested| requested <= granted);
        granted.is_some_and(|granted| fits(self.bytes, granted.bytes) && fits(self.keys, granted.keys))
    }

    fn each(granted: &Self::Granted, _shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        let text = |KeyValueQuota { bytes, keys }| format!("keyvalue: up to {bytes} bytes in {keys} keys");
        granted.iter().map(|quota| (Some(*quota), text(*quota))).collect()
    }

    fn granted(table: &Self::Table, _beside: &Path, _opened: &()) -> Self::Granted {
        table.0.map(KeyValueTable::quota)
    }

    fn add_to(&self, table: &mut Self::Table) {
        let larger = |one: Option<u64>, other: Option<u64>, default: u64| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(default).max(other.unwrap_or(default))),
        };
        let default = KeyValueQuota::default();
        table.0 = Some(match table.0 {
            None => KeyValueTable { bytes: self.bytes, keys: self.keys },
            Some(existing) => KeyValueTable {
                bytes: larger(existing.bytes, self.bytes, default.bytes),
                keys: larger(existing.keys, self.keys, default.keys),
            },
        });
    }
}

impl<'de> Deserialize<'de> for KeyValueEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl<'de> de::Visitor<'de> for Form {
            type Value = Option<KeyValueTable>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a table of `bytes` and `keys`")
            }

            fn visit_bool<E>(self, granted: bool) -> Result<Self::Value, E> {
                Ok(granted.then(KeyValueTable::default))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                KeyValueTable::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
            }
        }

        deserializer.deserialize_any(Form).map(Self)
    }
}
