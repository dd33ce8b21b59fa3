//! Writes configuration tables: the lines that grant the missing requests of a plugin.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Digest, PluginName};
use registry::grants::{GrantState, words};
use registry::manifest::SOME_FOLDER;
use registry::{Access, GrantHolder, Manifest};

use super::{FolderTable, GrantsTable, HolderTable, HttpTable, KeyValueTable, PluginTable, SecretTable};

impl PluginTable {
    /// The table with the existing grants and the missing requests of a component. `None` if no request is missing.
    /// The operator must fill in values, folders and sources of secrets.
    #[must_use]
    pub fn granting(existing: Option<&Self>, access: &Access, component: Digest) -> Option<Self> {
        let missing: Vec<_> =
            access.requested().into_iter().filter(|request| request.state != GrantState::Granted).collect();
        let needs_review = !words(&access.withheld()).is_empty();
        if missing.is_empty() && !needs_review {
            return None;
        }
        let mut table = existing.cloned().unwrap_or_default();
        for request in &missing {
            table.grants.add_requested(&request.alone);
        }
        let holder = match table.component.take() {
            Some(HolderTable(holder)) if holder.covers(component) => holder,
            // The old holder is probably the component that this one replaces.
            _ => GrantHolder::Components([component].into()),
        };
        table.component = Some(HolderTable(holder));
        Some(table)
    }

    /// The table as TOML.
    #[must_use]
    pub fn to_toml(&self, name: &PluginName) -> String {
        let plugins = BTreeMap::from([(name.as_str(), self)]);
        // Strings, numbers and lists of them always serialise.
        toml::to_string(&BTreeMap::from([("plugin", plugins)])).unwrap_or_default()
    }
}

impl GrantsTable {
    /// Adds the requests of a manifest that are not granted yet.
    fn add_requested(&mut self, requested: &Manifest) {
        let Manifest { keyvalue, http, config, folders, secrets } = requested;
        if let Some(want) = keyvalue {
            let larger = |one: Option<u64>, other: Option<u64>, default: u64| match (one, other) {
                (None, None) => None,
                (one, other) => Some(one.unwrap_or(default).max(other.unwrap_or(default))),
            };
            let (existing, default) = (self.keyvalue, KeyValueTable::default().quota());
            self.keyvalue = Some(match existing {
                None => KeyValueTable { bytes: want.bytes, keys: want.keys },
                Some(existing) => KeyValueTable {
                    bytes: larger(existing.bytes, want.bytes, default.bytes),
                    keys: larger(existing.keys, want.keys, default.keys),
                },
            });
        }
        let http =
            http.iter().map(|want| HttpTable { url: want.url.clone(), methods: want.methods.clone(), private: false });
        let http: Vec<_> = http.filter(|table| !self.http.contains(table)).collect();
        self.http.extend(http);
        for want in config {
            self.config.get_or_insert_default().entry(want.name.clone()).or_default();
        }
        for want in folders {
            match self.folders.iter_mut().find(|folder| folder.at == want.at) {
                Some(folder) => folder.write |= want.write,
                None => {
                    self.folders.push(FolderTable { path: SOME_FOLDER.into(), at: want.at.clone(), write: want.write });
                }
            }
        }
        for want in secrets {
            let new = || SecretTable { env: Some(want.variable()), file: None, hosts: Vec::new(), places: Vec::new() };
            let table = self.secrets.entry(want.name.clone()).or_insert_with(new);
            let known: BTreeSet<_> = table.hosts.iter().cloned().collect();
            table.hosts.extend(want.hosts.iter().filter(|host| !known.contains(host)).cloned());
            let places: Vec<_> = want.places.iter().filter(|place| !table.places.contains(place)).cloned().collect();
            table.places.extend(places);
        }
    }
}
