//! The rows of one table that a batch of commits reads or changes.

use std::collections::{BTreeMap, BTreeSet};

/// Rows by their keys. `None` means that there is no such row.
pub(super) struct Table<K, V> {
    /// As they are stored, with the changes of accepted commits.
    rows: BTreeMap<K, Option<V>>,
    /// The changes of the commit that is being checked.
    trial: BTreeMap<K, Option<V>>,
    changed: BTreeSet<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), trial: BTreeMap::new(), changed: BTreeSet::new() }
    }
}

impl<K: Ord + Clone, V> Table<K, V> {
    /// Adds a stored row.
    pub(super) fn load(&mut self, key: K, value: V) {
        self.rows.insert(key, Some(value));
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.trial.get(key).or_else(|| self.rows.get(key)).and_then(Option::as_ref)
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        self.trial.insert(key, Some(value));
    }

    pub(super) fn remove(&mut self, key: K) {
        self.trial.insert(key, None);
    }

    /// Whether the commit that is being checked changes a row.
    pub(super) fn is_tried(&self, key: &K) -> bool {
        self.trial.contains_key(key)
    }

    /// The rows that the commit that is being checked writes.
    pub(super) fn tried(&self) -> impl Iterator<Item = (&K, &V)> {
        self.trial.iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    /// Ends the check of a commit. If it was refused, its changes are dropped.
    pub(super) fn end(&mut self, is_accepted: bool) {
        let trial = std::mem::take(&mut self.trial);
        if is_accepted {
            self.changed.extend(trial.keys().cloned());
            self.rows.extend(trial);
        }
    }

    /// The changed rows that are there now.
    pub(super) fn written(&self) -> Vec<(&K, &V)> {
        let row = |key| self.rows.get_key_value(key).and_then(|(key, value)| Some((key, value.as_ref()?)));
        self.changed.iter().filter_map(row).collect()
    }

    /// The changed rows that are not there any more.
    pub(super) fn removed(&self) -> Vec<&K> {
        self.changed.iter().filter(|key| self.rows.get(key).is_some_and(Option::is_none)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_changes_are_dropped_and_accepted_ones_kept() {
        let mut table = Table::default();
        table.load(1, "a");
        table.load(2, "b");
        table.put(1, "refused");
        table.put(3, "refused");
        assert_eq!(table.get(&1), Some(&"refused"), "a check sees the changes of its own commit");
        table.end(false);
        assert_eq!((table.get(&1), table.get(&3)), (Some(&"a"), None));
        table.put(3, "c");
        table.remove(2);
        table.end(true);
        table.put(3, "d");
        table.end(true);
        assert_eq!(table.written(), [(&3, &"d")]);
        assert_eq!(table.removed(), [&2]);
    }
}
