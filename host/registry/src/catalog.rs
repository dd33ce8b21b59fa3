//! The live plugins: an immutable snapshot that is replaced as a whole. A reader sees one consistent state and takes no
//! lock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dispatch::ports::KnownTool;
use domain::{Digest, PluginName};

use crate::component::Component;

/// The live plugins, and the components that calls are still pinned to.
#[derive(Default, Clone)]
pub(crate) struct Catalog {
    plugins: BTreeMap<PluginName, Arc<Component>>,
    tools: HashMap<String, Arc<KnownTool>>,
    sorted: Vec<Arc<KnownTool>>,
    /// The plugin is part of the key: the same bytes under another name have other grants, limits and data.
    components: HashMap<(PluginName, Digest), Arc<Component>>,
}

impl Catalog {
    /// The live plugins, sorted by name.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = &Arc<Component>> {
        self.plugins.values()
    }

    pub(crate) fn plugin(&self, name: &PluginName) -> Option<&Arc<Component>> {
        self.plugins.get(name)
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<KnownTool>> {
        self.tools.get(name)
    }

    /// Every live tool, sorted by name.
    pub(crate) fn sorted(&self) -> &[Arc<KnownTool>] {
        &self.sorted
    }

    /// The component with this digest under this plugin's name, live or not.
    pub(crate) fn component(&self, plugin: &PluginName, digest: Digest) -> Option<&Arc<Component>> {
        self.components.get(&(plugin.clone(), digest))
    }

    /// Replaces the component under its name by this one.
    pub(crate) fn with(&self, component: &Arc<Component>) -> Self {
        let mut plugins = self.plugins.clone();
        plugins.insert(component.plugin.clone(), component.clone());
        let mut components = self.components.clone();
        components.insert((component.plugin.clone(), component.digest), component.clone());
        Self::index(plugins, components)
    }

    /// Adds a component that is not live. An existing entry stays, because it may already have its guest.
    pub(crate) fn knowing(&self, component: &Arc<Component>) -> Self {
        let mut catalog = self.clone();
        let key = (component.plugin.clone(), component.digest);
        catalog.components.entry(key).or_insert_with(|| component.clone());
        catalog
    }

    /// Without this plugin. Its component stays for the calls that are pinned to it.
    pub(crate) fn without(&self, plugin: &PluginName) -> Self {
        let mut plugins = self.plugins.clone();
        plugins.remove(plugin);
        Self::index(plugins, self.components.clone())
    }

    pub(crate) fn retaining(&self, kept: &HashSet<Digest>) -> Self {
        let mut catalog = self.clone();
        catalog.components.retain(|(_, digest), _| kept.contains(digest));
        catalog
    }

    fn index(
        plugins: BTreeMap<PluginName, Arc<Component>>,
        components: HashMap<(PluginName, Digest), Arc<Component>>,
    ) -> Self {
        let mut sorted: Vec<_> = plugins.values().flat_map(|component| component.tools.iter().cloned()).collect();
        sorted.sort_unstable_by(|a, b| a.tool.name.cmp(&b.tool.name));
        let tools = sorted.iter().map(|tool| (tool.tool.name.as_str().to_owned(), tool.clone())).collect();
        Self { plugins, tools, sorted, components }
    }
}

/// The name closest to `written`. `None` if more than a third of the characters differ, because then no name was likely
/// meant.
pub(crate) fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer than 64 characters. Comparing takes the product of the lengths, so a longer text is not
    // compared.
    const MAX_LENGTH: usize = 96;
    let length = written.chars().count();
    if length > MAX_LENGTH {
        return None;
    }
    let written = written.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&written, &name.to_lowercase());
    names
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| distance * 3 <= length.max(name.len()))
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_offered_where_one_is_near() {
        let names = ["send_mail", "read_mail", "search", "pay"];
        for (written, expected) in [
            ("send_email", Some("send_mail")),
            ("sendmail", Some("send_mail")),
            ("Search", Some("search")),
            ("serach", Some("search")),
            ("pya", Some("pay")),
            ("delete", None),
            ("", None),
            (&"x".repeat(1_000_000), None),
        ] {
            assert_eq!(nearest(written, names), expected, "{}", written.len());
        }
    }
}
