//! The host functions of `wasi:keyvalue`.

use std::sync::Arc;

use domain::Digest;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::bindings::wasi::keyvalue::store::{Error, HostBucket as _, KeyResponse};
use super::bindings::wasi::keyvalue::{atomics, batch, store};
use super::handles::{Bucket, Cas, HANDLE};
use super::recorded::{self, Committing, Recorded};
use super::{Access, BucketError, MAX_KEY, MAX_KEYS, MAX_NUMBER, State, Swapped, is_bucket_name};
use crate::journal::HostCall;
use crate::stop::Stop;
use crate::view::View;

/// The answer of a host function: the guest's result, or the end of the call.
type Answer<T> = Result<std::result::Result<T, Error>>;

impl From<BucketError> for Error {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Denied => Self::AccessDenied,
            BucketError::Refused(why) => Self::Other(why),
            BucketError::Fault(detail) => {
                tracing::error!(detail, "a plugin's bucket failed");
                Self::Other("the host's store failed".into())
            }
        }
    }
}

/// Whether an access changes what is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Read,
    /// The bytes of the key and of the value.
    Write(usize),
}

/// An access: its name and its arguments besides the bucket, for the journal of a durable call.
struct Asked<'a>(Act, &'static str, &'a [&'a [u8]]);

impl View<'_, State> {
    /// Does `work` with an open bucket on a thread that may block, or denies it.
    async fn with_bucket<T: Recorded>(
        &mut self,
        bucket: &Resource<Bucket>,
        asked: Asked<'_>,
        work: impl FnOnce(&Access, &str) -> std::result::Result<T, BucketError> + Send + 'static,
    ) -> Answer<T> {
        let name = self.table.get(bucket)?.name.clone();
        Ok(self.access(name, asked, work).await?.map_err(Error::from))
    }

    /// Does the work of several accesses at once. A durable call makes and records them one by one.
    async fn unrecorded<T: Send + 'static>(
        &mut self,
        bucket: &Resource<Bucket>,
        act: Act,
        work: impl FnOnce(&Access, &str) -> std::result::Result<T, BucketError> + Send + 'static,
    ) -> Answer<T> {
        let name = self.table.get(bucket)?.name.clone();
        let Some(access) = self.state.access.clone() else { return Ok(Err(Error::AccessDenied)) };
        self.state.wrote |= act != Act::Read;
        let done = self.usage.blocking.run(ACCESS, move || work(&access, &name)).await?;
        Ok(done.map_err(Error::from))
    }

    /// Does `work` with a bucket, or denies it. A durable call does it once, in one of its runs. The grant may change between two
    /// runs, so the journal comes first, and a denial is recorded as well.
    async fn access<T: Recorded>(
        &mut self,
        bucket: String,
        Asked(act, function, arguments): Asked<'_>,
        work: impl FnOnce(&Access, &str) -> std::result::Result<T, BucketError> + Send + 'static,
    ) -> Result<std::result::Result<T, BucketError>> {
        let access = self.state.access.clone().ok_or(BucketError::Denied);
        // Set before the write: a write whose end nobody waits for may still happen.
        self.state.wrote |= act != Act::Read && access.is_ok();
        let Some(journal) = self.state.journal.clone() else {
            return match access {
                Ok(access) => Ok(self.usage.blocking.run(ACCESS, move || work(&access, &bucket)).await?),
                Err(denied) => Ok(Err(denied)),
            };
        };
        let arguments = [&[bucket.as_bytes()][..], arguments].concat();
        let call = HostCall::new(format!("key-value {function}"), &format!("wasi:keyvalue.{function}"), &arguments);
        if let Some(result) = recorded::recorded(&journal, &call)? {
            if let (Act::Write(bytes), Ok(access), Ok(_)) = (act, &access, &result) {
                access.writes.repeat(bucket.len() + bytes);
            }
            return Ok(result);
        }
        let access = match access {
            Ok(access) => access,
            Err(denied) => {
                recorded::record::<T>(&journal, &call, &Err(denied.clone()))?;
                return Ok(Err(denied));
            }
        };
        if act == Act::Read {
            let result = self.usage.blocking.run(ACCESS, move || work(&access, &bucket)).await?;
            recorded::record(&journal, &call, &result)?;
            return Ok(result);
        }
        let committing = Arc::new(Committing::new::<T>(journal.clone(), call.clone()));
        let buckets = access.buckets.committed_by(committing.clone());
        let buckets = buckets.ok_or_else(|| Stop::Fault("the store keeps no journals".to_owned()))?;
        let access = Access { buckets, ..access };
        let result = self.usage.blocking.run(ACCESS, move || work(&access, &bucket)).await?;
        match committing.done() {
            Some(committed) => committed?,
            None => recorded::record(&journal, &call, &result)?,
        }
        Ok(result)
    }
}

/// The host's work, in the message for an access that takes too long.
const ACCESS: &str = "reach its key-value data";

impl store::Host for View<'_, State> {
    async fn open(&mut self, name: String) -> Answer<Resource<Bucket>> {
        // A durable call may have had access here in an earlier run. Each of its accesses is denied instead.
        if self.state.access.is_none() && self.state.journal.is_none() {
            return Ok(Err(Error::AccessDenied));
        }
        if !is_bucket_name(&name) {
            return Ok(Err(Error::NoSuchStore));
        }
        let _charge = self.usage.memory.charge(HANDLE + name.len())?;
        Ok(Ok(self.table.push(Bucket { name, _charge })?))
    }
}

impl store::HostBucket for View<'_, State> {
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        let asked = key.clone();
        let asked = &[asked.as_bytes()];
        let get = move |access: &Access, name: &str| access.get(name, &key);
        let value = self.with_bucket(&bucket, Asked(Act::Read, "get", asked), get).await?;
        if let Ok(Some(value)) = &value {
            self.usage.bytes.count_in(value.len());
        }
        Ok(value)
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        self.usage.bytes.count_out(key.len() + value.len());
        let (key_asked, value_asked) = (key.clone(), Digest::of(&value));
        let asked = &[key_asked.as_bytes(), value_asked.as_bytes().as_slice()];
        let bytes = key.len() + value.len();
        let set = move |access: &Access, name: &str| access.set(name, &key, &value);
        self.with_bucket(&bucket, Asked(Act::Write(bytes), "set", asked), set).await
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        let asked = key.clone();
        let delete = move |access: &Access, name: &str| access.delete(name, &key);
        self.with_bucket(&bucket, Asked(Act::Write(asked.len()), "delete", &[asked.as_bytes()]), delete).await
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        let asked = key.clone();
        let look = move |access: &Access, name: &str| access.get(name, &key).map(|value| value.is_some());
        self.with_bucket(&bucket, Asked(Act::Read, "exists", &[asked.as_bytes()]), look).await
    }

    /// The cursor is the last key of the previous page. A guest may make one up: it selects among the plugin's own
    /// keys.
    async fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<String>) -> Answer<KeyResponse> {
        // The largest possible page, charged before it is built.
        let _charge = self.usage.memory.charge(MAX_KEYS * MAX_KEY)?;
        let asked = cursor.clone();
        let asked: Vec<&[u8]> = asked.iter().map(String::as_bytes).collect();
        let list = move |access: &Access, name: &str| access.list(name, cursor.as_deref());
        let listed = self.with_bucket(&bucket, Asked(Act::Read, "list", &asked), list).await?;
        Ok(listed.map(|(keys, more)| {
            self.usage.bytes.count_in(keys.iter().map(String::len).sum());
            let cursor = if more { keys.last().cloned() } else { None };
            KeyResponse { keys, cursor }
        }))
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for View<'_, State> {
    async fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: i64) -> Answer<i64> {
        let asked = key.clone();
        let increment = move |access: &Access, name: &str| access.increment(name, &key, delta);
        let (bytes, asked) = (asked.len() + MAX_NUMBER, &[asked.as_bytes(), &delta.to_be_bytes()]);
        self.with_bucket(&bucket, Asked(Act::Write(bytes), "increment", asked), increment).await
    }

    async fn swap(&mut self, cas: Resource<Cas>, value: Vec<u8>) -> Result<std::result::Result<(), atomics::CasError>> {
        let Cas { bucket, key, seen, _charge } = self.table.delete(cas)?;
        self.usage.bytes.count_out(key.len() + value.len());
        let (key_asked, value_asked) = (key.clone(), Digest::of(&value));
        let seen_asked = seen.as_ref().map(Digest::of);
        let mut asked = vec![key_asked.as_bytes(), value_asked.as_bytes().as_slice()];
        asked.extend(seen_asked.as_ref().map(|seen| seen.as_bytes().as_slice()));
        let (of_swap, bytes) = (key.clone(), key.len() + value.len());
        let swap = move |access: &Access, name: &str| access.swap(name, &of_swap, seen.as_deref(), &value);
        let swapped = self.access(bucket.clone(), Asked(Act::Write(bytes), "swap", &asked), swap).await?;
        match swapped {
            Ok(Swapped::Done) => Ok(Ok(())),
            Ok(Swapped::Stale(seen)) => {
                let renewed = Cas::new(&self.usage.memory, bucket, key, seen)?;
                Ok(Err(atomics::CasError::CasFailed(self.table.push(renewed)?)))
            }
            Err(error) => Ok(Err(atomics::CasError::StoreError(error.into()))),
        }
    }
}

impl atomics::HostCas for View<'_, State> {
    async fn new(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Resource<Cas>> {
        let name = self.table.get(&bucket)?.name.clone();
        let of_get = key.clone();
        let get = move |access: &Access, name: &str| access.get(name, &of_get);
        match self.with_bucket(&bucket, Asked(Act::Read, "cas", &[key.as_bytes()]), get).await? {
            Ok(seen) => {
                let begun = Cas::new(&self.usage.memory, name, key.clone(), seen)?;
                Ok(Ok(self.table.push(begun)?))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn current(&mut self, cas: Resource<Cas>) -> Answer<Option<Vec<u8>>> {
        let seen = self.table.get(&cas)?.seen.clone();
        self.usage.bytes.count_in(seen.as_ref().map_or(0, Vec::len));
        Ok(Ok(seen))
    }

    async fn drop(&mut self, cas: Resource<Cas>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl batch::Host for View<'_, State> {
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Answer<Vec<Option<(String, Vec<u8>)>>> {
        check_batch(keys.len())?;
        // Grows with each value that is read, and is kept until the answer is complete.
        let mut charge = self.usage.memory.nothing();
        if self.state.journal.is_some() {
            let mut pairs = Vec::with_capacity(keys.len());
            for key in keys {
                let value = match self.get(Resource::new_borrow(bucket.rep()), key.clone()).await? {
                    Ok(value) => value,
                    Err(error) => return Ok(Err(error)),
                };
                charge.grow(value.as_ref().map_or(0, Vec::len))?;
                pairs.push(value.map(|value| (key, value)));
            }
            return Ok(Ok(pairs));
        }
        let get = move |access: &Access, name: &str| {
            let mut pairs = Vec::with_capacity(keys.len());
            for key in keys {
                let value = access.get(name, &key)?;
                if let Err(stop) = charge.grow(value.as_ref().map_or(0, Vec::len)) {
                    return Ok(Err(stop));
                }
                pairs.push(value.map(|value| (key, value)));
            }
            Ok(Ok((pairs, charge)))
        };
        match self.unrecorded(&bucket, Act::Read, get).await? {
            Ok(answer) => {
                let (pairs, _charge) = answer?;
                self.usage.bytes.count_in(pairs.iter().flatten().map(|(key, value)| key.len() + value.len()).sum());
                Ok(Ok(pairs))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Entries before a refused one stay set, as the interface says.
    async fn set_many(&mut self, bucket: Resource<Bucket>, entries: Vec<(String, Vec<u8>)>) -> Answer<()> {
        check_batch(entries.len())?;
        if self.state.journal.is_some() {
            for (key, value) in entries {
                if let Err(error) = self.set(Resource::new_borrow(bucket.rep()), key, value).await? {
                    return Ok(Err(error));
                }
            }
            return Ok(Ok(()));
        }
        self.usage.bytes.count_out(entries.iter().map(|(key, value)| key.len() + value.len()).sum());
        let set =
            move |access: &Access, name: &str| entries.iter().try_for_each(|(key, value)| access.set(name, key, value));
        self.unrecorded(&bucket, Act::Write(0), set).await
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<()> {
        check_batch(keys.len())?;
        if self.state.journal.is_some() {
            for key in keys {
                if let Err(error) = self.delete(Resource::new_borrow(bucket.rep()), key).await? {
                    return Ok(Err(error));
                }
            }
            return Ok(Ok(()));
        }
        let delete = move |access: &Access, name: &str| keys.iter().try_for_each(|key| access.delete(name, key));
        self.unrecorded(&bucket, Act::Write(0), delete).await
    }
}

/// Bounds the keys of one host call, which the epoch cannot interrupt.
fn check_batch(keys: usize) -> Result<()> {
    if keys > MAX_KEYS {
        return Err(Stop::FixedLimit(format!("named {keys} keys in one batch, at most {MAX_KEYS} are allowed")).into());
    }
    Ok(())
}
