//! Wakes the task that handles what is due, when something becomes due before that task planned to look again.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Span, Timestamp};
use tokio::sync::Notify;

/// The maximum time between two looks at what is due. The clock may be set, and another host may have written to a
/// shared store.
pub(crate) const MAX_SLEEP: Span = Span::from_secs(60);

#[derive(Default)]
pub(crate) struct Alarm {
    planned: AtomicU64,
    wake: Notify,
}

impl Alarm {
    /// Something is due at this time.
    pub(crate) fn no_later_than(&self, at: Timestamp) {
        if at.millis() < self.planned.load(Ordering::Acquire) {
            self.wake.notify_one();
        }
    }

    /// Sets when the next look is planned. Anything that is due before it wakes the task.
    pub(crate) fn plan(&self, next: Timestamp) {
        self.planned.store(next.millis(), Ordering::Release);
    }

    pub(crate) async fn rings(&self) {
        self.wake.notified().await;
    }
}
