//! A key-value store whose data outlives the call: wasi:keyvalue of the host, or [`Memory`](crate::testing::Memory) in
//! a test.
//!
//! Each plugin has its own bucket, `default`. Calls run at the same time in separate instances, and a host may be
//! killed between any two writes. Use [`Bucket::update`] to change a value that other calls change too. A tool that
//! needs several writes must find out from the stored data how far an earlier attempt came.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;

#[cfg(not(target_family = "wasm"))]
pub(crate) mod memory;
#[cfg(not(target_family = "wasm"))]
use memory as backend;
#[cfg(target_family = "wasm")]
mod wasi;
#[cfg(target_family = "wasm")]
use wasi as backend;

/// More lost swaps than this in a row mean that something is wrong. A busy key alone does not cause them.
const MAX_SWAPS: u32 = 1_000;

/// Why an operation of the store failed.
///
/// It is not a `std::error::Error`, so that `?` turns it into [`Failure::Unavailable`] if trying again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The host has no bucket of this name.
    NoSuchStore,
    /// The plugin may not use this bucket.
    AccessDenied,
    /// The store is not available now.
    Other(String),
    /// The stored value does not have the expected form.
    Malformed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchStore => f.write_str("the host has no such key-value bucket"),
            Self::AccessDenied => f.write_str("the key-value bucket may not be used by this plugin"),
            Self::Other(why) => write!(f, "the key-value store cannot be used now: {why}"),
            Self::Malformed(why) => write!(f, "a stored value cannot be read: {why}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Other(_) => Self::Unavailable(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// A failed swap.
enum Lost<Cas> {
    /// Another call changed the value first. The handle is for the next attempt.
    Race(Cas),
    /// The store failed.
    #[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "the store of a test never fails"))]
    Store(Error),
}

/// The plugin's key-value pairs.
pub struct Bucket(backend::Bucket);

impl Bucket {
    /// The plugin's own bucket, `default`.
    ///
    /// # Errors
    /// [`Error`] if the host offers none.
    pub fn open() -> Result<Self, Error> {
        backend::Bucket::open("default").map(Self)
    }

    /// The value under a key.
    ///
    /// # Errors
    /// [`Error`] if the store cannot be read, or the value is not JSON for `T`.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        self.0.get(key)?.map(|bytes| decode(key, &bytes)).transpose()
    }

    /// Stores a value under a key, as JSON. If several calls may write the key, use [`update`](Self::update).
    ///
    /// # Errors
    /// [`Error`] if the store cannot be written.
    pub fn set(&self, key: &str, value: &impl Serialize) -> Result<(), Error> {
        self.0.set(key, &encode(key, value)?)
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// [`Error`] if the store cannot be written.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.delete(key)
    }

    /// Adds to the number under a key atomically, and returns the sum. A missing key counts as 0. A call that is
    /// dispatched again adds again, so use this only for numbers that need not be exact.
    ///
    /// # Errors
    /// [`Error`] if the store cannot be written, or the value is not such a number.
    pub fn increment(&self, key: &str, by: i64) -> Result<i64, Error> {
        self.0.increment(key, by)
    }

    /// All keys with this prefix, sorted. It reads every key of the bucket.
    ///
    /// # Errors
    /// [`Error`] if the store cannot be read.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let (page, next) = self.0.list_keys(cursor)?;
            keys.extend(page.into_iter().filter(|key| key.starts_with(prefix)));
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// Changes the value under a key by compare-and-swap. It reads the value (`T::default()` if the key is missing),
    /// calls `step`, and writes the value only if no other call changed it meanwhile. Otherwise it starts again with
    /// the new value. So `step` may run several times and should have no other effect. An unchanged value is not
    /// written.
    ///
    /// With `T = Option<Document>`, `None` means a missing key.
    ///
    /// # Errors
    /// The error of `step`, with nothing written. `Unavailable` if the store cannot be used.
    pub fn update<T, R>(&self, key: &str, mut step: impl FnMut(&mut T) -> Result<R, Failure>) -> Result<R, Failure>
    where
        T: Serialize + DeserializeOwned + Default,
    {
        let mut cas = self.0.cas(key)?;
        for _ in 0..MAX_SWAPS {
            let before = cas.current()?;
            let mut value: T = before.as_deref().map(|bytes| decode(key, bytes)).transpose()?.unwrap_or_default();
            let before = before.map_or_else(|| encode(key, &value), Ok)?;
            let result = step(&mut value)?;
            let after = encode(key, &value)?;
            if after == before {
                return Ok(result);
            }
            match cas.swap(&after) {
                Ok(()) => return Ok(result),
                Err(Lost::Race(again)) => cas = again,
                Err(Lost::Store(error)) => return Err(error.into()),
            }
        }
        Err(Failure::Unavailable(format!("`{key}` is being changed by too many calls at once")))
    }
}

fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Malformed(format!("`{key}`: {error}")))
}

fn encode(key: &str, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::Malformed(format!("`{key}`: {error}")))
}
