//! The instances of durable calls that wait. The next run of a call continues its instance, if the wait ends soon. An instance is
//! only a cache: without it, the next run repeats the code before the wait and comes to the same.
//!
//! An instance keeps its place in the pool. It is dropped when its time is over, when a call needs the place or the memory, when
//! the call ends, when its plugin changes, and when the host stops. All of them have at most half of the pool and of the guests'
//! memory. The plugin that keeps the most loses its oldest instance first. So a plugin that keeps many pushes out its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use domain::{Digest, Limits, PluginName};
use tokio::sync::oneshot;

use crate::instance::KeptInstance;
use crate::job::Job;
use crate::pool::Spare;

/// Counts of kept instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LingerCounts {
    /// The number that is kept now.
    pub now: usize,
    /// How many were kept since the start, how many of them a run continued, and how many were dropped.
    pub kept: u64,
    pub resumed: u64,
    pub dropped: u64,
}

/// The instances that are kept now.
pub(crate) struct Lingering {
    max_instances: usize,
    max_bytes: usize,
    state: Mutex<State>,
    kept: AtomicU64,
    resumed: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    next_id: u64,
    /// The oldest first.
    entries: Vec<Entry>,
}

struct Entry {
    id: u64,
    component: Digest,
    instance: KeptInstance,
    /// Ends the timer when the entry is removed. The timer drops an instance that it gets.
    timer: oneshot::Sender<KeptInstance>,
}

impl Entry {
    fn plugin(&self) -> &PluginName {
        &self.instance.job().plugin
    }

    fn is_of(&self, component: Digest, idempotency_key: &str) -> bool {
        self.component == component && *self.instance.job().idempotency_key == *idempotency_key
    }
}

impl Lingering {
    /// For a pool of this size.
    pub(crate) fn new(instances: usize, memory: usize) -> Self {
        Self {
            max_instances: instances / 2,
            max_bytes: memory / 2,
            state: Mutex::default(),
            kept: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Keeps an instance for this time. Must be called in a tokio runtime.
    pub(crate) fn keep(self: &Arc<Self>, component: Digest, instance: KeptInstance, time: Duration) {
        let (timer, removed) = oneshot::channel();
        self.kept.fetch_add(1, Ordering::Relaxed);
        let (id, dropped) = {
            let mut state = self.state();
            let id = state.next_id;
            state.next_id += 1;
            state.entries.push(Entry { id, component, instance, timer });
            let mut dropped = Vec::new();
            while state.exceeds(self) {
                dropped.extend(state.remove_one());
            }
            (id, dropped)
        };
        self.drop_all(dropped);
        // Made here, so that the instance is also dropped if the runtime takes no task any more.
        let expires = Expires { lingering: Arc::downgrade(self), id };
        tokio::spawn(async move {
            let _expires = expires;
            // Either the time is over, or the entry is removed.
            drop(tokio::time::timeout(time, removed).await);
        });
    }

    /// The instance that this run continues. One that it does not continue is dropped. `guest`: the memory that a new instance
    /// would reserve.
    pub(crate) fn take(&self, component: Digest, job: &Job, limits: &Limits, guest: usize) -> Option<KeptInstance> {
        let removed = self.remove(|entry| entry.is_of(component, &job.idempotency_key));
        let mut continued = None;
        for entry in removed {
            if entry.instance.is_continued_by(job, limits) && entry.instance.is_covered(job, guest) {
                self.resumed.fetch_add(1, Ordering::Relaxed);
                continued = Some(entry.instance);
            } else {
                self.drop_all([entry]);
            }
        }
        continued
    }

    /// Drops the instance of a call that has ended.
    pub(crate) fn release(&self, component: Digest, idempotency_key: &str) {
        self.drop_by_timer(self.remove(|entry| entry.is_of(component, idempotency_key)));
    }

    /// Drops the instances of the calls of a plugin.
    pub(crate) fn release_plugin(&self, plugin: &PluginName) {
        self.drop_by_timer(self.remove(|entry| entry.plugin() == plugin));
    }

    /// Drops all instances, and keeps no more.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.drop_all(self.remove(|_| true));
    }

    pub(crate) fn counts(&self) -> LingerCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (kept, resumed, dropped) = (count(&self.kept), count(&self.resumed), count(&self.dropped));
        LingerCounts { now: self.count(), kept, resumed, dropped }
    }

    fn remove(&self, is_removed: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.state().entries.extract_if(.., |entry| is_removed(entry)).collect()
    }

    /// Nothing of this is locked meanwhile, because the pool serves other calls.
    fn drop_all(&self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            drop(entry);
        }
    }

    /// The same on the threads of the guests, because returning much memory takes time.
    fn drop_by_timer(&self, entries: Vec<Entry>) {
        for Entry { instance, timer, .. } in entries {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            // Without the timer, it is dropped here.
            drop(timer.send(instance));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spare for Lingering {
    fn count(&self) -> usize {
        self.state().entries.len()
    }

    fn drop_one(&self) -> bool {
        let entry = self.state().remove_one();
        let is_dropped = entry.is_some();
        self.drop_all(entry);
        is_dropped
    }
}

impl State {
    fn exceeds(&self, Lingering { max_instances, max_bytes, .. }: &Lingering) -> bool {
        let bytes = self.entries.iter().fold(0, |sum: usize, entry| sum.saturating_add(entry.instance.held));
        let is_too_much = self.entries.len() > *max_instances || bytes > *max_bytes;
        !self.entries.is_empty() && (self.is_closed || is_too_much)
    }

    /// Removes the oldest entry of the plugin that keeps the most memory.
    fn remove_one(&mut self) -> Option<Entry> {
        let mut held = HashMap::<&PluginName, usize>::new();
        for entry in &self.entries {
            let sum = held.entry(entry.plugin()).or_default();
            *sum = sum.saturating_add(entry.instance.held);
        }
        let most = held.values().copied().max()?;
        let oldest = self.entries.iter().position(|entry| held.get(entry.plugin()) == Some(&most))?;
        Some(self.entries.remove(oldest))
    }
}

/// Drops an instance when its time is over, or when its runtime ends.
struct Expires {
    lingering: Weak<Lingering>,
    id: u64,
}

impl Drop for Expires {
    fn drop(&mut self) {
        if let Some(lingering) = self.lingering.upgrade() {
            lingering.drop_all(lingering.remove(|entry| entry.id == self.id));
        }
    }
}
