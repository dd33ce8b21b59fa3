//! The memory of all guests together.
//!
//! A call reserves what the largest call of its component has used so far, or all that it may use if none has ended. If
//! the budget has no room for that, the call waits. So a crowd of calls queues before it begins, and small guests do not
//! pay for the limit of large ones. A call that grows beyond its reservation takes more from the budget. If nothing is
//! left it ends `busy`, because it cannot wait without keeping what it has from others that wait as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, Notify};

/// The budget for the linear memories of all guests.
pub(crate) struct GuestMemory {
    max: usize,
    reserved: AtomicUsize,
    /// Notifies the first of the calls that wait.
    freed: Notify,
    /// The calls that wait, in the order of their arrival.
    queue: Mutex<()>,
}

impl GuestMemory {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, reserved: AtomicUsize::new(0), freed: Notify::new(), queue: Mutex::default() })
    }

    /// Waits for so many bytes, or for the whole budget if it is smaller.
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: usize) -> GuestShare {
        let bytes = bytes.min(self.max);
        let _first = self.queue.lock().await;
        // A share that is dropped before the wait leaves a notification.
        while !self.take(bytes) {
            self.freed.notified().await;
        }
        GuestShare { all: Arc::clone(self), reserved: bytes, used: 0 }
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |reserved: usize| reserved.checked_add(bytes).filter(|reserved| *reserved <= self.max);
        self.reserved.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
}

/// One guest's part of the budget. It is given back when this is dropped.
pub(crate) struct GuestShare {
    all: Arc<GuestMemory>,
    reserved: usize,
    used: usize,
}

impl GuestShare {
    /// Uses more memory: first the reservation, then the rest of the budget. Returns false if that has no room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let used = self.used.saturating_add(bytes);
        let more = used.saturating_sub(self.reserved);
        let fits = more == 0 || self.all.take(more);
        if fits {
            self.reserved += more;
            self.used = used;
        }
        fits
    }

    /// The bytes that all guests together may use.
    pub(crate) fn budget(&self) -> usize {
        self.all.max
    }
}

impl Drop for GuestShare {
    fn drop(&mut self) {
        self.all.reserved.fetch_sub(self.reserved, Ordering::AcqRel);
        self.all.freed.notify_one();
    }
}

/// The most memory that a call of one component has used.
pub(crate) struct Peak(AtomicUsize);

impl Default for Peak {
    fn default() -> Self {
        Self(AtomicUsize::new(Self::UNKNOWN))
    }
}

impl Peak {
    const UNKNOWN: usize = usize::MAX;

    /// The bytes that the next call will probably use, if it may use `limit`.
    pub(crate) fn expected(&self, limit: usize) -> usize {
        self.0.load(Ordering::Relaxed).min(limit)
    }

    /// Records the memory of a call that has ended.
    pub(crate) fn record(&self, used: usize) {
        let larger = |known: usize| (known == Self::UNKNOWN || known < used).then_some(used);
        // An error means that a call has used as much before.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, larger);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn shares_never_exceed_the_budget_and_wait_in_order() {
        let memory = GuestMemory::new(100);
        let now = |bytes| memory.reserve(bytes).now_or_never();
        let mut first = now(60).expect("there is room");
        assert!(first.grow(50) && first.grow(20), "ten bytes beyond its reservation");
        assert!(!first.grow(31), "nothing is left for that");
        assert!(first.grow(10) && now(21).is_none());
        let second = now(20).expect("exactly what is left");
        let mut large = Box::pin(memory.reserve(1_000));
        let mut small = Box::pin(memory.reserve(1));
        assert!((&mut large).now_or_never().is_none() && (&mut small).now_or_never().is_none());
        drop(second);
        assert!((&mut small).now_or_never().is_none(), "the larger one came first");
        assert!((&mut large).now_or_never().is_none(), "it needs the whole budget");
        drop(first);
        let whole = (&mut large).now_or_never().expect("everything is free");
        assert_eq!(memory.reserved.load(Ordering::Relaxed), 100);
        assert!((&mut small).now_or_never().is_none());
        drop(whole);
        assert!((&mut small).now_or_never().is_some());
    }

    #[test]
    fn a_call_that_leaves_the_queue_lets_others_pass() {
        let memory = GuestMemory::new(100);
        let held = memory.reserve(100).now_or_never();
        let mut left = Box::pin(memory.reserve(100));
        let mut waits = Box::pin(memory.reserve(100));
        assert!((&mut left).now_or_never().is_none() && (&mut waits).now_or_never().is_none());
        // The notification reaches a call that leaves.
        drop(held);
        drop(left);
        assert!((&mut waits).now_or_never().is_some());
    }

    #[test]
    fn a_component_reserves_the_most_that_its_calls_used() {
        let peak = Peak::default();
        assert_eq!(peak.expected(128), 128, "nothing is known");
        peak.record(0);
        assert_eq!(peak.expected(128), 0);
        peak.record(20);
        peak.record(10);
        assert_eq!((peak.expected(128), peak.expected(15)), (20, 15));
    }
}
