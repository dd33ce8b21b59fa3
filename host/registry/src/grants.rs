//! What a plugin may use: the intersection of the operator's grants to this exact component and its manifest's
//! requests.
//!
//! Pure functions over grants and requests. A request grants nothing: the result allows only what the operator granted.

use capabilities::manifest::SingleRequest;
use capabilities::{Capability, Grants, Manifest};
use domain::{Digest, PluginName};

use crate::{GrantHolder, RegistrySettings};

/// What one component may use under one name, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The components that the operator's grants are for.
    pub holder: GrantHolder,
    /// The component's manifest. Without one, the component gets all that is granted.
    pub manifest: Option<Manifest>,
    /// What the operator granted under the plugin's name.
    pub granted: Grants,
    /// Whether those grants are for this component.
    pub is_holder: bool,
    /// What it may use: granted to it, and requested.
    pub effective: Grants,
}

/// How much of a request is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantState {
    Granted,
    InPart,
    Missing,
}

impl GrantState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::InPart => "in part",
            Self::Missing => "missing",
        }
    }
}

/// One request of a component's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedGrant {
    /// The request, in the host's words.
    pub what: String,
    /// The reason, in the plugin's words. Escape it before you show it.
    pub why: String,
    /// How much of it is granted.
    pub state: GrantState,
    /// A manifest with this request only.
    pub alone: Manifest,
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

    /// What the component would get if the operator's grants were for it. A reason to review it.
    #[must_use]
    pub fn withheld(&self) -> Grants {
        if self.is_holder { Grants::default() } else { effective(&self.granted, self.manifest.as_ref()) }
    }

    /// The requests of the manifest, one by one. Empty without a manifest.
    #[must_use]
    pub fn requested(&self) -> Vec<RequestedGrant> {
        let requests = self.manifest.iter().flat_map(Manifest::requests);
        let requested = |request: SingleRequest<'_>| RequestedGrant {
            state: if self.is_holder { state_of(&self.granted, &request.alone) } else { GrantState::Missing },
            what: request.words,
            why: request.why.to_owned(),
            alone: request.alone,
        };
        requests.map(requested).collect()
    }

    /// Grants that the manifest does not request, as text. Empty without a manifest.
    #[must_use]
    pub fn surplus(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let each = self.granted.each(|_| String::new()).into_iter();
        each.filter(|(alone, _)| words(&manifest.meet(alone)).is_empty()).map(|(_, words)| words).collect()
    }
}

/// What is both granted and requested. Without a manifest, all that is granted.
#[must_use]
pub fn effective(granted: &Grants, requested: Option<&Manifest>) -> Grants {
    requested.map_or_else(|| granted.clone(), |requested| requested.meet(granted))
}

/// How much of the manifest's only request is granted.
fn state_of(granted: &Grants, alone: &Manifest) -> GrantState {
    if words(&alone.meet(granted)).is_empty() {
        return GrantState::Missing;
    }
    if alone.is_covered(granted) { GrantState::Granted } else { GrantState::InPart }
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

#[cfg(test)]
mod tests;
