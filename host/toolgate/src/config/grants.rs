//! Which components of a name hold its grants, and grants that a command line gives. The table `[plugin.NAME.grants]` is
//! in the crate `capabilities`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use capabilities::http::{HttpTable, Target};
use capabilities::keyvalue::{KeyValueEntry, KeyValueQuota};
use capabilities::manifest::GrantState;
use capabilities::request::GrantRequest as _;
use capabilities::{Grants, GrantsTable, Manifest};
use domain::Digest;
use registry::GrantHolder;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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

/// A grant as it is given on a command line.
#[derive(Debug, Clone)]
pub enum Grant {
    /// `keyvalue`
    KeyValue,
    /// `http=URL`: GET and HEAD below the URL.
    Http(HttpTable),
}

impl Grant {
    /// The grants that give what a manifest requests and these grants do not cover, as far as a command line can give it; and
    /// whether that is all of it.
    #[must_use]
    pub fn missing(manifest: &Manifest, held: &Grants) -> (Vec<Self>, bool) {
        let Manifest { keyvalue, http, config: _, folders: _, secrets: _, calls: _ } = manifest;
        let mut grants = Vec::new();
        if let Some(request) = keyvalue.as_ref().filter(|request| !request.is_covered(&held.keyvalue))
            && request.is_covered(&Some(KeyValueQuota::default()))
        {
            grants.push(Self::KeyValue);
        }
        for request in http.iter().filter(|request| !request.is_covered(&held.http)) {
            let table = HttpTable::of(request.url.clone(), BTreeSet::new());
            if request.is_covered(&vec![table.rule()]) {
                grants.push(Self::Http(table));
            }
        }
        let missing = manifest.requests(held).iter().filter(|request| request.state != GrantState::Granted).count();
        let is_all = grants.len() == missing;
        (grants, is_all)
    }

    pub(super) fn add_to(self, table: &mut GrantsTable) {
        match self {
            Self::KeyValue => table.keyvalue = KeyValueEntry(Some(table.keyvalue.0.unwrap_or_default())),
            Self::Http(grant) => table.http.push(grant),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyValue => f.write_str("keyvalue"),
            Self::Http(table) => write!(f, "http={}", table.url),
        }
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "keyvalue" => Ok(Self::KeyValue),
            Some(("http", url)) => {
                let url = Target::try_from(url.to_owned()).map_err(|error| error.to_string())?;
                let table = HttpTable::of(url, BTreeSet::new());
                table.refusal().map_or(Ok(Self::Http(table)), Err)
            }
            _ => Err("`--grant` takes keyvalue or http=URL; grant anything else in toolgate.toml (`--config`)".into()),
        }
    }
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
