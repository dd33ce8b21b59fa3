//! The host functions of `wasi:keyvalue`: handles to buckets and to compare-and-swap operations, and the words of the
//! interface for what went wrong.

use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::wasi::keyvalue::store::{Error, KeyResponse};
use super::bindings::wasi::keyvalue::{atomics, batch, store};
use super::{BucketError, MAX_KEYS, Session, Swapped, is_bucket_name};
use crate::ending::Stop;
use crate::guest::Guest;

/// A bucket that a guest has opened.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Bucket {
    name: String,
}

/// A compare-and-swap that a guest has begun.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Cas {
    bucket: String,
    key: String,
    seen: Option<Vec<u8>>,
}

/// The answer of a host function: what the guest is told, or the end of the call.
type Answer<T> = Result<std::result::Result<T, Error>>;

impl From<BucketError> for Error {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Refused(why) => Self::Other(why),
            BucketError::Fault(detail) => {
                tracing::error!(detail, "a plugin's bucket failed");
                Self::Other("the host's store failed".into())
            }
        }
    }
}

impl Guest {
    /// Does something with an open bucket, or denies it.
    fn with_bucket<T>(
        &mut self,
        bucket: &Resource<Bucket>,
        act: impl FnOnce(&mut Session, &str) -> std::result::Result<T, BucketError>,
    ) -> Answer<T> {
        let bucket = self.table.get(bucket)?;
        let Some(session) = &mut self.keyvalue else {
            return Ok(Err(Error::AccessDenied));
        };
        Ok(act(session, &bucket.name).map_err(Error::from))
    }
}

impl store::Host for Guest {
    fn open(&mut self, name: String) -> Answer<Resource<Bucket>> {
        if self.keyvalue.is_none() {
            return Ok(Err(Error::AccessDenied));
        }
        if !is_bucket_name(&name) {
            return Ok(Err(Error::NoSuchStore));
        }
        Ok(Ok(self.table.push(Bucket { name })?))
    }
}

impl store::HostBucket for Guest {
    fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        self.with_bucket(&bucket, |session, name| session.get(name, &key))
    }

    fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        self.with_bucket(&bucket, |session, name| session.set(name, &key, &value))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        self.with_bucket(&bucket, |session, name| session.delete(name, &key))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        self.with_bucket(&bucket, |session, name| session.get(name, &key).map(|value| value.is_some()))
    }

    /// The cursor is the last key of the page before, which a guest may as well make up: it selects among its own keys.
    fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<String>) -> Answer<KeyResponse> {
        self.with_bucket(&bucket, |session, name| {
            let (keys, more) = session.list(name, cursor.as_deref())?;
            let cursor = if more { keys.last().cloned() } else { None };
            Ok(KeyResponse { keys, cursor })
        })
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for Guest {
    fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: i64) -> Answer<i64> {
        self.with_bucket(&bucket, |session, name| session.increment(name, &key, delta))
    }

    fn swap(&mut self, cas: Resource<Cas>, value: Vec<u8>) -> Result<std::result::Result<(), atomics::CasError>> {
        let Cas { bucket, key, seen } = self.table.delete(cas)?;
        let Some(session) = &mut self.keyvalue else {
            return Ok(Err(atomics::CasError::StoreError(Error::AccessDenied)));
        };
        match session.swap(&bucket, &key, seen.as_deref(), &value) {
            Ok(Swapped::Done) => Ok(Ok(())),
            Ok(Swapped::Stale(seen)) => {
                let renewed = self.table.push(Cas { bucket, key, seen })?;
                Ok(Err(atomics::CasError::CasFailed(renewed)))
            }
            Err(error) => Ok(Err(atomics::CasError::StoreError(error.into()))),
        }
    }
}

impl atomics::HostCas for Guest {
    fn new(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Resource<Cas>> {
        let begun = self.with_bucket(&bucket, |session, name| {
            Ok(Cas { seen: session.get(name, &key)?, bucket: name.to_owned(), key })
        })?;
        match begun {
            Ok(cas) => Ok(Ok(self.table.push(cas)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    fn current(&mut self, cas: Resource<Cas>) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.table.get(&cas)?.seen.clone()))
    }

    fn drop(&mut self, cas: Resource<Cas>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl batch::Host for Guest {
    fn get_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<Vec<Option<(String, Vec<u8>)>>> {
        check_batch(keys.len())?;
        self.with_bucket(&bucket, |session, name| {
            let pair = |key: String| Ok(session.get(name, &key)?.map(|value| (key, value)));
            keys.into_iter().map(pair).collect()
        })
    }

    fn set_many(&mut self, bucket: Resource<Bucket>, entries: Vec<(String, Vec<u8>)>) -> Answer<()> {
        check_batch(entries.len())?;
        self.with_bucket(&bucket, |session, name| {
            entries.iter().try_for_each(|(key, value)| session.set(name, key, value))
        })
    }

    fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<()> {
        check_batch(keys.len())?;
        self.with_bucket(&bucket, |session, name| keys.iter().try_for_each(|key| session.delete(name, key)))
    }
}

/// One host call answers a bounded number of keys: a tick of the epoch cannot interrupt it.
fn check_batch(keys: usize) -> Result<()> {
    if keys > MAX_KEYS {
        let what = format!("named {keys} keys in one batch, at most {MAX_KEYS} are allowed");
        return Err(Stop::Limit(what).into());
    }
    Ok(())
}
