//! The usage of each namespace, counted once and then kept up to date.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::StoreFault;

use super::{KeyValueError, LENGTH, NamespaceQuota, SortedMap, named};

/// The usage of the namespaces that were written to since the start.
#[derive(Clone, Default)]
pub(super) struct Usages(Arc<Mutex<HashMap<String, OfOne>>>);

/// The usage of one namespace, once it was counted. Its lock is held during each write.
type OfOne = Arc<Mutex<Option<NamespaceUsage>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamespaceUsage {
    /// The bytes of every key that do not count: the name of the namespace and the lengths of names.
    own: u64,
    bytes: u64,
    keys: u64,
}

impl Usages {
    /// Writes to a namespace while nobody else does. After a write that failed in the store its effect is unknown, so
    /// the namespace is counted again before the next one.
    pub(super) fn write<T>(
        &self,
        entries: &dyn SortedMap,
        namespace: &str,
        write: impl FnOnce(&mut NamespaceUsage) -> Result<T, KeyValueError>,
    ) -> Result<T, KeyValueError> {
        let usage = locked(&self.0).entry(namespace.to_owned()).or_default().clone();
        let mut known = locked(&usage);
        let mut usage = match known.take() {
            Some(usage) => usage,
            None => NamespaceUsage::count(entries, namespace)?,
        };
        let before = usage;
        let done = write(&mut usage);
        *known = match &done {
            Ok(_) => Some(usage),
            Err(KeyValueError::TooLarge { .. } | KeyValueError::Full { .. }) => Some(before),
            Err(KeyValueError::Fault(_)) => None,
        };
        done
    }
}

impl NamespaceUsage {
    fn count(entries: &dyn SortedMap, namespace: &str) -> Result<Self, StoreFault> {
        let mut prefix = Vec::new();
        named(namespace, &mut prefix);
        let mut usage = Self { own: (prefix.len() + LENGTH) as u64, bytes: 0, keys: 0 };
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

    /// Counts a changed entry, unless the quota has no room for it. An entry that shrinks always fits: an operator may
    /// lower a quota, and a plugin must still be able to delete.
    pub(super) fn change(
        &mut self,
        key: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        quota: NamespaceQuota,
    ) -> Result<(), KeyValueError> {
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
        (self.bytes, self.keys) = (bytes, keys);
        Ok(())
    }

    fn size(&self, key: &[u8], value: &[u8]) -> u64 {
        (key.len() as u64).saturating_sub(self.own) + value.len() as u64
    }
}

/// A count that a panic interrupted was dropped, and is made again.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
