//! Buckets in memory, for tests and for hosts that keep nothing.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::PluginName;

use super::{BucketError, Buckets, Place, Swapped};

/// Buckets that are gone with the process.
#[derive(Debug)]
pub struct MemoryBuckets {
    entries: Mutex<BTreeMap<Key, Vec<u8>>>,
    most: usize,
}

type Key = (PluginName, String, String);

impl Default for MemoryBuckets {
    /// Room for 100,000 entries.
    fn default() -> Self {
        Self::with_room(100_000)
    }
}

impl MemoryBuckets {
    /// Room for so many entries of all plugins together.
    #[must_use]
    pub fn with_room(entries: usize) -> Self {
        Self { entries: Mutex::default(), most: entries }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<u8>>> {
        // Every change is a single insertion or removal, so a panic elsewhere leaves nothing half done.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, entries: &mut BTreeMap<Key, Vec<u8>>, key: Key, value: &[u8]) -> Result<(), BucketError> {
        if entries.len() >= self.most && !entries.contains_key(&key) {
            return Err(BucketError::Refused(format!("the store is full: it has room for {} entries", self.most)));
        }
        entries.insert(key, value.to_vec());
        Ok(())
    }
}

fn key(place: Place<'_>) -> Key {
    (place.plugin.clone(), place.bucket.to_owned(), place.key.to_owned())
}

impl Buckets for MemoryBuckets {
    fn get(&self, place: Place<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.entries().get(&key(place)).cloned())
    }

    fn set(&self, place: Place<'_>, value: &[u8]) -> Result<(), BucketError> {
        self.insert(&mut self.entries(), key(place), value)
    }

    fn delete(&self, place: Place<'_>) -> Result<(), BucketError> {
        self.entries().remove(&key(place));
        Ok(())
    }

    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError> {
        let from = (plugin.clone(), bucket.to_owned(), after.unwrap_or_default().to_owned());
        // Keys are never empty, so starting behind the empty one is starting at the first.
        let entries = self.entries();
        let mine = entries
            .range((Bound::Excluded(from), Bound::Unbounded))
            .take_while(|((owner, name, _), _)| owner == plugin && name == bucket);
        Ok(mine.take(limit).map(|((_, _, key), _)| key.clone()).collect())
    }

    fn compare_and_swap(&self, place: Place<'_>, seen: Option<&[u8]>, value: &[u8]) -> Result<Swapped, BucketError> {
        let mut entries = self.entries();
        let key = key(place);
        let now = entries.get(&key);
        if now.map(Vec::as_slice) != seen {
            return Ok(Swapped::Stale(now.cloned()));
        }
        self.insert(&mut entries, key, value)?;
        Ok(Swapped::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_buckets_are_kept_apart() {
        let buckets = MemoryBuckets::default();
        let (one, two) = (PluginName::new("one").expect("a name"), PluginName::new("two").expect("a name"));
        let at = |plugin, bucket, key| Place { plugin, bucket, key };
        buckets.set(at(&one, "default", "k"), b"1").expect("there is room");
        assert_eq!(buckets.get(at(&two, "default", "k")), Ok(None));
        assert_eq!(buckets.get(at(&one, "other", "k")), Ok(None));
        assert_eq!(buckets.list(&two, "default", None, 10), Ok(vec![]));
        assert_eq!(buckets.list(&one, "default", None, 10), Ok(vec!["k".to_owned()]));
        assert_eq!(buckets.list(&one, "default", Some("k"), 10), Ok(vec![]));
    }

    #[test]
    fn a_number_is_added_to_and_nothing_else_is() {
        let buckets = MemoryBuckets::with_room(2);
        let plugin = PluginName::new("one").expect("a name");
        let place = Place { plugin: &plugin, bucket: "default", key: "n" };
        assert_eq!(buckets.increment(place, 5), Ok(5));
        assert_eq!(buckets.increment(place, -7), Ok(-2));
        assert!(buckets.increment(place, i64::MIN).is_err());
        buckets.set(place, b"five").expect("there is room");
        assert!(buckets.increment(place, 1).is_err());
    }

    #[test]
    fn a_full_store_refuses_new_keys_and_takes_changes() {
        let buckets = MemoryBuckets::with_room(1);
        let plugin = PluginName::new("one").expect("a name");
        let place = |key| Place { plugin: &plugin, bucket: "default", key };
        assert_eq!(buckets.set(place("a"), b"1"), Ok(()));
        assert!(buckets.set(place("b"), b"1").is_err());
        assert_eq!(buckets.set(place("a"), b"2"), Ok(()));
        assert_eq!(buckets.compare_and_swap(place("a"), Some(b"1"), b"3"), Ok(Swapped::Stale(Some(b"2".to_vec()))));
        assert_eq!(buckets.compare_and_swap(place("a"), Some(b"2"), b"3"), Ok(Swapped::Done));
    }
}
