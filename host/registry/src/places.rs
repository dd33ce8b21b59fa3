//! The places in which calls of one plugin run, and the queue before them: bounded in time and in number, so that a plugin
//! that everybody calls holds no more of the host than its operator allows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::{Failure, FailureCode, Limits, PluginName, Span};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The places of one plugin.
pub(crate) struct Places {
    free: Semaphore,
    waiting: AtomicUsize,
}

/// Counts a call as waiting, while this is held.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Places {
    /// As many as the limits say, and at least one.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { free: Semaphore::new(limits.concurrency.clamp(1, Semaphore::MAX_PERMITS)), waiting: AtomicUsize::new(0) }
    }

    /// A place, waited for among so many others and for so long as the operator allows. Those that wait take turns.
    ///
    /// # Errors
    /// That the plugin is busy, which way, and what to do about it.
    pub(crate) async fn take(
        &self,
        plugin: &PluginName,
        limits: &Limits,
        at_most: Span,
    ) -> Result<SemaphorePermit<'_>, Failure> {
        if let Ok(place) = self.free.try_acquire() {
            return Ok(place);
        }
        let (most, queue, millis) = (limits.concurrency, limits.queue, at_most.millis());
        let busy = |message| Failure::new(FailureCode::Busy, message);
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Waiting(&self.waiting);
        if before >= queue {
            return Err(busy(format!(
                "the plugin {plugin} already runs {most} calls (`concurrency`) and {queue} more wait (`queue`); nothing \
                 was carried out, try again later"
            )));
        }
        let waited = tokio::time::timeout(Duration::from_millis(millis), self.free.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or_else(|| {
            busy(format!(
                "the plugin {plugin} already runs {most} calls (`concurrency`), and none of them ended within {millis} ms \
                 (`queue_ms`); nothing was carried out, try again later"
            ))
        })
    }
}
