//! The port behind `wasi:keyvalue`: what keeps the buckets of plugins.

use std::sync::Arc;

use domain::PluginName;
use domain::journal::ValueChange;

use super::KeyValueQuota;

/// One entry of one bucket of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryKey<'a> {
    /// The owner. Only this name keeps the entries of plugins apart, so the stored key must be unique for all three fields.
    pub plugin: &'a PluginName,
    /// The bucket: 1 to 64 letters, digits, `_`, `-` and `.`.
    pub bucket: &'a str,
    /// The key: 1 to 1024 bytes, any characters.
    pub key: &'a str,
}

/// The result of a compare-and-swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    Done,
    /// Another access was faster; this is the value now.
    Stale(Option<Vec<u8>>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// Nothing is granted to the plugin.
    #[error("access denied")]
    Denied,
    /// The plugin's fault; the guest reads the reason.
    #[error("{0}")]
    Refused(String),
    /// The host's fault; the guest reads only that the access failed, and the log has the reason.
    #[error("{0}")]
    Fault(String),
}

/// Commits the writes of [`Buckets::committed_by`].
pub trait CommitWrite: Send + Sync {
    /// Commits the change that one write makes, on a thread that may block. Nobody else at this host writes to the plugin's
    /// buckets meanwhile. `false`: another host has replaced the old value, and nothing is committed.
    ///
    /// # Errors
    /// [`BucketError::Fault`]
    fn commit(&self, change: ValueChange) -> Result<bool, BucketError>;
}

/// Keeps the buckets of plugins. The methods are called on threads that may block; a method that takes longer than the limit
/// `host_call_time` ends the call that waits for it. Writes may become durable later: the call says that it wrote, and the
/// host makes its writes durable before it records the outcome.
///
/// The limits on written bytes are checked before. No write exceeds the plugin's quota, even if several run at
/// once; several hosts can exceed it by the writes that they make at the same time. A write that is not larger than the value it replaces always succeeds.
pub trait Buckets: Send + Sync {
    /// The same buckets, with writes that `by` makes. `None`: their writes cannot be committed with something else, so no
    /// durable call can use them.
    fn committed_by(&self, _by: Arc<dyn CommitWrite>) -> Option<Arc<dyn Buckets>> {
        None
    }

    /// The value, if there is one.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn get(&self, entry: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError>;

    /// Stores a value of at most 64 KiB.
    ///
    /// # Errors
    /// As [`BucketError`] says; a full quota is [`BucketError::Refused`].
    fn set(&self, entry: EntryKey<'_>, value: &[u8], quota: KeyValueQuota) -> Result<(), BucketError>;

    /// Removes a value, if there is one.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn delete(&self, entry: EntryKey<'_>) -> Result<(), BucketError>;

    /// At most `limit` keys after `after`, or from the first one, in ascending order of their bytes. Fewer than `limit` means
    /// that no more follow.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError>;

    /// Stores a value if the present one is still `seen`, as one atomic step.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn compare_and_swap(
        &self,
        entry: EntryKey<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<Swapped, BucketError>;

    /// Adds to a number as one atomic step and returns the sum. Numbers are decimal text, as in wasmtime's own implementation;
    /// an absent one is 0.
    ///
    /// # Errors
    /// As [`BucketError`] says; a value that is not a number, and a sum beyond 64 bits, are [`BucketError::Refused`].
    fn increment(&self, entry: EntryKey<'_>, delta: i64, quota: KeyValueQuota) -> Result<i64, BucketError> {
        let mut seen = self.get(entry)?;
        loop {
            let sum = add(seen.as_deref(), delta)?;
            match self.compare_and_swap(entry, seen.as_deref(), sum.to_string().as_bytes(), quota)? {
                Swapped::Done => return Ok(sum),
                // The faster access made progress, so this loop ends.
                Swapped::Stale(now) => seen = now,
            }
        }
    }
}

fn add(value: Option<&[u8]>, delta: i64) -> Result<i64, BucketError> {
    let Some(value) = value else { return Ok(delta) };
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
    let number = number.ok_or_else(|| BucketError::Refused("the value is not a whole number of 64 bits".into()))?;
    number.checked_add(delta).ok_or_else(|| BucketError::Refused("the sum does not fit into 64 bits".into()))
}
