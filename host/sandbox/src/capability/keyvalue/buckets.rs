//! What a host must offer to keep the buckets of plugins.

use domain::PluginName;

use super::Quota;

/// One entry of one bucket of one plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place<'a> {
    /// Whose it is. An implementation keeps plugins apart by this alone, so no two places may share a stored key.
    pub plugin: &'a PluginName,
    /// The bucket: 1 to 64 letters, digits, `_`, `-` and `.`.
    pub bucket: &'a str,
    /// The key: 1 to 1024 bytes, any characters.
    pub key: &'a str,
}

/// What became of a compare-and-swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swapped {
    /// The value was what was expected and is the new one now.
    Done,
    /// Somebody else was faster; this is the value now.
    Stale(Option<Vec<u8>>),
}

/// Why an access failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// The plugin's doing; the guest reads why.
    #[error("{0}")]
    Refused(String),
    /// Ours; the guest reads only that it failed, and the log has the rest.
    #[error("{0}")]
    Fault(String),
}

/// Keeps the buckets of plugins. Called from threads that may block; what takes longer than the limit `host_call_time` costs
/// the call that waits for it, and nobody else. Writes may become durable later: the call's [`End`](crate::End) says that it
/// wrote, and whoever records the outcome sees to it that they are on disk first.
///
/// A write is within the plugin's quota, exactly, however many come at once: an implementation keeps count. One that needs no
/// more room than what it replaces is always taken.
pub trait Buckets: Send + Sync {
    /// The value, if there is one.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn get(&self, place: Place<'_>) -> Result<Option<Vec<u8>>, BucketError>;

    /// Stores a value of at most 64 KiB.
    ///
    /// # Errors
    /// As [`BucketError`] says; a full quota is [`BucketError::Refused`].
    fn set(&self, place: Place<'_>, value: &[u8], quota: Quota) -> Result<(), BucketError>;

    /// Removes a value; nothing happens if there is none.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn delete(&self, place: Place<'_>) -> Result<(), BucketError>;

    /// Keys in ascending order of their bytes: those behind `after`, or the first ones, at most `limit`. Fewer than `limit`
    /// are the last ones.
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

    /// Stores a value if the present one is still `seen`, in one step that no other access can come between.
    ///
    /// # Errors
    /// As [`BucketError`] says.
    fn compare_and_swap(
        &self,
        place: Place<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: Quota,
    ) -> Result<Swapped, BucketError>;

    /// Adds to a number in one step and returns the sum. Numbers are kept as decimal text, as wasmtime's own
    /// implementation of the interface keeps them; an absent one is 0.
    ///
    /// # Errors
    /// As [`BucketError`] says; a value that is no number, and a sum beyond 64 bits, are [`BucketError::Refused`].
    fn increment(&self, place: Place<'_>, delta: i64, quota: Quota) -> Result<i64, BucketError> {
        let mut seen = self.get(place)?;
        loop {
            let sum = add(seen.as_deref(), delta)?;
            match self.compare_and_swap(place, seen.as_deref(), sum.to_string().as_bytes(), quota)? {
                Swapped::Done => return Ok(sum),
                // Whoever was faster has come further by that, so this ends.
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
