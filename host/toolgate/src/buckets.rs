//! Stores the `wasi:keyvalue` data of plugins in the host's store.

use std::sync::Arc;

use capabilities::keyvalue::{BucketError, Buckets, CommitWrite, EntryKey, KeyValueQuota, Swapped};
use dispatch::ports::StoreFault;
use domain::PluginName;
use domain::journal::ValueChange;
use store::{CommitValue, KeyValue, KeyValueError};

/// Each plugin has its own namespace.
pub(crate) struct StoredBuckets(pub(crate) KeyValue);

impl Buckets for StoredBuckets {
    fn committed_by(&self, by: Arc<dyn CommitWrite>) -> Option<Arc<dyn Buckets>> {
        Some(Arc::new(Self(self.0.committed_by(Arc::new(Commits(by))))))
    }

    fn get(&self, place: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        self.0.get(place.plugin.as_str(), place.bucket, place.key.as_bytes()).map_err(error)
    }

    fn set(&self, place: EntryKey<'_>, value: &[u8], quota: KeyValueQuota) -> Result<(), BucketError> {
        self.0.set(place.plugin.as_str(), place.bucket, place.key.as_bytes(), value, stored(quota)).map_err(error)
    }

    fn delete(&self, place: EntryKey<'_>) -> Result<(), BucketError> {
        self.0.delete(place.plugin.as_str(), place.bucket, place.key.as_bytes()).map_err(error)
    }

    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError> {
        let mut keys = Vec::new();
        let mut cursor = after.map(|after| after.as_bytes().to_vec());
        // One page of the store may be shorter than the limit. The last page has no cursor.
        while keys.len() < limit {
            let page =
                self.0.list(plugin.as_str(), bucket, b"", cursor.as_deref(), limit - keys.len()).map_err(error)?;
            for key in page.keys {
                keys.push(
                    String::from_utf8(key).map_err(|key| BucketError::Fault(format!("a key is damaged: {key}")))?,
                );
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(keys)
    }

    fn compare_and_swap(
        &self,
        place: EntryKey<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<Swapped, BucketError> {
        let (plugin, key) = (place.plugin.as_str(), place.key.as_bytes());
        let swapped = self.0.compare_and_swap(plugin, place.bucket, key, seen, Some(value), stored(quota));
        Ok(match swapped.map_err(error)? {
            Ok(()) => Swapped::Done,
            Err(now) => Swapped::Stale(now),
        })
    }
}

/// Makes the writes of the store.
struct Commits(Arc<dyn CommitWrite>);

impl CommitValue for Commits {
    fn commit(&self, change: ValueChange) -> Result<bool, StoreFault> {
        self.0.commit(change).map_err(|error| StoreFault::of_program("commit a value", error.to_string()))
    }
}

fn stored(quota: KeyValueQuota) -> store::NamespaceQuota {
    store::NamespaceQuota { bytes: quota.bytes, keys: quota.keys }
}

fn error(error: KeyValueError) -> BucketError {
    match error {
        KeyValueError::TooLarge { .. } | KeyValueError::Full { .. } => BucketError::Refused(error.to_string()),
        KeyValueError::Fault(StoreFault { attempted, reason, .. }) => {
            BucketError::Fault(format!("{attempted}: {reason}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_the_asked_length_and_one_plugin() {
        let buckets = StoredBuckets(KeyValue::in_memory());
        let [one, two] = ["one", "two"].map(|name| PluginName::new(name).expect("a name"));
        for number in 0..2_500 {
            let key = format!("{number:04}");
            buckets
                .set(EntryKey { plugin: &one, bucket: "b", key: &key }, b"x", KeyValueQuota::default())
                .expect("a write");
        }
        let all = buckets.list(&one, "b", None, 5_000).expect("a listing");
        assert_eq!((all.len(), all[2_499].as_str()), (2_500, "2499"));
        assert_eq!(buckets.list(&one, "b", Some("0009"), 2).expect("a listing"), ["0010", "0011"]);
        assert!(buckets.list(&two, "b", None, 10).expect("a listing").is_empty());
    }

    #[test]
    fn a_late_swap_returns_the_current_value() {
        let buckets = StoredBuckets(KeyValue::in_memory());
        let plugin = PluginName::new("p").expect("a name");
        let place = EntryKey { plugin: &plugin, bucket: "b", key: "k" };
        assert_eq!(buckets.compare_and_swap(place, None, b"1", KeyValueQuota::default()), Ok(Swapped::Done));
        assert_eq!(
            buckets.compare_and_swap(place, None, b"2", KeyValueQuota::default()),
            Ok(Swapped::Stale(Some(b"1".to_vec())))
        );
        assert_eq!(buckets.increment(place, 41, KeyValueQuota::default()), Ok(42));
    }
}
