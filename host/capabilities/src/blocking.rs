//! Work for a guest that may wait for a disk. It runs on separate threads, and no longer than a host function may take.
//!
//! The epoch cannot interrupt a guest that waits in a host function. If that function kept the guest's thread, the thread's
//! other guests would wait with it. So the work goes to the runtime's blocking threads, and the call ends if the work takes
//! too long. The work itself cannot be stopped: it keeps its permit until the disk answers, and its write may still happen.
//! Work that has not started is withdrawn.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use domain::{PluginName, Span};
use rustix::process::{Resource, getrlimit};
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::per_plugin::PerPlugin;
use crate::stop::Stop;

/// Tasks of all calls that may wait for a disk at once. The runtime has more threads (512), so that a store that hangs leaves
/// some for other disks.
const MAX_WAITING: usize = 64;

/// Tasks of one plugin that may wait for a disk at once. A plugin whose disk hangs delays its own calls only.
const MAX_WAITING_OF_PLUGIN: usize = 8;

/// Files and folders that the calls of one plugin may have open at once.
const MAX_OPEN_OF_PLUGIN: usize = 128;

/// The permits of all plugins: to wait for a disk, and to have a file open.
pub struct Permits {
    waiting: Arc<Semaphore>,
    open: Arc<Semaphore>,
    plugins: PerPlugin<PluginPermits>,
}

impl Permits {
    /// The permits of a process. All guests together may have a part of the files open that the process may: it needs others
    /// for its store and its connections.
    #[must_use]
    pub fn of_process() -> Self {
        let max_open = getrlimit(Resource::Nofile).current.map_or(u64::MAX, |limit| limit / 4);
        Self::new(usize::try_from(max_open).unwrap_or(usize::MAX).min(512))
    }

    #[must_use]
    pub fn new(max_open: usize) -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            open: Arc::new(Semaphore::new(max_open)),
            plugins: PerPlugin::default(),
        }
    }

    /// The permits of a plugin; without a name, those of a single call.
    pub(crate) fn of(&self, plugin: Option<&PluginName>) -> Arc<PluginPermits> {
        let make = || {
            Arc::new(PluginPermits {
                waiting: [Arc::new(Semaphore::new(MAX_WAITING_OF_PLUGIN)), Arc::clone(&self.waiting)],
                open: [Arc::new(Semaphore::new(MAX_OPEN_OF_PLUGIN)), Arc::clone(&self.open)],
            })
        };
        match plugin {
            Some(plugin) => self.plugins.of(plugin, make),
            None => make(),
        }
    }
}

/// The permits of one plugin. Each pair is the plugin's own semaphore and that of all plugins.
pub(crate) struct PluginPermits {
    waiting: [Arc<Semaphore>; 2],
    open: [Arc<Semaphore>; 2],
}

/// A permit until it is dropped. It keeps the plugin's permits, which would be counted from zero without it.
pub(crate) struct Permit {
    _permits: [OwnedSemaphorePermit; 2],
    _plugin: Arc<PluginPermits>,
}

impl PluginPermits {
    /// Waits for a permit to wait for a disk. The plugin's own comes first: a task that waits for it takes nothing from others.
    async fn wait(self: Arc<Self>) -> Result<Permit, Stop> {
        let closed = |error: AcquireError| Stop::Fault(error.to_string());
        let own = Arc::clone(&self.waiting[0]).acquire_owned().await.map_err(closed)?;
        let shared = Arc::clone(&self.waiting[1]).acquire_owned().await.map_err(closed)?;
        Ok(Permit { _permits: [own, shared], _plugin: self })
    }

    fn open(self: Arc<Self>) -> Option<Permit> {
        let own = Arc::clone(&self.open[0]).try_acquire_owned().ok()?;
        let shared = Arc::clone(&self.open[1]).try_acquire_owned().ok()?;
        Some(Permit { _permits: [own, shared], _plugin: self })
    }
}

/// Runs the blocking work of one call.
#[derive(Clone)]
pub struct Blocking {
    permits: Arc<PluginPermits>,
    max: Span,
}

impl Blocking {
    /// `max` is the time that one host function may take.
    #[must_use]
    pub(crate) fn new(permits: Arc<PluginPermits>, max: Span) -> Self {
        Self { permits, max }
    }

    /// A permit to open a file, if one is free.
    pub(crate) fn open(&self) -> Option<Permit> {
        Arc::clone(&self.permits).open()
    }

    /// Does `work` and waits for it. Messages call it `what`.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Stop> {
        self.timely(what, run_blocking(Arc::clone(&self.permits), work)).await?
    }

    /// Starts `work`, which goes on while nobody waits for it. Dropping the result withdraws work that has not started.
    pub(crate) fn start<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> StartedWork<T> {
        StartedWork(Withdrawn(tokio::spawn(run_blocking(Arc::clone(&self.permits), work))))
    }

    /// Does `work` whose end nobody waits for, such as closing a file: some file systems take their time for that as well.
    pub(crate) fn detach(&self, work: impl FnOnce() + Send + 'static) {
        // Without a runtime the host is about to end, and what the work owns is dropped here.
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.spawn(run_blocking(Arc::clone(&self.permits), work)));
        }
    }

    /// Waits for a host function, but no longer than it may take.
    pub(crate) async fn timely<T>(&self, what: &str, done: impl Future<Output = T>) -> Result<T, Stop> {
        let max = self.max.millis();
        tokio::time::timeout(Duration::from_millis(max), done).await.map_err(|_| Stop::Limit {
            what: format!("waited more than {max} ms for the host to {what}"),
            key: "host_call_ms",
        })
    }
}

/// Does `work` under a permit. The permit is free again when the work has returned, even if nobody waits for it any more.
async fn run_blocking<T: Send + 'static>(
    permits: Arc<PluginPermits>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Stop> {
    let permit = permits.wait().await?;
    let mut task = Withdrawn(spawn_blocking(move || {
        let _permit = permit;
        work()
    }));
    (&mut task.0).await.map_err(not_returned)
}

fn not_returned(error: tokio::task::JoinError) -> Stop {
    Stop::Fault(format!("a host function did not return: {error}"))
}

/// The result of work that was started.
pub(crate) struct StartedWork<T>(Withdrawn<Result<T, Stop>>);

impl<T> Future for StartedWork<T> {
    type Output = Result<T, Stop>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = ready!(Pin::new(&mut self.0.0).poll(cx));
        Poll::Ready(done.unwrap_or_else(|error| Err(not_returned(error))))
    }
}

/// A task that is withdrawn on drop, if it has not started.
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
    fn a_plugin_whose_disk_hangs_delays_only_its_own_calls() {
        let permits = Permits::new(1000);
        let [stuck, other] = ["stuck", "other"].map(|name| PluginName::new(name).expect("a name"));
        let wait = |plugin| permits.of(Some(plugin)).wait().now_or_never().and_then(Result::ok);
        let waiting: Vec<_> = (0..100).filter_map(|_| wait(&stuck)).collect();
        assert_eq!(waiting.len(), MAX_WAITING_OF_PLUGIN);
        assert!(wait(&other).is_some());
        drop(waiting);
        assert!(wait(&stuck).is_some(), "work that returned frees its permit");
        let many: Vec<_> = (0..10).map(|n| PluginName::new(&format!("plugin-{n}")).expect("a name")).collect();
        let waiting: Vec<_> = many.iter().flat_map(|plugin| (0..100).map_while(|_| wait(plugin))).collect();
        assert_eq!(waiting.len(), MAX_WAITING, "all plugins together");
    }

    #[test]
    fn open_files_are_counted_for_each_plugin_and_for_all() {
        let permits = Permits::new(MAX_OPEN_OF_PLUGIN + 10);
        let [one, two] = ["one", "two"].map(|name| PluginName::new(name).expect("a name"));
        let open = |plugin| permits.of(Some(plugin)).open();
        let of_one: Vec<_> = (0..1000).map_while(|_| open(&one)).collect();
        let of_two: Vec<_> = (0..1000).map_while(|_| open(&two)).collect();
        assert_eq!((of_one.len(), of_two.len()), (MAX_OPEN_OF_PLUGIN, 10));
        drop(of_one);
        assert!(open(&two).is_some());
    }
}
