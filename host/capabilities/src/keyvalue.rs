//! `wasi:keyvalue` (0.2.0-draft2: `store`, `atomics`, `batch`) over buckets that the host keeps for each plugin.
//!
//! The host adds the plugin's name to every access, and no guest can choose it. So all names of buckets and keys lead
//! to the plugin's own data. A call without a grant is denied every access.

mod bindings;
mod buckets;
mod grant;
mod handles;
mod host;
mod memory;
mod recorded;
mod writes;

use std::sync::Arc;

use domain::PluginName;
use wasmtime::component::Linker;

use self::bindings::wasi::keyvalue::{atomics, batch, store};
pub use self::buckets::{BucketError, Buckets, CommitWrite, EntryKey, Swapped};
pub use self::grant::{KeyValueEntry, KeyValueTable, RequestedKeyValue};
pub use self::memory::MemoryBuckets;
use self::writes::{CallWrites, Writes};
use crate::interface::{GrantOf, Granted, Interface, NewCall};
use crate::journal::Journal;
use crate::view::{CallView, Has};

/// The maximum size of a key in bytes.
const MAX_KEY: usize = 1 << 10;

/// Bytes of a value. Larger values belong into files.
const MAX_VALUE: usize = 64 << 10;

/// Bytes of the longest number that can be incremented.
const MAX_NUMBER: usize = 20;

/// Keys of one page of a list, and of one batch.
const MAX_KEYS: usize = 256;

/// The quota of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyValueQuota {
    /// Bytes of all entries: bucket names, keys and values.
    pub bytes: u64,
    pub keys: u64,
}

impl Default for KeyValueQuota {
    fn default() -> Self {
        Self { bytes: 16 << 20, keys: 100_000 }
    }
}

/// A call's access to the buckets. The default is no access.
#[derive(Default)]
pub struct State {
    access: Option<Access>,
    wrote: bool,
    /// Records the results of a durable call.
    journal: Option<Journal>,
}

/// The host's side. Without buckets, every access is denied.
#[derive(Clone, Default)]
pub struct Service {
    buckets: Option<Arc<dyn Buckets>>,
    writes: Arc<Writes>,
}

impl Service {
    #[must_use]
    pub fn over(buckets: Arc<dyn Buckets>) -> Self {
        Self { buckets: Some(buckets), writes: Arc::default() }
    }
}

impl Interface for State {
    type Service = Service;
    type Granted = Option<KeyValueQuota>;

    fn is_behind(package: &str, version: &str, interface: &str) -> bool {
        (package, version) == ("wasi:keyvalue", "0.2.0-draft2") && matches!(interface, "store" | "atomics" | "batch")
    }

    fn begin(service: &Service, call: &NewCall<'_>, granted: Option<Granted<'_, GrantOf<Self::Granted>>>) -> Self {
        let access = granted.and_then(|granted| {
            let (buckets, quota) = (service.buckets.clone()?, (*granted.grants).as_ref().as_ref()?);
            let writes = service.writes.of(granted.plugin, call);
            Some(Access { buckets, plugin: granted.plugin.clone(), quota: *quota, writes })
        });
        Self { access, wrote: false, journal: call.journal.cloned() }
    }

    fn link<T: CallView<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        store::add_to_linker::<_, Has<Self>>(linker, T::view)?;
        atomics::add_to_linker::<_, Has<Self>>(linker, T::view)?;
        batch::add_to_linker::<_, Has<Self>>(linker, T::view)
    }

    /// A write that takes too long is not called back.
    fn wrote(&self) -> bool {
        self.wrote
    }
}

/// The access of a plugin, for use on a thread that may block.
#[derive(Clone)]
struct Access {
    buckets: Arc<dyn Buckets>,
    plugin: PluginName,
    quota: KeyValueQuota,
    writes: CallWrites,
}

impl Access {
    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        self.buckets.get(self.entry(bucket, key)?)
    }

    fn set(&self, bucket: &str, key: &str, value: &[u8]) -> Result<(), BucketError> {
        check_value(value)?;
        self.write(bucket, key, value.len(), |entry| self.buckets.set(entry, value, self.quota))
    }

    fn delete(&self, bucket: &str, key: &str) -> Result<(), BucketError> {
        self.write(bucket, key, 0, |entry| self.buckets.delete(entry))
    }

    /// One page of keys, and whether more keys may follow.
    fn list(&self, bucket: &str, after: Option<&str>) -> Result<(Vec<String>, bool), BucketError> {
        let keys = self.buckets.list(&self.plugin, bucket, after, MAX_KEYS)?;
        let more = keys.len() >= MAX_KEYS;
        Ok((keys, more))
    }

    fn increment(&self, bucket: &str, key: &str, delta: i64) -> Result<i64, BucketError> {
        self.write(bucket, key, MAX_NUMBER, |entry| self.buckets.increment(entry, delta, self.quota))
    }

    fn swap(&self, bucket: &str, key: &str, seen: Option<&[u8]>, value: &[u8]) -> Result<Swapped, BucketError> {
        check_value(value)?;
        let swap = |entry: EntryKey<'_>| self.buckets.compare_and_swap(entry, seen, value, self.quota);
        self.write(bucket, key, value.len(), swap)
    }

    /// Writes an entry. `value` is the size of its value in bytes. An error costs the call nothing: a later run does not know at
    /// which point the write was refused.
    fn write<T>(
        &self,
        bucket: &str,
        key: &str,
        value: usize,
        write: impl FnOnce(EntryKey<'_>) -> Result<T, BucketError>,
    ) -> Result<T, BucketError> {
        let (entry, bytes) = (self.entry(bucket, key)?, bucket.len() + key.len() + value);
        self.writes.count(bytes)?;
        write(entry).inspect_err(|_| self.writes.give_back(bytes))
    }

    fn entry<'a>(&'a self, bucket: &'a str, key: &'a str) -> Result<EntryKey<'a>, BucketError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(BucketError::Refused(format!(
                "a key must have 1 to {MAX_KEY} bytes; this one has {}",
                key.len()
            )));
        }
        Ok(EntryKey { plugin: &self.plugin, bucket, key })
    }
}

fn check_value(value: &[u8]) -> Result<(), BucketError> {
    if value.len() > MAX_VALUE {
        return Err(BucketError::Refused(format!(
            "a value must have at most {MAX_VALUE} bytes; this one has {}",
            value.len()
        )));
    }
    Ok(())
}

/// Whether this is a bucket's name: 1 to 64 letters, digits, `_`, `-` and `.`.
fn is_bucket_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}
