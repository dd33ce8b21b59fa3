//! `wasi:keyvalue` (0.2.0-draft2: `store`, `atomics`, `batch`) over buckets that the host keeps for each plugin.
//!
//! Every access carries the plugin's name, which the host adds and no guest can choose: whatever a guest calls its buckets
//! and keys, it reaches its own. In an instance without a session, as when a plugin is asked for its tools, every access is
//! denied.

mod bindings;
mod buckets;
mod host;
mod memory;

use std::sync::Arc;

use domain::PluginName;
use wasmtime::component::{HasSelf, Linker};

use self::bindings::wasi::keyvalue::{atomics, batch, store};
pub use self::buckets::{BucketError, Buckets, Place, Swapped};
pub use self::memory::MemoryBuckets;
use crate::guest::Guest;

/// Bytes of a key.
const MAX_KEY: usize = 1 << 10;

/// Bytes of a value. Stores keep larger ones badly, and a plugin that has them has files.
const MAX_VALUE: usize = 64 << 10;

/// Keys of one page of a listing, and of one batch.
const MAX_KEYS: usize = 256;

/// How much a plugin may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The names of buckets, keys and values of all its entries together, in bytes.
    pub bytes: u64,
    /// Its keys.
    pub keys: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { bytes: 16 << 20, keys: 100_000 }
    }
}

/// Links the three interfaces.
pub(crate) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    store::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)?;
    atomics::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)?;
    batch::add_to_linker::<_, HasSelf<Guest>>(linker, Guest::called)
}

/// The access of one call.
pub(crate) struct Session {
    access: Access,
    wrote: bool,
}

impl Session {
    pub(crate) fn new(buckets: Arc<dyn Buckets>, plugin: PluginName, quota: Quota) -> Self {
        Self { access: Access { buckets, plugin, quota }, wrote: false }
    }

    /// Whether anything may have been written, or may yet be: a write that took too long is not called back.
    pub(crate) fn wrote(&self) -> bool {
        self.wrote
    }
}

/// What a plugin has of the buckets, to be used where a thread may block.
#[derive(Clone)]
struct Access {
    buckets: Arc<dyn Buckets>,
    plugin: PluginName,
    quota: Quota,
}

impl Access {
    fn get(&self, bucket: &str, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        self.buckets.get(self.place(bucket, key)?)
    }

    fn set(&self, bucket: &str, key: &str, value: &[u8]) -> Result<(), BucketError> {
        check_value(value)?;
        self.buckets.set(self.place(bucket, key)?, value, self.quota)
    }

    fn delete(&self, bucket: &str, key: &str) -> Result<(), BucketError> {
        self.buckets.delete(self.place(bucket, key)?)
    }

    /// One page of keys, and whether more may follow.
    fn list(&self, bucket: &str, after: Option<&str>) -> Result<(Vec<String>, bool), BucketError> {
        let keys = self.buckets.list(&self.plugin, bucket, after, MAX_KEYS)?;
        let more = keys.len() >= MAX_KEYS;
        Ok((keys, more))
    }

    fn increment(&self, bucket: &str, key: &str, delta: i64) -> Result<i64, BucketError> {
        self.buckets.increment(self.place(bucket, key)?, delta, self.quota)
    }

    fn swap(&self, bucket: &str, key: &str, seen: Option<&[u8]>, value: &[u8]) -> Result<Swapped, BucketError> {
        check_value(value)?;
        self.buckets.compare_and_swap(self.place(bucket, key)?, seen, value, self.quota)
    }

    fn place<'a>(&'a self, bucket: &'a str, key: &'a str) -> Result<Place<'a>, BucketError> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(BucketError::Refused(format!("a key has 1 to {MAX_KEY} bytes, this one {}", key.len())));
        }
        Ok(Place { plugin: &self.plugin, bucket, key })
    }
}

fn check_value(value: &[u8]) -> Result<(), BucketError> {
    if value.len() > MAX_VALUE {
        return Err(BucketError::Refused(format!("a value has at most {MAX_VALUE} bytes, this one {}", value.len())));
    }
    Ok(())
}

/// Whether a guest may call a bucket so: 1 to 64 letters, digits, `_`, `-` and `.`.
fn is_bucket_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}
