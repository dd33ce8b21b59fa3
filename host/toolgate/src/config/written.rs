//! Writes configuration tables: the lines that grant the missing requests of a plugin.

use std::collections::BTreeMap;

use domain::{Digest, PluginName};
use registry::grants::{GrantState, words};
use registry::{Access, GrantHolder};

use super::{HolderTable, PluginTable};

impl PluginTable {
    /// The table with the existing grants and the missing requests of a component. `None` if no request is missing.
    /// The operator must fill in values, folders and sources of secrets.
    #[must_use]
    pub fn granting(existing: Option<&Self>, access: &Access, component: Digest) -> Option<Self> {
        let is_missing = |state| matches!(state, GrantState::InPart | GrantState::Missing);
        let is_missing = access.requested().iter().any(|request| is_missing(request.state));
        let needs_review = !words(&access.withheld()).is_empty();
        if !is_missing && !needs_review {
            return None;
        }
        let mut table = existing.cloned().unwrap_or_default();
        if let Some(manifest) = &access.manifest {
            table.grants.add_missing(manifest, &access.held());
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
