//! Work for a guest that may have to wait for a disk: on threads of its own, and no longer than a host function may take.
//!
//! A guest that waits in a host function is out of reach of the epoch, and if the function kept the guest's thread, the
//! thread's other guests would wait with it. So what may block goes to the runtime's threads for that, and the call ends if
//! it does not come back in time. The work itself cannot be stopped: it goes on until the disk answers, holds its place
//! until then, and what it was to write may yet be written. Work that has not begun is withdrawn.

use std::sync::Arc;
use std::time::Duration;

use domain::Span;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::ending::Stop;

/// How much may wait for a disk at once, of all calls together. Fewer than the runtime has threads for it (512), so that a
/// store that is stuck leaves some for what goes to other disks.
pub(crate) const PLACES: usize = 64;

/// Runs the blocking work of one call.
#[derive(Clone)]
pub(crate) struct Blocking {
    places: Arc<Semaphore>,
    most: Span,
}

impl Blocking {
    /// Work that takes at most so long, in these places.
    pub(crate) fn new(places: Arc<Semaphore>, most: Span) -> Self {
        Self { places, most }
    }

    /// Waits for `work`, which is called `what` in messages.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        let places = Arc::clone(&self.places);
        let done = async move {
            let place = places.acquire_owned().await.map_err(|error| Stop::Fault(error.to_string()))?;
            let mut task = Withdrawn(spawn_blocking(move || {
                let _place = place;
                work()
            }));
            (&mut task.0).await.map_err(|error| Stop::Fault(format!("a host function did not return: {error}")))
        };
        self.timely(what, done).await?
    }

    /// Waits for a host function no longer than it may take.
    pub(crate) async fn timely<T>(&self, what: &str, done: impl Future<Output = T>) -> Result<T, Stop> {
        let most = self.most.millis();
        tokio::time::timeout(Duration::from_millis(most), done).await.map_err(|_| {
            Stop::Limit(format!("waited more than {most} ms for the host to {what} (limit `host_call_time`)"))
        })
    }
}

/// A task that is withdrawn when nobody waits for it any more, if it has not begun.
struct Withdrawn<T>(JoinHandle<T>);

impl<T> Drop for Withdrawn<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
