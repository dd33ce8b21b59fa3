//! Reads of the database. They run in threads that may block, so that a slow disk delays no other request. A read that
//! takes too long fails. Its thread keeps its permit until it returns. A disk that hangs therefore holds only that many
//! threads.
//!
//! An ephemeral turn reads single entries, mostly from memory, which takes a microsecond. To wake another thread takes up to
//! fifty. So one such read at a time runs on a thread of the guests, where these turns run. A disk that hangs holds that
//! thread and the turn's task. The task that waits for the turn finds out with [`Reads::hangs`]. No thread that serves HTTP
//! reads.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use dispatch::ports::{FaultKind, StoreFault};
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;
use tokio::task;

use super::reader::Reader;
use super::watchdog::Watch;
use crate::StoreSettings;
use crate::fault::fault;

/// The largest number of reads at the same time. Others wait.
const MAX_READS: usize = 64;

/// The largest number of reads for commits at the same time.
const MAX_FOR_COMMITS: usize = 16;

/// The largest number of threads that read.
pub const MAX_READ_THREADS: usize = MAX_READS + MAX_FOR_COMMITS;

/// Reads in other threads, with a deadline.
pub(super) struct Reads {
    reader: Reader,
    permits: Arc<Semaphore>,
    for_commits: Arc<Semaphore>,
    /// The runtime whose threads may read single entries.
    runtime: Option<Id>,
    on_callers_thread: Semaphore,
    deadline: Duration,
    watch: Arc<Watch>,
    timed_out: AtomicU64,
}

impl Reads {
    pub(super) fn new(reader: Reader, settings: &StoreSettings, watch: Arc<Watch>) -> Self {
        let (permits, for_commits) = (Semaphore::new(MAX_READS).into(), Semaphore::new(MAX_FOR_COMMITS).into());
        let (on_callers_thread, timed_out) = (Semaphore::new(1), AtomicU64::new(0));
        let (runtime, deadline) = (settings.reading_runtime, settings.disk_deadline);
        Self { reader, permits, for_commits, runtime, on_callers_thread, deadline, watch, timed_out }
    }

    /// The number of reads that failed because they took too long.
    pub(super) fn timed_out(&self) -> u64 {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Why reads fail at present, if some wait for too long.
    pub(super) fn failure(&self) -> Option<StoreFault> {
        (self.watch.overdue() > 0).then(no_answer)
    }

    /// Reads for a request. It can be made again, so it has a deadline.
    pub(super) async fn run<T, E, R>(&self, read: impl FnOnce(Reader) -> R + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreFault> + Send + 'static,
        R: Future<Output = Result<T, E>>,
    {
        self.in_time(self.blocking(&self.permits, read)).await
    }

    /// As [`Reads::run`], for a read of single entries.
    pub(super) async fn entries<T, R>(&self, read: impl FnOnce(Reader) -> R + Send + 'static) -> Result<T, StoreFault>
    where
        T: Send + 'static,
        R: Future<Output = Result<T, StoreFault>> + Send,
    {
        let may_read = self.runtime == Some(Handle::current().id());
        let permit = self.on_callers_thread.try_acquire().ok().filter(|_| may_read);
        let Some(permit) = permit else { return self.run(read).await };
        let step = self.watch.begin_read();
        let mut reading = pin!(read(self.reader.clone()));
        let polled = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
        drop((permit, step));
        match polled {
            Poll::Ready(read) => read,
            // The entry was read. It was written by a commit that is not on disk yet.
            Poll::Pending => self.in_time(reading).await,
        }
    }

    async fn in_time<T, E: From<StoreFault>>(&self, reading: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::time::timeout(self.deadline, reading).await.unwrap_or_else(|_| Err(self.late().into()))
    }

    /// Waits until a read on the thread of this task has taken too long. Returns the fault that says so.
    pub(super) async fn hangs(&self, task: task::Id) -> StoreFault {
        self.watch.overdue_in(task).await;
        self.late()
    }

    /// The fault of a read that has taken too long.
    fn late(&self) -> StoreFault {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
        no_answer()
    }

    /// Reads for a commit, such as the result of a call, which must not be lost. It waits for no request, and as long as
    /// the disk needs.
    pub(super) async fn for_commit<T, E, R>(&self, read: impl FnOnce(Reader) -> R + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreFault> + Send + 'static,
        R: Future<Output = Result<T, E>>,
    {
        self.blocking(&self.for_commits, read).await
    }

    async fn blocking<T, E, R>(
        &self,
        permits: &Arc<Semaphore>,
        read: impl FnOnce(Reader) -> R + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreFault> + Send + 'static,
        R: Future<Output = Result<T, E>>,
    {
        let (reader, watch, runtime) = (self.reader.clone(), self.watch.clone(), Handle::current());
        let queued = watch.begin_queued();
        let permit = permits.clone().acquire_owned().await.map_err(fault("read what is stored"))?;
        drop(queued);
        let reading = task::spawn_blocking(move || {
            let (_permit, _step) = (permit, watch.begin_read());
            runtime.block_on(read(reader))
        });
        reading.await.map_err(fault("read what is stored"))?
    }
}

fn no_answer() -> StoreFault {
    let reason = "the disk does not answer in time".to_owned();
    StoreFault { kind: FaultKind::NoAnswer, attempted: "read what is stored", reason }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::thread;

    use dispatch::ports::Position;
    use tokio::sync::watch;

    use super::*;
    use crate::sled::blobs::Blobs;
    use crate::sled::database_file::Syncs;
    use crate::sled::durable::Durable;
    use crate::sled::set_aside::SetAside;
    use crate::sled::tree::Tree;
    use crate::sled::watchdog::TICKS;

    /// Reads of an empty store with an endless deadline.
    fn reads(folder: &Path, watch: &Arc<Watch>) -> Reads {
        let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
        let reader = Reader {
            tree: Tree::new((*db).clone()),
            blobs: Blobs::open(folder.join("blobs"), Syncs::default()).unwrap(),
            durable: watch::channel(Durable::Until(Position(0))).1,
            recoveries: Arc::default(),
            set_aside: SetAside::default(),
        };
        let (disk_deadline, reading_runtime) = (Duration::from_secs(3600), Some(Handle::current().id()));
        let settings = StoreSettings { disk_deadline, reading_runtime, ..StoreSettings::default() };
        Reads::new(reader, &settings, watch.clone())
    }

    async fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
        poll_fn(|cx| Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn disk_that_hangs_holds_one_thread_of_the_callers() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::<Watch>::default());
        let reads = Arc::new(reads(folder.path(), &watch));
        let here = thread::current().id();
        let on = async |reads: &Reads| reads.entries(async |_| Ok(thread::current().id())).await.unwrap();
        assert_eq!(on(&reads).await, here);
        let ((begun, begins), (end, ends)) = (tokio::sync::oneshot::channel(), mpsc::channel::<()>());
        let hanging = reads.clone();
        let hangs = tokio::spawn(async move {
            let read = hanging.entries(async move |_| {
                begun.send(()).unwrap();
                let _ = ends.recv();
                Ok(())
            });
            read.await.unwrap();
        });
        begins.await.unwrap();
        assert_ne!(on(&reads).await, here, "a read hangs on the thread of its caller");
        let mut late = Box::pin(reads.hangs(hangs.id()));
        let mut another = Box::pin(reads.hangs(tokio::spawn(async {}).id()));
        assert!(is_pending(&mut late).await, "its time has just begun");
        for _ in 0..=TICKS {
            watch.tick();
        }
        assert!(is_pending(&mut another).await, "a task that does not read");
        assert_eq!((late.await.kind, reads.timed_out()), (FaultKind::NoAnswer, 1));
        drop(end);
        hangs.await.unwrap();
        assert_eq!(on(&reads).await, here);
    }

    #[tokio::test]
    async fn no_thread_of_another_runtime_reads() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::default());
        let reads = reads(folder.path(), &watch);
        let elsewhere = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let read = reads.entries(async |_| Ok(thread::current().id()));
            assert_ne!(runtime.block_on(read).unwrap(), thread::current().id());
        });
        elsewhere.join().unwrap();
    }

    #[tokio::test]
    async fn entry_that_is_not_on_disk_yet_keeps_no_other_read_waiting() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::default());
        let reads = reads(folder.path(), &watch);
        let (commit, committed) = tokio::sync::oneshot::channel::<()>();
        let mut waits = Box::pin(reads.entries(async move |_| Ok(committed.await.is_ok())));
        assert!(is_pending(&mut waits).await);
        let here = thread::current().id();
        assert_eq!(reads.entries(async |_| Ok(thread::current().id())).await.unwrap(), here);
        commit.send(()).unwrap();
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn read_that_waits_for_others_is_reported() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::<Watch>::default());
        let reads = reads(folder.path(), &watch);
        // Other reads, which take no time that the watch counts.
        let others = reads.permits.clone().try_acquire_many_owned(u32::try_from(MAX_READS).unwrap()).unwrap();
        let mut waits = Box::pin(reads.run(async |_| Ok::<_, StoreFault>(())));
        assert!(is_pending(&mut waits).await, "it has no permit");
        assert!(reads.failure().is_none());
        for _ in 0..=TICKS / 2 {
            watch.tick();
        }
        assert!(reads.failure().is_some(), "half of its time has passed");
        drop(others);
        waits.await.unwrap();
        assert!(reads.failure().is_none());
    }
}
