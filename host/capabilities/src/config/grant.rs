//! Grants of configuration values: their names and values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::request::{GrantRequest, key};
use crate::words::ValueName;

/// A request for a configuration value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedValue {
    pub name: ValueName,
    pub why: String,
}

impl GrantRequest for RequestedValue {
    type All = Vec<Self>;
    type Granted = Option<BTreeMap<String, String>>;
    type Table = Option<BTreeMap<ValueName, String>>;
    type Opened = ();

    const IS_REPLAYABLE: bool = true;
    const EXAMPLE: Option<&'static str> = Some("grants.config = {}");

    fn reaches_outside(_: &Self::Granted) -> bool {
        false
    }

    fn may_change(_: &Self::Granted) -> bool {
        false
    }

    fn words(&self) -> String {
        format!("config: {}", self.name)
    }

    fn name(&self) -> Option<String> {
        Some(format!("`{}`", self.name))
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        requests.iter().map(|request| format!("grants.config.{} = \"\"", key(request.name.as_str()))).collect()
    }

    fn made_up(requests: Option<&[Self]>) -> Self::Granted {
        let values = requests.unwrap_or_default().iter();
        let values = values.map(|request| (request.name.to_string(), "made-up-value".to_owned()));
        Some(values.collect())
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        let names: BTreeSet<&str> = requests.iter().map(|request| request.name.as_str()).collect();
        let values = granted.as_ref().filter(|_| !names.is_empty())?.iter();
        let requested = values.filter(|(name, _)| names.contains(name.as_str()));
        Some(requested.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        granted.as_ref().is_some_and(|values| values.contains_key(self.name.as_str()))
    }

    fn each(granted: &Self::Granted, shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        let one = |(name, value): (&String, &String)| {
            (Some([(name.clone(), value.clone())].into()), format!("config: {name}{}", shown(value)))
        };
        granted.iter().flatten().map(one).collect()
    }

    fn granted(table: &Self::Table, _beside: &Path, _opened: &()) -> Self::Granted {
        let values = table.as_ref()?.iter();
        Some(values.map(|(name, value)| (name.to_string(), value.clone())).collect())
    }

    fn add_to(&self, table: &mut Self::Table) {
        table.get_or_insert_default().entry(self.name.clone()).or_default();
    }
}
