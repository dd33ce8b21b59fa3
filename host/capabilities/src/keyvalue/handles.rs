//! The resources of `wasi:keyvalue` that a guest holds.

use crate::stop::Stop;
use crate::usage::{Charge, HostMemory};

/// A bucket that a guest has opened.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Bucket {
    pub(super) name: String,
    pub(super) _charge: Charge,
}

/// A compare-and-swap that a guest has begun.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Cas {
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) seen: Option<Vec<u8>>,
    pub(super) _charge: Charge,
}

/// The bytes of a handle without its texts and values.
pub(super) const HANDLE: usize = 256;

impl Cas {
    pub(super) fn new(memory: &HostMemory, bucket: String, key: String, seen: Option<Vec<u8>>) -> Result<Self, Stop> {
        let size = HANDLE + bucket.len() + key.len() + seen.as_ref().map_or(0, Vec::len);
        Ok(Self { _charge: memory.charge(size)?, bucket, key, seen })
    }
}
