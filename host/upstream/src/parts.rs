//! Texts by the names of their parts, and the parts that differ between two of them.

use std::collections::BTreeMap;

/// A part with its accepted and its new text.
pub type Changed = (&'static str, Option<String>, Option<String>);

/// The parts that differ.
pub(crate) fn between(old: Vec<(&'static str, String)>, new: Vec<(&'static str, String)>) -> Vec<Changed> {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (old.into_iter().collect(), new.into_iter().collect());
    let parts: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).copied().collect();
    let pair = |part: &'static str| (part, old.get(part).cloned(), new.get(part).cloned());
    parts.into_iter().map(pair).filter(|(_, old, new)| old != new).collect()
}
