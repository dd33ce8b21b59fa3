//! Permits for the running calls of one plugin, and the queue for them. Both are bounded, so that a plugin that
//! everybody calls uses no more of the host than its operator allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::{
    Limits, PluginName, Span,
    outcome::{Failure, FailureCode},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of one plugin.
pub(crate) struct Permits {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// For checks of large results.
    pub(crate) checking: Semaphore,
}

/// Counts a call as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Permits {
    /// Creates as many permits as the limits allow, and at least one.
    pub(crate) fn new(limits: &Limits) -> Self {
        let permits = limits.concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(permits));
        Self { free, waiting: AtomicUsize::new(0), checking: Semaphore::new(1) }
    }

    /// Takes a permit for a call that has begun. A full queue must not end it, so it waits as long as it takes.
    pub(crate) async fn take_without_limit(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        self.free.clone().acquire_owned().await.ok()
    }

    /// Takes a permit. If none is free, waits for one in the order of arrival, for at most this long and among at most
    /// `queue` others.
    ///
    /// # Errors
    /// The plugin is busy. The message names the exhausted limit.
    pub(crate) async fn take(
        &self,
        plugin: &PluginName,
        limits: &Limits,
        max_wait: Span,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let (max, queue, millis) = (limits.concurrency, limits.queue, max_wait.millis());
        let busy = |message| Failure::new(FailureCode::Busy, message);
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let _waiting = Waiting(&self.waiting);
        if before >= queue {
            return Err(busy(format!(
                "the plugin {plugin} already runs {max} calls (`concurrency`) and {queue} more wait (`queue`); nothing \
                 was carried out, try again later"
            )));
        }
        let waited = tokio::time::timeout(Duration::from_millis(millis), self.free.clone().acquire_owned()).await;
        waited.ok().and_then(Result::ok).ok_or_else(|| {
            busy(format!(
                "the plugin {plugin} already runs {max} calls (`concurrency`), and none of them ended within {millis} ms \
                 (`queue_ms`); nothing was carried out, try again later"
            ))
        })
    }
}
