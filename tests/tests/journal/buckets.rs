//! The key-value data of plugins in stores of a test.

use std::sync::Arc;

use capabilities::keyvalue::{BucketError, Buckets, CommitWrite, EntryKey, KeyValueQuota, Swapped};
use dispatch::ports::StoreFault;
use domain::PluginName;
use domain::journal::ValueChange;
use store::{CommitValue, KeyValue, KeyValueError, NamespaceQuota};

type Values = dyn Fn(&PluginName) -> KeyValue + Send + Sync;

/// The buckets of each plugin, and what commits their writes.
pub(crate) struct StoreBuckets {
    values: Arc<Values>,
    by: Option<Arc<dyn CommitWrite>>,
}

impl StoreBuckets {
    /// Buckets in the data that this returns for a plugin.
    pub(crate) fn new(values: impl Fn(&PluginName) -> KeyValue + Send + Sync + 'static) -> Self {
        Self { values: Arc::new(values), by: None }
    }

    fn of(&self, plugin: &PluginName) -> KeyValue {
        let values = (self.values)(plugin);
        match &self.by {
            Some(by) => values.committed_by(Arc::new(Commits(by.clone()))),
            None => values,
        }
    }
}

struct Commits(Arc<dyn CommitWrite>);

impl CommitValue for Commits {
    fn commit(&self, change: ValueChange) -> Result<bool, StoreFault> {
        self.0.commit(change).map_err(|error| StoreFault::of_program("commit a value", error.to_string()))
    }
}

fn bounds(KeyValueQuota { bytes, keys }: KeyValueQuota) -> NamespaceQuota {
    NamespaceQuota { bytes, keys }
}

fn fault(error: impl ToString) -> BucketError {
    BucketError::Fault(error.to_string())
}

/// The error of a write. A full quota is the plugin's fault.
fn refused(error: KeyValueError) -> BucketError {
    match error {
        KeyValueError::Full { .. } => BucketError::Refused(error.to_string()),
        error => fault(error),
    }
}

impl Buckets for StoreBuckets {
    fn committed_by(&self, by: Arc<dyn CommitWrite>) -> Option<Arc<dyn Buckets>> {
        Some(Arc::new(Self { values: self.values.clone(), by: Some(by) }))
    }

    fn get(&self, EntryKey { plugin, bucket, key }: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        self.of(plugin).get(plugin.as_str(), bucket, key.as_bytes()).map_err(fault)
    }

    fn set(
        &self,
        EntryKey { plugin, bucket, key }: EntryKey<'_>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<(), BucketError> {
        self.of(plugin).set(plugin.as_str(), bucket, key.as_bytes(), value, bounds(quota)).map_err(refused)
    }

    fn delete(&self, EntryKey { plugin, bucket, key }: EntryKey<'_>) -> Result<(), BucketError> {
        self.of(plugin).delete(plugin.as_str(), bucket, key.as_bytes()).map_err(fault)
    }

    fn list(
        &self,
        plugin: &PluginName,
        bucket: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, BucketError> {
        let after = after.map(str::as_bytes);
        let keys = self.of(plugin).list(plugin.as_str(), bucket, b"", after, limit).map_err(fault)?.keys;
        keys.into_iter().map(|key| String::from_utf8(key).map_err(fault)).collect()
    }

    fn compare_and_swap(
        &self,
        EntryKey { plugin, bucket, key }: EntryKey<'_>,
        seen: Option<&[u8]>,
        value: &[u8],
        quota: KeyValueQuota,
    ) -> Result<Swapped, BucketError> {
        let (values, name) = (self.of(plugin), plugin.as_str());
        let swapped = values.compare_and_swap(name, bucket, key.as_bytes(), seen, Some(value), bounds(quota));
        Ok(swapped.map_err(refused)?.map_or_else(Swapped::Stale, |()| Swapped::Done))
    }
}
