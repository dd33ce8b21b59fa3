//! The plugins' key-value data: byte strings in buckets. No namespace can reach another's.
//!
//! A write is visible at once, and on disk with the next commit of the store at the latest, because both go through one
//! log in order. `Log::sync` makes it durable without a commit. So a call's writes are never lost while its result is
//! kept.
//!
//! A namespace has a quota. Its usage follows from its entries alone: they are counted at the first write after a
//! start, and the count is kept from then on. If several hosts share the data, the database counts instead. Writes of one host to
//! one namespace are made one after the other, so no two of them can pass the same check.
//!
//! A write names the value that it replaces. If another host was faster, it is decided again.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use dispatch::ports::StoreFault;
use domain::journal::ValueChange;

pub(crate) use self::usage::NamespaceUsage;
use self::usage::Usages;

mod usage;

/// The maximum length of the name of a namespace or a bucket, in bytes.
const MAX_NAME: usize = 255;
/// The maximum length of a key, in bytes.
const MAX_KEY: usize = 1 << 10;
/// The largest value, in bytes.
pub const MAX_VALUE: usize = 64 << 10;
/// The maximum length of a key behind its namespace and its bucket, in bytes.
pub(crate) const MAX_FULL_KEY: usize = 2 * (LENGTH + MAX_NAME) + MAX_KEY;
/// The maximum number of keys of one listing.
const MAX_LISTING: usize = 1_000;
/// How often a write is tried while other hosts change its key. One of them makes progress each time.
const MAX_ATTEMPTS: usize = 100;

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
    entries: Arc<dyn SortedMap>,
    usages: Usages,
}

/// Makes a write of [`KeyValue::committed_by`], on a thread that may block. Nobody else at this host writes to the namespace meanwhile.
pub trait CommitValue: Send + Sync {
    /// Commits the change. `false`: another host has replaced the old value, and nothing is committed.
    ///
    /// # Errors
    /// The change is not made, or its state is unknown.
    fn commit(&self, change: ValueChange) -> Result<bool, StoreFault>;
}

/// Entries whose changes are committed by something else.
struct Committing {
    entries: Arc<dyn SortedMap>,
    by: Arc<dyn CommitValue>,
}

impl SortedMap for Committing {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        self.entries.get(key)
    }

    fn present(&self, namespace: &str, key: &[u8]) -> Result<Present, StoreFault> {
        self.entries.present(namespace, key)
    }

    fn swap(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, StoreFault> {
        let owned = |value: Option<&[u8]>| value.map(<[u8]>::to_vec);
        self.by.commit(ValueChange { key: key.to_vec(), old: owned(old), value: owned(new) })
    }

    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault> {
        self.entries.read_from(key, each)
    }
}

/// The entries of all namespaces, sorted by key.
pub(crate) trait SortedMap: Send + Sync {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault>;

    /// The state that a write depends on.
    fn present(&self, _namespace: &str, key: &[u8]) -> Result<Present, StoreFault> {
        Ok(Present { value: self.get(key)?, usage: None })
    }

    /// Replaces a value. `None`: no value. Returns false, and changes nothing, if another process has replaced the old value.
    /// Data that belongs to one process needs no check: the caller has the lock of the namespace.
    fn swap(&self, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, StoreFault>;

    /// Reads the entries from a key on, as long as `each` returns true.
    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault>;
}

/// The entry of a key, and the usage of its namespace.
pub(crate) struct Present {
    pub(crate) value: Option<Vec<u8>>,
    /// `None`: this process counts.
    pub(crate) usage: Option<NamespaceUsage>,
}

impl KeyValue {
    /// Data that lives as long as its handles.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::on(Arc::new(InMemory::default()))
    }

    /// A store makes one and hands out clones, so that usage is counted once for all of them.
    pub(crate) fn on(entries: Arc<dyn SortedMap>) -> Self {
        Self { entries, usages: Usages::default() }
    }

    /// The same data, with writes that `by` makes: it commits each together with something else.
    #[must_use]
    pub fn committed_by(&self, by: Arc<dyn CommitValue>) -> Self {
        Self { entries: Arc::new(Committing { entries: self.entries.clone(), by }), usages: self.usages.clone() }
    }

    /// Makes a change that was checked and committed.
    pub(crate) fn apply(&self, ValueChange { key, old, value }: &ValueChange) -> Result<(), StoreFault> {
        self.entries.swap(key, old.as_deref(), value.as_deref()).map(drop)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`KeyValueError`].
    pub fn get(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<Option<Vec<u8>>, KeyValueError> {
        Ok(self.entries.get(&full_key(namespace, bucket, key)?)?)
    }

    /// Sets a key.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed, except that the state may be unknown after a fault.
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
        self.write(namespace, &key, quota, |_| Some(Some(value))).map(drop)
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed, except that the state may be unknown after a fault.
    pub fn delete(&self, namespace: &str, bucket: &str, key: &[u8]) -> Result<(), KeyValueError> {
        let key = full_key(namespace, bucket, key)?;
        self.write(namespace, &key, NamespaceQuota::UNBOUNDED, |_| Some(None)).map(drop)
    }

    /// Sets a key to `new` (`None`: removes it) if it holds `expected` (`None`: if it does not exist). Otherwise
    /// returns its current value.
    ///
    /// # Errors
    /// [`KeyValueError`]; nothing has changed, except that the state may be unknown after a fault.
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
        self.write(namespace, &key, quota, |old| (old == expected).then_some(new))
    }

    /// Replaces the value of a key. `decide` gets the present value, and returns the new one, or `None` to write nothing; then the
    /// present value is the result.
    fn write<'a>(
        &self,
        namespace: &str,
        key: &[u8],
        quota: NamespaceQuota,
        decide: impl Fn(Option<&[u8]>) -> Option<Option<&'a [u8]>>,
    ) -> Result<Result<(), Option<Vec<u8>>>, KeyValueError> {
        let of_namespace = self.usages.of(namespace);
        let mut known = usage::locked(&of_namespace);
        for _ in 0..MAX_ATTEMPTS {
            let Present { value: old, usage } = self.entries.present(namespace, key)?;
            let Some(new) = decide(old.as_deref()) else { return Ok(Err(old)) };
            let is_shared = usage.is_some();
            let before = match usage.or(*known) {
                Some(usage) => usage,
                None => NamespaceUsage::count(&*self.entries, namespace)?,
            };
            let after = before.changed(key, old.as_deref(), new, quota);
            // After a write that failed in the store its effect is unknown, so the namespace is counted again before the next one.
            *known = if after.is_err() { Some(before) } else { None };
            let after = after?;
            if self.entries.swap(key, old.as_deref(), new)? {
                *known = (!is_shared).then_some(after);
                return Ok(Ok(()));
            }
        }
        let reason = format!("other hosts changed the key each of {MAX_ATTEMPTS} times");
        Err(StoreFault::of_program("write a value", reason).into())
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
        self.entries.read_from(from, &mut |key, _| {
            let is_next = key.starts_with(&start) && listing.keys.len() < limit;
            if is_next {
                listing.keys.push(key[of_bucket..].to_vec());
            }
            is_next
        })?;
        if listing.keys.len() == limit {
            listing.next = listing.keys.last().cloned();
        }
        Ok(listing)
    }
}

/// No code that holds the lock can panic halfway through a change, so a poisoned map is still whole.
#[derive(Default)]
struct InMemory(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl SortedMap for InMemory {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn swap(&self, key: &[u8], _: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, StoreFault> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match new {
            Some(new) => drop(map.insert(key.to_vec(), new.to_vec())),
            None => drop(map.remove(key)),
        }
        Ok(true)
    }

    fn read_from(&self, key: Bound<Vec<u8>>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreFault> {
        let map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = map.range((key, Bound::Unbounded)).all(|(key, value)| each(key, value));
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

/// Whether a key is one of [`full_key`].
pub(crate) fn is_full_key(full: &[u8]) -> bool {
    after_name(full).and_then(after_name).is_some_and(|key| key.len() <= MAX_KEY)
}

fn after_name(full: &[u8]) -> Option<&[u8]> {
    let (length, rest) = full.split_first_chunk::<LENGTH>()?;
    let length = usize::from(u16::from_be_bytes(*length));
    if length > MAX_NAME { None } else { rest.get(length..) }
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
