//! The access of a plugin: the intersection of the operator's grants to this exact component and its manifest's
//! requests.
//!
//! Pure functions over grants and requests. A request grants nothing: the result allows only what the operator granted.

pub use capabilities::manifest::{GrantState, RequestedGrant};
use capabilities::secrets::Secret;
use capabilities::{Capability, Grants, Manifest};
use domain::{Digest, PluginName};

use crate::{GrantHolder, RegistrySettings};

/// The access of one component under one name, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The components that the operator's grants are for.
    pub holder: GrantHolder,
    /// The component's manifest. Without one, the component gets all that is granted.
    pub manifest: Option<Manifest>,
    /// The operator's grants under the plugin's name.
    pub granted: Grants,
    /// Whether those grants are for this component.
    pub is_holder: bool,
    /// The access: granted to it, and requested.
    pub effective: Grants,
}

impl Access {
    /// Compares the operator's grants with a component's manifest.
    #[must_use]
    pub fn of(settings: &RegistrySettings, plugin: &PluginName, component: Digest, manifest: Option<Manifest>) -> Self {
        let granted = settings.grants(plugin);
        let holder = settings.holder(plugin);
        let is_holder = holder.covers(component);
        let effective = if is_holder { effective(&granted, manifest.as_ref()) } else { Grants::default() };
        Self { holder, manifest, granted: (*granted).clone(), is_holder, effective }
    }

    /// The access that the component would get if the operator's grants were for it. A reason to review it.
    #[must_use]
    pub fn withheld(&self) -> Grants {
        if self.is_holder { Grants::default() } else { effective(&self.granted, self.manifest.as_ref()) }
    }

    /// The access of a call that began when the component had its grants. Without them, each new access is denied, and the
    /// secrets that the call may have learned are still redacted.
    #[must_use]
    pub fn of_begun(&self) -> Grants {
        let secrets = self.withheld().secrets.into_iter().map(Secret::withdrawn);
        Grants { secrets: self.effective.secrets.iter().cloned().chain(secrets).collect(), ..self.effective.clone() }
    }

    /// The operator's grants, if they are for this component.
    #[must_use]
    pub fn held(&self) -> Grants {
        if self.is_holder { self.granted.clone() } else { Grants::default() }
    }

    /// The requests of the manifest, one by one. Empty without a manifest.
    #[must_use]
    pub fn requested(&self) -> Vec<RequestedGrant> {
        self.manifest.as_ref().map(|manifest| manifest.requests(&self.held())).unwrap_or_default()
    }

    /// Grants that the manifest does not request, as text. Empty without a manifest.
    #[must_use]
    pub fn surplus(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let each = self.granted.each(|_| String::new()).into_iter();
        each.filter(|(alone, _)| words(&manifest.intersection(alone)).is_empty()).map(|(_, words)| words).collect()
    }
}

/// The intersection of grants and requests. Without a manifest, all grants.
#[must_use]
pub fn effective(granted: &Grants, requested: Option<&Manifest>) -> Grants {
    requested.map_or_else(|| granted.clone(), |requested| requested.intersection(granted))
}

/// Grants as text for people, one line each. Shows no configuration value, and only the name of a secret.
#[must_use]
pub fn words(grants: &Grants) -> Vec<String> {
    in_words(grants, |_| String::new())
}

/// The same for the audit. It distinguishes configuration values by their digests.
#[must_use]
pub fn recorded(grants: &Grants) -> Vec<String> {
    in_words(grants, |value| format!(" = {}", Digest::of(value)))
}

fn in_words(grants: &Grants, shown: fn(&str) -> String) -> Vec<String> {
    grants.each(shown).into_iter().map(|(_, words)| words).collect()
}

/// The lines of `[plugin.NAME]` in `toolgate.toml` that grant a capability to a component.
pub(crate) fn lines(access: &Access, component: Digest, capability: Capability) -> Vec<String> {
    let holder = (!access.is_holder).then(|| format!("component = \"{component}\""));
    holder.into_iter().chain(Manifest::lines(access.manifest.as_ref(), capability)).collect()
}

/// Why no grant can give a component any of its requests for a capability. `None` if one can, or if it requests none.
pub(crate) fn refusal(access: &Access, capability: Capability) -> Option<String> {
    let manifest = access.manifest.as_ref()?;
    if !Manifest::lines(Some(manifest), capability).is_empty() {
        return None;
    }
    access.requested().into_iter().find_map(|request| request.refusal)
}

#[cfg(test)]
mod tests;
