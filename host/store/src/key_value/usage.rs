//! The usage of each namespace: of data that belongs to this process, counted once and then kept up to date.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::StoreFault;

use super::{KeyValueError, LENGTH, NamespaceQuota, SortedMap, named};

/// The usage of the namespaces that were written to since the start.
#[derive(Clone, Default)]
pub(super) struct Usages(Arc<Mutex<HashMap<String, OfOne>>>);

/// The usage of one namespace, once this process has counted it. Its lock is held during each write.
type OfOne = Arc<Mutex<Option<NamespaceUsage>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamespaceUsage {
    /// The bytes of every key that do not count: the name of the namespace and the lengths of names.
    own: u64,
    bytes: u64,
    keys: u64,
}

impl Usages {
    pub(super) fn of(&self, namespace: &str) -> OfOne {
        locked(&self.0).entry(namespace.to_owned()).or_default().clone()
    }
}

impl NamespaceUsage {
    pub(crate) fn new(namespace: &str, bytes: u64, keys: u64) -> Self {
        Self { own: (namespace.len() + 2 * LENGTH) as u64, bytes, keys }
    }

    pub(super) fn count(entries: &dyn SortedMap, namespace: &str) -> Result<Self, StoreFault> {
        let mut prefix = Vec::new();
        named(namespace, &mut prefix);
        let mut usage = Self::new(namespace, 0, 0);
        entries.read_from(Bound::Included(prefix.clone()), &mut |key, value| {
            let is_of_it = key.starts_with(&prefix);
            if is_of_it {
                usage.bytes += usage.size(key, value);
                usage.keys += 1;
            }
            is_of_it
        })?;
        Ok(usage)
    }

    /// The usage with a changed entry, unless the quota has no room for it. An entry that shrinks always fits: an operator may
    /// lower a quota, and a plugin must still be able to delete.
    pub(super) fn changed(
        self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        quota: NamespaceQuota,
    ) -> Result<Self, KeyValueError> {
        let size = |value: Option<&[u8]>| value.map_or(0, |value| self.size(key, value));
        let bytes = self.bytes.saturating_sub(size(old)) + size(new);
        let keys = self.keys.saturating_sub(u64::from(old.is_some())) + u64::from(new.is_some());
        for (unit, had, would, may) in
            [("bytes", self.bytes, bytes, quota.bytes), ("keys", self.keys, keys, quota.keys)]
        {
            if would > may && would > had {
                return Err(KeyValueError::Full { unit, would, may });
            }
        }
        Ok(Self { bytes, keys, ..self })
    }

    fn size(&self, key: &[u8], value: &[u8]) -> u64 {
        (key.len() as u64).saturating_sub(self.own) + value.len() as u64
    }
}

/// A count that a panic interrupted was dropped, and is made again.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
