//! Work for a guest that may have to wait for a disk: on threads of its own, and no longer than a host function may take.
//!
//! A guest that waits in a host function is out of reach of the epoch, and if the function kept the guest's thread, the
//! thread's other guests would wait with it. So what may block goes to the runtime's threads for that, and the call ends if
//! it does not come back in time. The work itself cannot be stopped: it goes on until the disk answers, holds its place
//! until then, and what it was to write may yet be written. Work that has not begun is withdrawn.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use domain::{PluginName, Span};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::ending::Stop;

/// How much may wait for a disk at once, of all calls together. Fewer than the runtime has threads for it (512), so that a
/// store that is stuck leaves some for what goes to other disks.
pub(crate) const PLACES: usize = 64;

/// How much of one plugin may wait for a disk at once, so that one whose disk is stuck holds up its own calls.
const PLACES_OF_A_PLUGIN: usize = 8;

/// Files and folders that the guests of one plugin may have open at once.
const FILES_OF_A_PLUGIN: usize = 128;

/// The places of what may wait for a disk and of what is open, of all plugins.
pub(crate) struct Places {
    waiting: Arc<Semaphore>,
    open: Arc<Semaphore>,
    /// For each plugin that uses any now, its share.
    shares: Mutex<BTreeMap<PluginName, Weak<Share>>>,
}

impl Places {
    /// With so many files open at once at most.
    pub(crate) fn new(files: usize) -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(PLACES)),
            open: Arc::new(Semaphore::new(files)),
            shares: Mutex::default(),
        }
    }

    /// The share of a plugin; without a name, one for a single call.
    pub(crate) fn share(&self, plugin: Option<&PluginName>) -> Arc<Share> {
        let make = || {
            Arc::new(Share {
                waiting: [Arc::new(Semaphore::new(PLACES_OF_A_PLUGIN)), Arc::clone(&self.waiting)],
                open: [Arc::new(Semaphore::new(FILES_OF_A_PLUGIN)), Arc::clone(&self.open)],
            })
        };
        let Some(plugin) = plugin else { return make() };
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(plugin).and_then(Weak::upgrade) {
            return share;
        }
        let made = make();
        shares.retain(|_, share| share.strong_count() > 0);
        shares.insert(plugin.clone(), Arc::downgrade(&made));
        made
    }
}

/// What one plugin may have of the places: each semaphore is its own and the one of all plugins.
pub(crate) struct Share {
    waiting: [Arc<Semaphore>; 2],
    open: [Arc<Semaphore>; 2],
}

/// A place that is taken until this is dropped. It keeps the share, whose other places would be forgotten without it.
pub(crate) struct Place {
    _permits: [OwnedSemaphorePermit; 2],
    _share: Arc<Share>,
}

impl Share {
    /// Waits for a place to wait for a disk. One's own comes first: who waits for that must hold up nobody else.
    async fn wait(self: Arc<Self>) -> Result<Place, Stop> {
        let closed = |error: tokio::sync::AcquireError| Stop::Fault(error.to_string());
        let own = Arc::clone(&self.waiting[0]).acquire_owned().await.map_err(closed)?;
        let shared = Arc::clone(&self.waiting[1]).acquire_owned().await.map_err(closed)?;
        Ok(Place { _permits: [own, shared], _share: self })
    }

    /// A place for a file that is opened now, if there is one.
    pub(crate) fn open(self: Arc<Self>) -> Option<Place> {
        let own = Arc::clone(&self.open[0]).try_acquire_owned().ok()?;
        let shared = Arc::clone(&self.open[1]).try_acquire_owned().ok()?;
        Some(Place { _permits: [own, shared], _share: self })
    }
}

/// Runs the blocking work of one call.
#[derive(Clone)]
pub(crate) struct Blocking {
    share: Arc<Share>,
    most: Span,
}

impl Blocking {
    /// Work that takes at most so long, in these places.
    pub(crate) fn new(share: Arc<Share>, most: Span) -> Self {
        Self { share, most }
    }

    /// A place for a file that is opened now, if there is one.
    pub(crate) fn open(&self) -> Option<Place> {
        Arc::clone(&self.share).open()
    }

    /// Waits for `work`, which is called `what` in messages.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        self.timely(what, carry_out(Arc::clone(&self.share), work)).await?
    }

    /// Begins `work`, which goes on while nobody waits for it. Withdrawn when what this returns is dropped, if it has not begun.
    pub(crate) fn start<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Going<T> {
        Going(Withdrawn(tokio::spawn(carry_out(Arc::clone(&self.share), work))))
    }

    /// Does `work` for which nobody will ever wait, such as closing a file: some file systems take their time for that as well.
    pub(crate) fn aside(&self, work: impl FnOnce() + Send + 'static) {
        // Without a runtime the host is about to end, and what the work has is dropped here and now.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(carry_out(Arc::clone(&self.share), work)));
        }
    }

    /// Waits for a host function no longer than it may take.
    pub(crate) async fn timely<T>(&self, what: &str, done: impl Future<Output = T>) -> Result<T, Stop> {
        let most = self.most.millis();
        tokio::time::timeout(Duration::from_millis(most), done).await.map_err(|_| {
            Stop::Limit(format!("waited more than {most} ms for the host to {what} (limit `host_call_time`)"))
        })
    }
}

/// Does `work` in a place, which is free again when the work has returned, whoever still waits for it then.
async fn carry_out<T: Send + 'static>(share: Arc<Share>, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
    let place = share.wait().await?;
    let mut task = Withdrawn(spawn_blocking(move || {
        let _place = place;
        work()
    }));
    (&mut task.0).await.map_err(not_returned)
}

fn not_returned(error: tokio::task::JoinError) -> Stop {
    Stop::Fault(format!("a host function did not return: {error}"))
}

/// Work that was begun: what became of it.
pub(crate) struct Going<T>(Withdrawn<Result<T, Stop>>);

impl<T> Future for Going<T> {
    type Output = Result<T, Stop>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = ready!(Pin::new(&mut self.0.0).poll(cx));
        Poll::Ready(done.unwrap_or_else(|error| Err(not_returned(error))))
    }
}

/// A task that is withdrawn when nobody waits for it any more, if it has not begun.
struct Withdrawn<T>(JoinHandle<T>);

impl<T> Drop for Withdrawn<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_plugin_whose_disk_is_stuck_holds_up_its_own_calls() {
        let places = Places::new(1000);
        let [stuck, other] = ["stuck", "other"].map(|name| PluginName::new(name).expect("a name"));
        let wait = |plugin| places.share(Some(plugin)).wait().now_or_never().and_then(Result::ok);
        let waiting: Vec<_> = (0..100).filter_map(|_| wait(&stuck)).collect();
        assert_eq!(waiting.len(), PLACES_OF_A_PLUGIN);
        assert!(wait(&other).is_some());
        drop(waiting);
        assert!(wait(&stuck).is_some(), "what came back leaves its place");
        let many: Vec<_> = (0..10).map(|n| PluginName::new(&format!("plugin-{n}")).expect("a name")).collect();
        let waiting: Vec<_> = many.iter().flat_map(|plugin| (0..100).map_while(|_| wait(plugin))).collect();
        assert_eq!(waiting.len(), PLACES, "all plugins together");
    }

    #[test]
    fn files_that_are_open_are_counted_for_each_plugin_and_for_all() {
        let places = Places::new(FILES_OF_A_PLUGIN + 10);
        let [one, two] = ["one", "two"].map(|name| PluginName::new(name).expect("a name"));
        let open = |plugin| places.share(Some(plugin)).open();
        let of_one: Vec<_> = (0..1000).map_while(|_| open(&one)).collect();
        let of_two: Vec<_> = (0..1000).map_while(|_| open(&two)).collect();
        assert_eq!((of_one.len(), of_two.len()), (FILES_OF_A_PLUGIN, 10));
        drop(of_one);
        assert!(open(&two).is_some());
    }
}
