//! A key-value store that outlasts the call: wasi:keyvalue of the host, or [`Memory`](crate::testing::Memory) in a test.
//!
//! Each plugin has one bucket of its own, `default`. Calls run in instances of their own and at the same time, and a host
//! may be killed between any two writes; [`Bucket::update`] is the one way to change a value that others change too, and a
//! tool that needs several writes finds out from what is stored how far an earlier attempt came.

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

/// So many swaps in a row that others won mean that something is wrong, not that the key is popular: each lost one is
/// another call's progress.
const MAX_SWAPS: u32 = 1_000;

/// Why the store did not do what it was asked.
///
/// No `std::error::Error`, so that under `?` it becomes [`Failure::Unavailable`] where trying again may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The host has no bucket of this name.
    NoSuchStore,
    /// The plugin may not use this bucket.
    AccessDenied,
    /// The store could not do it now.
    Other(String),
    /// What is stored under the key is not what the tool expects there.
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

/// A swap that did not happen.
enum Lost<Cas> {
    /// Somebody else was faster; here is the handle for the next try.
    Race(Cas),
    /// The store could not do it.
    #[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "the store of a test can always do it"))]
    Store(Error),
}

/// The plugin's key-value pairs.
pub struct Bucket(backend::Bucket);

impl Bucket {
    /// The plugin's own bucket, `default`.
    ///
    /// # Errors
    /// [`Error`] when the host offers none.
    pub fn open() -> Result<Self, Error> {
        backend::Bucket::open("default").map(Self)
    }

    /// The value under a key.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read or the value is no `T` in JSON.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        self.0.get(key)?.map(|bytes| decode(key, &bytes)).transpose()
    }

    /// Puts a value under a key, as JSON. Where several calls may write one key, use
    /// [`update`](Self::update).
    ///
    /// # Errors
    /// [`Error`] when the store cannot be written.
    pub fn set(&self, key: &str, value: &impl Serialize) -> Result<(), Error> {
        self.0.set(key, &encode(key, value)?)
    }

    /// Removes a key; one that is not there is fine.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be written.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.0.delete(key)
    }

    /// Adds to the number under a key, which counts as 0 when it is not there, and gives the sum. One step: no call gets
    /// between. But a call that is dispatched again adds again, so this is for numbers that need not be exact.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be written or the value is not a number of its own.
    pub fn increment(&self, key: &str, by: i64) -> Result<i64, Error> {
        self.0.increment(key, by)
    }

    /// All keys that begin with a prefix, in order. Reads every key of the bucket: for tools that look at everything anyway.
    ///
    /// # Errors
    /// [`Error`] when the store cannot be read.
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

    /// Changes the value under a key by compare-and-swap: reads it (`T::default()` when there is none), lets `step` change
    /// it, and writes it only if nobody else wrote meanwhile; otherwise starts again with what they wrote. `step` may
    /// therefore run several times and should do nothing else. What it leaves unchanged is not written.
    ///
    /// With `T = Option<Document>`, `None` stands for a key that is not there.
    ///
    /// # Errors
    /// What `step` says, with nothing written; and `Unavailable` when the store cannot be used.
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
