//! The plugins' key-value data: byte strings in buckets. No namespace can reach another's.
//!
//! A write is visible at once, and on disk with the next commit of the store at the latest, because both go through one
//! log in order. `Log::sync` makes it durable without a commit. So a call's writes are never lost while its result is
//! kept.
//!
//! A namespace has a quota. Its usage follows from its entries alone: they are counted at the first write after a
//! start, and the count is kept from then on. Writes to one namespace are made one after the other, so no two of them
//! can pass the same check.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::StoreFault;

use self::usage::Usages;
use crate::fault::fault;
use crate::sled::KeyValueTree;

mod usage;

/// The maximum length of the name of a namespace or a bucket, in bytes.
const MAX_NAME: usize = 255;
/// The maximum length of a key, in bytes.
const MAX_KEY: usize = 1 << 10;
/// The largest value, in bytes.
pub const MAX_VALUE: usize = 64 << 10;
/// The maximum number of keys of one listing.
const MAX_LISTING: usize = 1_000;

/// Why a read or a write failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeyValueError {
    /// A name, a key or a value is too long.
    #[error("{what} has {size} bytes; the limit is {limit}")]
    TooLarge { what: &'static str, size: usize, limit: usize },
    /// The namespace is full. Nothing was written.
    #[error(
        "quota exceeded: this write needs {would} {unit}, and the quota is {may} (grant `keyvalue.{unit}`); delete \
         something first"
    )]
    Full {
        /// `bytes` or `keys`.
        unit: &'static str,
        would: u64,
        may: u64,
    },
    #[error(transparent)]
    Fault(#[from] StoreFault),
}

/// Some of the keys of a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The keys, in their order as bytes.
    pub keys: Vec<Vec<u8>>,
    /// The cursor of the next listing, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// The limits of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamespaceQuota {
    /// The names of buckets, keys and values of all its entries together, in bytes.
    pub bytes: u64,
    /// The number of its entries.
    pub keys: u64,
}

impl NamespaceQuota {
    pub const UNBOUNDED: Self = Self { bytes: u64::MAX, keys: u64::MAX };
}

/// A handle to all namespaces, cheap to clone. Its functions wait for the disk when they read uncached data, and for
/// each other when they write to one namespace: call them where a thread may block.
#[derive(Clone)]
pub struct KeyValue {
    backend: Backend,
    usages: Usages,
}

#[derive(Clone)]
enum Backend {
    Memory(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>),
    Sled(KeyValueTree),
}

impl KeyValue {
    /// Data that lives as long as its handles.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { backend: Backend::Memory(Arc::default()), usages: Usages::default() }
    }

    /// A store makes one and hands out clones, so that usage is counted once for all of them.
    pub(crate) fn on(tree: KeyValueTree) -> Self {
        Self { backend: Backend::Sled(tree), usages: Usages::default() }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`KeyValueError`].
    pub fn get(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<Option<Vec<u8>>, KeyValueError> {
        self.backend.get(&full_key(namespace, bucket, key)?)
    }

    /// Sets a key.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed.
    pub fn set(
        &self,
        namespace: &str,
        bucket: &str,
        key: &[u8],
        value: &[u8],
        quota: NamespaceQuota,
    ) -> Result<(), KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        at_most("the value", value.len(), MAX_VALUE)?;
        self.usages.write(&self.backend, namespace, |usage| {
            let old = self.backend.get(&key)?;
            usage.change(&key, old.as_deref(), Some(value), quota)?;
            self.backend.put(key, Some(value))
        })
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed.
    pub fn delete(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<(), KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        self.usages.write(&self.backend, namespace, |usage| {
            let old = self.backend.get(&key)?;
            usage.change(&key, old.as_deref(), None, NamespaceQuota::UNBOUNDED)?;
            self.backend.put(key, None)
        })
    }

    /// Sets a key to `new` (`None`: removes it) if it holds `expected` (`None`: if it does not exist). Otherwise
    /// returns its current value.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed.
    pub fn compare_and_swap(
        &self,
        namespace: &str,
        bucket: &str,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        quota: NamespaceQuota,
    ) -> Result<Result<(), Option<Vec<u8>>>, KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        at_most("the value", new.map_or(0, <[u8]>::len), MAX_VALUE)?;
        self.usages.write(&self.backend, namespace, |usage| {
            let old = self.backend.get(&key)?;
            if old.as_deref() != expected {
                return Ok(Err(old));
            }
            usage.change(&key, expected, new, quota)?;
            // No other write to the namespace can come in between, so the value is still the expected one.
            self.backend.put(key, new).map(Ok)
        })
    }

    /// Keys of a bucket that begin with `prefix`: those after `cursor`, at most `limit` and at most 1,000.
    ///
    /// # Errors
    /// [`KeyValueError`].
    pub fn list(
        &self,
        namespace: &str,
        bucket: &str,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<Listing, KeyValueError> {
        let of_bucket = full_key(namespace, bucket, &[])?.len();
        let start = full_key(namespace, bucket, prefix)?;
        let from = match cursor {
            Some(cursor) if cursor >= prefix => Bound::Excluded(full_key(namespace, bucket, cursor)?),
            _ => Bound::Included(start.clone()),
        };
        let limit = limit.min(MAX_LISTING);
        let mut listing = Listing::default();
        let range = (from, Bound::<Vec<u8>>::Unbounded);
        let wanted = |key: &[u8]| key.starts_with(&start).then(|| key[of_bucket..].to_vec());
        match &self.backend {
            Backend::Memory(map) => {
                listing.keys.extend(lock(map).range(range).map_while(|(key, _)| wanted(key)).take(limit));
            }
            Backend::Sled(data) => {
                for key in data.tree().range(range).keys().take(limit) {
                    let Some(key) = wanted(&key.map_err(fault("list keys"))?) else { break };
                    listing.keys.push(key);
                }
            }
        }
        if listing.keys.len() == limit {
            listing.next = listing.keys.last().cloned();
        }
        Ok(listing)
    }
}

impl Backend {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, KeyValueError> {
        Ok(match self {
            Self::Memory(map) => lock(map).get(key).cloned(),
            Self::Sled(data) => data.tree().get(key).map_err(fault("read a value"))?.map(|value| value.to_vec()),
        })
    }

    /// Sets a value, or removes it.
    fn put(&self, key: Vec<u8>, value: Option<&[u8]>) -> Result<(), KeyValueError> {
        match (self, value) {
            (Self::Memory(map), Some(value)) => drop(lock(map).insert(key, value.to_vec())),
            (Self::Memory(map), None) => drop(lock(map).remove(&key)),
            (Self::Sled(data), value) => data.put(key, value)?,
        }
        Ok(())
    }

    /// Reads every entry whose key has this prefix.
    fn each(&self, prefix: &[u8], mut look: impl FnMut(&[u8], &[u8])) -> Result<(), KeyValueError> {
        match self {
            Self::Memory(map) => {
                let map = lock(map);
                let entries = map.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
                entries.take_while(|(key, _)| key.starts_with(prefix)).for_each(|(key, value)| look(key, value));
            }
            Self::Sled(data) => {
                for entry in data.tree().scan_prefix(prefix) {
                    let (key, value) = entry.map_err(fault("count what a plugin keeps"))?;
                    look(&key, &value);
                }
            }
        }
        Ok(())
    }
}

/// Each name follows its length, so that no choice of names in one namespace can make a key of another.
fn full_key(namespace: &str, bucket: &str, key: &[u8]) -> Result<Vec<u8>, KeyValueError> {
    at_most("the namespace", namespace.len(), MAX_NAME)?;
    at_most("the bucket's name", bucket.len(), MAX_NAME)?;
    at_most("the key", key.len(), MAX_KEY)?;
    let mut full = Vec::with_capacity(namespace.len() + bucket.len() + key.len() + 2 * LENGTH);
    named(namespace, &mut full);
    named(bucket, &mut full);
    full.extend_from_slice(key);
    Ok(full)
}

/// The size of a length in bytes. One byte is enough for the limit; two leave room for a larger one.
const LENGTH: usize = 2;

fn named(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(name.as_bytes());
}

fn at_most(what: &'static str, size: usize, limit: usize) -> Result<(), KeyValueError> {
    if size > limit { Err(KeyValueError::TooLarge { what, size, limit }) } else { Ok(()) }
}

/// No code that holds the lock can panic halfway through a change, so a poisoned map is still whole.
fn lock(map: &Mutex<BTreeMap<Vec<u8>, Vec<u8>>>) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
