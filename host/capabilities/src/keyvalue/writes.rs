//! Limits on the bytes that calls write in passing. Data that is overwritten takes no room in the quota, but each write
//! costs the disk.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::PluginName;
use domain::rate::{Rate, Spent};

use super::BucketError;
use crate::interface::{NewCall, Now};

/// The cost of a write or a deletion in bytes, besides its names and its value.
const WRITE: usize = 128;

/// The recent writes of every plugin: one entry for each that has written since the start.
#[derive(Default)]
pub(super) struct Writes(Mutex<BTreeMap<PluginName, Arc<Mutex<Spent>>>>);

impl Writes {
    /// The writes of one more call.
    pub(super) fn of(&self, plugin: &PluginName, NewCall { limits, now, .. }: &NewCall<'_>) -> CallWrites {
        let mut plugins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = plugins.entry(plugin.clone()).or_default();
        let (max, per_second) = (limits.keyvalue_written as u64, limits.keyvalue_rate as u64);
        CallWrites {
            left: Arc::new(AtomicU64::new(max)),
            max,
            plugin: Arc::clone(spent),
            // A call that begins after a pause may write as much as a call may.
            rate: Rate { per_second, burst: max },
            now: Arc::clone(now),
        }
    }
}

/// The writes of one call.
#[derive(Clone)]
pub(super) struct CallWrites {
    left: Arc<AtomicU64>,
    max: u64,
    plugin: Arc<Mutex<Spent>>,
    rate: Rate,
    now: Now,
}

impl CallWrites {
    /// Counts a write whose names and value have `bytes` bytes.
    ///
    /// # Errors
    /// [`BucketError::Refused`]; the write must not happen.
    pub(super) fn count(&self, bytes: usize) -> Result<(), BucketError> {
        let bytes = cost(bytes);
        let take = |left: u64| left.checked_sub(bytes);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(BucketError::Refused(format!(
                "with this write, the call would write more than {} bytes; a write counts as its names, its value and \
                 {WRITE} bytes (limit `limits.keyvalue_written_bytes`)",
                self.max
            )));
        }
        let spent = self.plugin.lock().unwrap_or_else(PoisonError::into_inner).spend(bytes, self.rate, (self.now)());
        spent.map_err(|wait| {
            self.left.fetch_add(bytes, Ordering::Relaxed);
            BucketError::Refused(format!(
                "the calls of this plugin write more than {} bytes per second (limit `limits.keyvalue_bytes_per_second`); \
                 write again in {} ms",
                self.rate.per_second,
                wait.millis()
            ))
        })
    }

    /// Counts a write of an earlier run.
    pub(super) fn repeat(&self, bytes: usize) {
        let take = |left: u64| Some(left.saturating_sub(cost(bytes)));
        // It never fails.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    }

    /// A counted write did not happen.
    pub(super) fn give_back(&self, bytes: usize) {
        self.left.fetch_add(cost(bytes), Ordering::Relaxed);
    }
}

/// The cost of a write. `bytes` is the size of its names and its value.
const fn cost(bytes: usize) -> u64 {
    (bytes + WRITE) as u64
}

#[cfg(test)]
mod tests {
    use domain::{Limits, Timestamp};

    use super::*;
    use crate::Usage;
    use crate::blocking::Permits;
    use crate::interface::AuthorLog;

    struct Silent;

    impl AuthorLog for Silent {
        fn warn(&self, _: &str) {}
    }

    #[test]
    fn refused_writes_name_their_limit_and_cost_nothing() {
        let writes = Writes::default();
        let plugin = PluginName::new("p").expect("a name");
        let limits = Limits { keyvalue_written: 1_000, keyvalue_rate: 100, ..Limits::default() };
        let refused = |call: &CallWrites, bytes: usize| call.count(bytes).expect_err("too much").to_string();
        let (now, usage): (Now, _) =
            (Arc::new(|| Timestamp::from_millis(0)), Usage::new(&Permits::new(1), None, &limits, Arc::new(())));
        let call = NewCall { limits: &limits, usage: &usage, now: &now, log: Arc::new(Silent), journal: None };
        let first = writes.of(&plugin, &call);
        assert!(refused(&first, 1_000 - WRITE + 1).contains("more than 1000 bytes"));
        first.count(600 - WRITE).expect("there is room");
        assert!(refused(&first, 401 - WRITE).contains("`limits.keyvalue_written_bytes`"));
        // A write that did not happen counts for the plugin only.
        first.give_back(600 - WRITE);
        assert!(refused(&first, 401 - WRITE).contains("`limits.keyvalue_bytes_per_second`"));
        // One of an earlier run counts for the call only.
        let repeated = writes.of(&plugin, &call);
        repeated.repeat(700 - WRITE);
        assert!(refused(&repeated, 301 - WRITE).contains("`limits.keyvalue_written_bytes`"));
        repeated.repeat(1_000);
        assert!(refused(&repeated, 0).contains("`limits.keyvalue_written_bytes`"));
        let second = writes.of(&plugin, &call);
        assert!(
            refused(&second, 500 - WRITE)
                .ends_with("(limit `limits.keyvalue_bytes_per_second`); write again in 1000 ms")
        );
        second.count(400 - WRITE).expect("what is left of the burst");
        // A refused write has taken nothing from the call.
        assert!(refused(&second, 600 - WRITE).contains("`limits.keyvalue_bytes_per_second`"));
        assert!(refused(&second, 601 - WRITE).contains("`limits.keyvalue_written_bytes`"));
    }
}
