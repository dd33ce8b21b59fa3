//! The plugins' own key-value data: byte strings in buckets, each namespace out of every other's reach.
//!
//! A write is visible at once and on disk no later than the next commit of the store that it lives beside, because both
//! go through one log in their order; `Store::sync` makes it durable without a commit. So a call's writes are never lost
//! while its result is kept.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dispatch::ports::StoreFault;

use crate::fault::fault;
use crate::sled::KeyValueTree;

/// The longest name of a namespace or a bucket, in bytes.
pub const LARGEST_NAME: usize = 255;
/// The longest key, in bytes.
pub const LARGEST_KEY: usize = 1 << 10;
/// The largest value, in bytes.
pub const LARGEST_VALUE: usize = 64 << 10;
/// The most keys of one listing.
pub const LARGEST_LISTING: usize = 1_000;

/// Why nothing was read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KeyValueError {
    /// Something is longer than it may be.
    #[error("{what} has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        size: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The store failed.
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

/// A handle on all namespaces; cheap to clone. Its functions do not block on the disk, except to read what is not cached.
#[derive(Clone)]
pub struct KeyValue(Backend);

#[derive(Clone)]
enum Backend {
    Memory(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>),
    Sled(KeyValueTree),
}

impl KeyValue {
    /// Data that lives as long as its handles.
    #[must_use]
    pub fn in_memory() -> Self {
        Self(Backend::Memory(Arc::default()))
    }

    pub(crate) fn on(tree: KeyValueTree) -> Self {
        Self(Backend::Sled(tree))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`KeyValueError`].
    pub fn get(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<Option<Vec<u8>>, KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        Ok(match &self.0 {
            Backend::Memory(map) => lock(map).get(&key).cloned(),
            Backend::Sled(data) => data.tree()?.get(key).map_err(fault("read a value"))?.map(|value| value.to_vec()),
        })
    }

    /// Sets a key, whatever it held.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed.
    pub fn set(&self, namespace: &str, bucket: &str, key: &[u8], value: &[u8]) -> Result<(), KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        at_most("the value", value.len(), LARGEST_VALUE)?;
        match &self.0 {
            Backend::Memory(map) => drop(lock(map).insert(key, value.to_vec())),
            Backend::Sled(data) => drop(data.tree()?.insert(key, value).map_err(fault("write a value"))?),
        }
        Ok(())
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed.
    pub fn delete(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<(), KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        match &self.0 {
            Backend::Memory(map) => drop(lock(map).remove(&key)),
            Backend::Sled(data) => drop(data.tree()?.remove(key).map_err(fault("remove a value"))?),
        }
        Ok(())
    }

    /// Sets a key to `new` (`None`: removes it) if it holds `expected` (`None`: if it is not there). Whether it did.
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
    ) -> Result<bool, KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        at_most("the value", new.map_or(0, <[u8]>::len), LARGEST_VALUE)?;
        match &self.0 {
            Backend::Memory(map) => {
                let mut map = lock(map);
                if map.get(&key).map(Vec::as_slice) != expected {
                    return Ok(false);
                }
                match new {
                    Some(new) => drop(map.insert(key, new.to_vec())),
                    None => drop(map.remove(&key)),
                }
                Ok(true)
            }
            Backend::Sled(data) => {
                let swapped = data.tree()?.compare_and_swap(key, expected, new).map_err(fault("swap a value"))?;
                Ok(swapped.is_ok())
            }
        }
    }

    /// Keys of a bucket that begin with `prefix`, those after `cursor`, at most `limit` and at most
    /// [`LARGEST_LISTING`].
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
        let limit = limit.min(LARGEST_LISTING);
        let mut listing = Listing::default();
        let range = (from, Bound::<Vec<u8>>::Unbounded);
        let wanted = |key: &[u8]| key.starts_with(&start).then(|| key[of_bucket..].to_vec());
        match &self.0 {
            Backend::Memory(map) => {
                listing.keys.extend(lock(map).range(range).map_while(|(key, _)| wanted(key)).take(limit));
            }
            Backend::Sled(data) => {
                for key in data.tree()?.range(range).keys().take(limit) {
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

/// Each name stands behind its length, so that no choice of names in one namespace spells a key of another.
fn full_key(namespace: &str, bucket: &str, key: &[u8]) -> Result<Vec<u8>, KeyValueError> {
    at_most("the namespace", namespace.len(), LARGEST_NAME)?;
    at_most("the bucket's name", bucket.len(), LARGEST_NAME)?;
    at_most("the key", key.len(), LARGEST_KEY)?;
    let mut full = Vec::with_capacity(namespace.len() + bucket.len() + key.len() + 4);
    for name in [namespace, bucket] {
        // One byte would do for the limit above; two leave room for it to grow.
        full.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
        full.extend_from_slice(name.as_bytes());
    }
    full.extend_from_slice(key);
    Ok(full)
}

fn at_most(what: &'static str, size: usize, limit: usize) -> Result<(), KeyValueError> {
    if size > limit { Err(KeyValueError::TooLarge { what, size, limit }) } else { Ok(()) }
}

/// No code that holds the lock can panic half-way through a change, so a poisoned map is a whole one.
fn lock(map: &Mutex<BTreeMap<Vec<u8>, Vec<u8>>>) -> MutexGuard<'_, BTreeMap<Vec<u8>, Vec<u8>>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
