//! Grants of secrets: their sources, and where a plugin may send them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Secret, SecretPlace, SecretValue};
use crate::host_pattern::HostPattern;
use crate::request::{GrantRequest, InvalidGrant, InvalidManifest, MAX_REQUESTS, key, string, strings};
use crate::words::ValueName;

/// A request for a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedSecret {
    /// The name under which the plugin reads its placeholder.
    pub name: ValueName,
    /// The hosts to which the secret may be sent.
    pub hosts: Vec<HostPattern>,
    /// The parts of a request that may contain the secret.
    pub places: Vec<SecretPlace>,
    pub why: String,
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
    pub hosts: Vec<HostPattern>,
    /// Where in a request it may stand: "header:authorization", "query:key", "body:/auth/token".
    pub places: Vec<SecretPlace>,
}

/// The value of a secret that nobody looked up, where nothing is run.
const NOT_LOOKED_UP: &str = "(not looked up)";

impl RequestedSecret {
    /// A suggested environment variable for the secret.
    fn variable(&self) -> String {
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

    /// Grants it in full. `None` if the value cannot be a secret.
    fn with(&self, value: &str) -> Option<Secret> {
        Some(secret(&self.name, SecretValue::new(value).ok()?, &self.hosts, &self.places))
    }

    /// A secret for the hosts and positions that are both granted and requested. `None` if either set is empty.
    fn narrowed(&self, granted: &Secret) -> Option<Secret> {
        let mut hosts = Vec::new();
        for one in &granted.hosts {
            for host in self.hosts.iter().filter_map(|other| one.intersection(other)) {
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        let requests = |place: &&_| self.places.iter().any(|requested| requested == *place);
        let places: Vec<_> = granted.places.iter().filter(requests).cloned().collect();
        let some = !hosts.is_empty() && !places.is_empty();
        some.then(|| Secret { name: granted.name.clone(), value: granted.value.clone(), hosts, places })
    }
}

fn secret(name: &ValueName, value: SecretValue, hosts: &[HostPattern], places: &[SecretPlace]) -> Secret {
    Secret { name: name.to_string(), value, hosts: hosts.to_vec(), places: places.to_vec() }
}

impl GrantRequest for RequestedSecret {
    type All = Vec<Self>;
    type Granted = Vec<Secret>;
    type Table = BTreeMap<ValueName, SecretTable>;
    type Opened = BTreeMap<ValueName, SecretValue>;

    const IS_REPLAYABLE: bool = true;
    const EXAMPLE: Option<&'static str> = None;

    fn reaches_outside(_: &Self::Granted) -> bool {
        false
    }

    fn may_change(_: &Self::Granted) -> bool {
        false
    }

    fn words(&self) -> String {
        words(self.name.as_str(), &self.hosts, &self.places)
    }

    fn name(&self) -> Option<String> {
        // A plugin reads secrets and values by name from wasi:config, so a name belongs to one of them.
        Some(format!("`{}`", self.name))
    }

    fn check(&self) -> Result<(), InvalidManifest> {
        if self.hosts.len().max(self.places.len()) > MAX_REQUESTS {
            return Err(InvalidManifest::TooMany("hosts or places of a secret"));
        }
        if self.hosts.is_empty() || self.places.is_empty() {
            return Err(InvalidManifest::Nowhere(self.name.clone()));
        }
        Ok(())
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        requests.iter().map(Self::line).collect()
    }

    fn made_up(requests: Option<&[Self]>) -> Self::Granted {
        requests.unwrap_or_default().iter().filter_map(|request| request.with("made-up-value")).collect()
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        let requests: BTreeMap<&str, &Self> = requests.iter().map(|request| (request.name.as_str(), request)).collect();
        granted.iter().filter_map(|granted| requests.get(granted.name.as_str())?.narrowed(granted)).collect()
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        let granted = granted.iter().find(|granted| granted.name == self.name.as_str());
        granted.is_some_and(|granted| {
            let is_sent = |host: &HostPattern| granted.hosts.iter().any(|outer| host.is_within(outer));
            self.hosts.iter().all(is_sent) && self.places.iter().all(|place| granted.places.contains(place))
        })
    }

    fn each(granted: &Self::Granted, _shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        let text = |Secret { name, hosts, places, .. }: &Secret| words(name, hosts, places);
        granted.iter().map(|secret| (vec![secret.clone()], text(secret))).collect()
    }

    fn granted(table: &Self::Table, _beside: &Path, opened: &Self::Opened) -> Self::Granted {
        let grant = |(name, table): (&ValueName, &SecretTable)| {
            let value = opened.get(name).cloned().or_else(|| SecretValue::new(NOT_LOOKED_UP).ok())?;
            Some(secret(name, value, &table.hosts, &table.places))
        };
        table.iter().filter_map(grant).collect()
    }

    fn check_table(table: &Self::Table) -> Result<(), InvalidGrant> {
        for (name, table) in table {
            table.check().map_err(|(message, hint)| InvalidGrant::at([name.to_string()], message, hint))?;
        }
        Ok(())
    }

    fn add_to(&self, table: &mut Self::Table) {
        let new = || SecretTable { env: Some(self.variable()), file: None, hosts: Vec::new(), places: Vec::new() };
        let table = table.entry(self.name.clone()).or_insert_with(new);
        let known: BTreeSet<_> = table.hosts.iter().cloned().collect();
        table.hosts.extend(self.hosts.iter().filter(|host| !known.contains(host)).cloned());
        let places: Vec<_> = self.places.iter().filter(|place| !table.places.contains(place)).cloned().collect();
        table.places.extend(places);
    }
}

impl SecretTable {
    fn check(&self) -> Result<(), (String, &'static str)> {
        match (&self.env, &self.file) {
            (Some(_), Some(_)) => Err(("a secret has one source, not both".into(), "remove `env` or `file`")),
            (None, None) => Err((
                "nothing says where the secret comes from".into(),
                "write `env = \"VARIABLE\"` or `file = \"PATH\"`; its value has no place in this file",
            )),
            (Some(variable), None) if variable.is_empty() || variable.contains(['=', '\0']) => {
                Err((format!("{variable:?} is no variable of the environment"), "write its name alone"))
            }
            _ if self.hosts.is_empty() => {
                Err(("the secret may be sent nowhere".into(), "write `hosts = [\"api.example.com\"]`"))
            }
            _ if self.places.is_empty() => {
                Err(("the secret has no place in a request".into(), "write `places = [\"header:authorization\"]`"))
            }
            _ => Ok(()),
        }
    }
}

fn words(name: &str, hosts: &[HostPattern], places: &[SecretPlace]) -> String {
    format!("secret: {name}, to {}, in {}", list(hosts), list(places))
}

fn list(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
