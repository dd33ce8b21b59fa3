//! Buckets in memory, for tests and for hosts without a store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::PluginName;
use domain::journal::ValueChange;

use super::{BucketError, Buckets, CommitWrite, EntryKey, KeyValueQuota, Swapped};

/// Buckets that end with the process.
#[derive(Default)]
pub struct MemoryBuckets {
    kept: Arc<Mutex<Kept>>,
    /// Commits each write before it is kept.
    by: Option<Arc<dyn CommitWrite>>,
}

impl fmt::Debug for MemoryBuckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBuckets").field("kept", &self.kept).finish_non_exhaustive()
    }
}

type Key = (PluginName, String, String);

#[derive(Debug, Default)]
struct Kept {
    entries: BTreeMap<Key, Vec<u8>>,
    /// The usage of each plugin's quota.
    used: BTreeMap<PluginName, KeyValueQuota>,
}

impl MemoryBuckets {
    /// The entries of a plugin, by bucket and key.
    #[must_use]
    pub fn entries(&self, plugin: &PluginName) -> BTreeMap<(String, String), Vec<u8>> {
        let kept = self.kept();
        let entries = kept.entries.iter().filter(|((owner, ..), _)| owner == plugin);
        entries.map(|((_, bucket, key), value)| ((bucket.clone(), key.clone()), value.clone())).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics between a change and its count, so a poisoned lock guards sound data.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: Key, value: Option<&[u8]>, quota: KeyValueQuota) -> Result<(), BucketError> {
        self.kept().put(key, value, quota, self.by.as_deref())
    }
}

impl Kept {
    fn put(
        &mut self,
        key: Key,
        value: Option<&[u8]>,
        quota: KeyValueQuota,
        by: Option<&dyn CommitWrite>,
    ) -> Result<(), BucketError> {
        let cost = |value: Option<&[u8]>| value.map_or(0, |value| (key.1.len() + key.2.len() + value.len()) as u64);
        let used = self.used.entry(key.0.clone()).or_insert(KeyValueQuota { bytes: 0, keys: 0 });
        let old = self.entries.get(&key);
        let bytes = used.bytes - cost(old.map(Vec::as_slice)) + cost(value);
        let keys = used.keys - u64::from(old.is_some()) + u64::from(value.is_some());
        let full = |would: u64, had: u64, may: u64| would > may && would > had;
        if full(bytes, used.bytes, quota.bytes) || full(keys, used.keys, quota.keys) {
            return Err(BucketError::Refused(format!(
                "no room: the plugin may keep {} bytes under {} keys (grant `keyvalue`)",
                quota.bytes, quota.keys
            )));
        }
        if let Some(by) = by {
            let (old, value) = (old.cloned(), value.map(<[u8]>::to_vec));
            if !by.commit(ValueChange { key: key.2.clone().into_bytes(), old, value })? {
                return Err(BucketError::Fault("another host has changed a value".to_owned()));
            }
        }
        *used = KeyValueQuota { bytes, keys };
        match value {
            Some(value) => self.entries.insert(key, value.to_vec()),
            None => self.entries.remove(&key),
        };
        Ok(())
    }
}

fn key(entry: EntryKey<'_>) -> Key {
    (entry.plugin.clone(), entry.bucket.to_owned(), entry.key.to_owned())
}

impl Buckets for MemoryBuckets {
    fn committed_by(&self, by: Arc<dyn CommitWrite>) -> Option<Arc<dyn Buckets>> {
        Some(Arc::new(Self { kept: Arc::clone(&self.kept), by: Some(by) }))
    }

    fn get(&self, entry: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.kept().entries.get(&key(entry)).cloned())
    }

    fn set(&self, entry: EntryKey<'_>, value: &[u8], quota: KeyValueQuota) -> Result<(), BucketError> {
        self.put(key(entry), Some(value), quota)
    }

    fn delete(&self, entry: EntryKey<'_>) -> Result<(), BucketError> {
        self.put(key(entry), None, KeyValueQuota { bytes: u64::MAX, keys: u64::MAX })
    }

    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError> {
        let from = (plugin.clone(), bucket.to_owned(), after.unwrap_or_default().to_owned());
        // No key is empty, so all keys come after the empty one.
        let kept = self.kept();
        let mine = kept
            .entries
            .range((Bound::Excluded(from), Bound::Unbounded))
            .take_while(|((owner, name, _), _)| owner == plugin && name == bucket);
        Ok(mine.take(limit).map(|((_, _, key), _)| key.clone()).collect())
    }

    fn compare_and_swap(
        &self,
        entry: EntryKey<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<Swapped, BucketError> {
        let mut kept = self.kept();
        let key = key(entry);
        let now = kept.entries.get(&key);
        if now.map(Vec::as_slice) != seen {
            return Ok(Swapped::Stale(now.cloned()));
        }
        kept.put(key, Some(value), quota, self.by.as_deref())?;
        Ok(Swapped::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: KeyValueQuota = KeyValueQuota { bytes: u64::MAX, keys: u64::MAX };

    #[test]
    fn plugins_and_buckets_are_kept_apart() {
        let buckets = MemoryBuckets::default();
        let (one, two) = (PluginName::new("one").expect("a name"), PluginName::new("two").expect("a name"));
        let at = |plugin, bucket, key| EntryKey { plugin, bucket, key };
        buckets.set(at(&one, "default", "k"), b"1", ANY).expect("there is room");
        assert_eq!(buckets.get(at(&two, "default", "k")), Ok(None));
        assert_eq!(buckets.get(at(&one, "other", "k")), Ok(None));
        assert_eq!(buckets.list(&two, "default", None, 10), Ok(vec![]));
        assert_eq!(buckets.list(&one, "default", None, 10), Ok(vec!["k".to_owned()]));
        assert_eq!(buckets.list(&one, "default", Some("k"), 10), Ok(vec![]));
    }

    #[test]
    fn only_numbers_can_be_incremented() {
        let buckets = MemoryBuckets::default();
        let plugin = PluginName::new("one").expect("a name");
        let entry = EntryKey { plugin: &plugin, bucket: "default", key: "n" };
        assert_eq!(buckets.increment(entry, 5, ANY), Ok(5));
        assert_eq!(buckets.increment(entry, -7, ANY), Ok(-2));
        assert!(buckets.increment(entry, i64::MIN, ANY).is_err());
        buckets.set(entry, b"five", ANY).expect("there is room");
        assert!(buckets.increment(entry, 1, ANY).is_err());
    }

    struct Refuses;

    impl CommitWrite for Refuses {
        fn commit(&self, change: ValueChange) -> Result<bool, BucketError> {
            if change.value.as_deref() == Some(b"no".as_slice()) {
                Err(BucketError::Fault("no".into()))
            } else {
                Ok(true)
            }
        }
    }

    #[test]
    fn refused_commit_changes_nothing() {
        let buckets = MemoryBuckets::default();
        let committed = buckets.committed_by(Arc::new(Refuses)).expect("it commits");
        let plugin = PluginName::new("one").expect("a name");
        let entry = EntryKey { plugin: &plugin, bucket: "default", key: "k" };
        assert_eq!(committed.set(entry, b"yes", ANY), Ok(()));
        assert!(committed.set(entry, b"no", ANY).is_err());
        assert_eq!(buckets.get(entry), Ok(Some(b"yes".to_vec())));
    }

    #[test]
    fn full_quota_refuses_new_keys_and_accepts_changes() {
        let buckets = MemoryBuckets::default();
        let (one, two) = (PluginName::new("one").expect("a name"), PluginName::new("two").expect("a name"));
        let entry = |key| EntryKey { plugin: &one, bucket: "b", key };
        let quota = KeyValueQuota { bytes: 4, keys: 1 };
        assert_eq!(buckets.set(entry("a"), b"1", quota), Ok(()));
        assert!(buckets.set(entry("b"), b"", quota).is_err());
        assert_eq!(buckets.set(EntryKey { plugin: &two, ..entry("b") }, b"1", quota), Ok(()));
        assert_eq!(buckets.set(entry("a"), b"12", quota), Ok(()));
        assert!(buckets.set(entry("a"), b"123", quota).is_err());
        assert_eq!(
            buckets.compare_and_swap(entry("a"), Some(b"1"), b"3", quota),
            Ok(Swapped::Stale(Some(b"12".to_vec())))
        );
        assert!(buckets.compare_and_swap(entry("a"), Some(b"12"), b"345", quota).is_err());
        assert_eq!(buckets.compare_and_swap(entry("a"), Some(b"12"), b"3", quota), Ok(Swapped::Done));
        assert_eq!(buckets.delete(entry("a")), Ok(()));
        assert_eq!(buckets.set(entry("b"), b"", quota), Ok(()));
        assert!(buckets.increment(entry("n"), 1, quota).is_err());
    }
}
