//! Reads of the database. They run in threads that may block, so that a slow disk delays no other request. A read that
//! takes too long fails. Its thread keeps its permit until it returns. A disk that hangs therefore holds only that many
//! threads.
//!
//! An ephemeral turn reads single entries, mostly from memory, which takes a microsecond. To wake another thread takes up to
//! fifty. So one such read at a time runs on a thread of the guests, where these turns run, in a task of its own: the
//! runtime runs that task next on the same thread. A disk that hangs holds that thread, and the turn's task goes on in
//! another one when the read has taken too long. No thread that serves HTTP reads.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use dispatch::ports::{FaultKind, StoreFault};
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
    on_callers_thread: Arc<Semaphore>,
    deadline: Duration,
    watch: Arc<Watch>,
    timed_out: AtomicU64,
}

impl Reads {
    pub(super) fn new(reader: Reader, settings: &StoreSettings, watch: Arc<Watch>) -> Self {
        let (permits, for_commits) = (Semaphore::new(MAX_READS).into(), Semaphore::new(MAX_FOR_COMMITS).into());
        let (on_callers_thread, timed_out) = (Semaphore::new(1).into(), AtomicU64::new(0));
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
        R: Future<Output = Result<T, StoreFault>> + Send + 'static,
    {
        let may_read = self.runtime == Some(Handle::current().id());
        let permit = may_read.then(|| self.on_callers_thread.clone().try_acquire_owned().ok()).flatten();
        let Some(permit) = permit else { return self.run(read).await };
        // A timer might need the thread that the read holds. The watchdog has a thread of its own.
        let late = self.watch.overdue_from_now();
        let (reader, watch) = (self.reader.clone(), self.watch.clone());
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            let step = watch.begin_read();
            let mut reading = pin!(read(reader));
            let polled = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
            drop((permit, step));
            match polled {
                Poll::Ready(read) => read,
                // The entry was read. It was written by a commit that is not on disk yet.
                Poll::Pending => reading.await,
            }
        });
        tokio::select! {
            biased;
            Some(read) = reading.join_next() => read.map_err(fault("read what is stored"))?,
            () = late => Err(self.late()),
        }
    }

    async fn in_time<T, E: From<StoreFault>>(&self, reading: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        tokio::time::timeout(self.deadline, reading).await.unwrap_or_else(|_| Err(self.late().into()))
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
        let reading = tokio::task::spawn_blocking(move || {
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
    use crate::sled::durable::Durable;
    use crate::sled::set_aside::SetAside;
    use crate::sled::tree::Tree;
    use crate::sled::watchdog::TICKS;

    /// Reads of an empty store with an endless deadline.
    fn reads(folder: &Path, watch: &Arc<Watch>) -> Reads {
        let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
        let reader = Reader {
            tree: Tree::new((*db).clone()),
            blobs: Blobs::open(folder.join("blobs")).unwrap(),
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

    /// The threads of a task, and of a read of entries that it makes.
    async fn threads(reads: &Arc<Reads>) -> [thread::ThreadId; 2] {
        let reads = reads.clone();
        let task = async move {
            let here = thread::current().id();
            [here, reads.entries(async |_| Ok(thread::current().id())).await.unwrap()]
        };
        tokio::spawn(task).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn disk_that_hangs_holds_one_thread_of_the_callers() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::<Watch>::default());
        let reads = Arc::new(reads(folder.path(), &watch));
        let ((begun, begins), (end, ends)) = (tokio::sync::oneshot::channel(), mpsc::channel::<()>());
        let hanging = reads.clone();
        let hangs = tokio::spawn(async move {
            let read = hanging.entries(async move |_| {
                begun.send(()).unwrap();
                let _ = ends.recv();
                Ok(())
            });
            read.await.unwrap_err()
        });
        begins.await.unwrap();
        let [here, there] = threads(&reads).await;
        assert_ne!(here, there, "a read hangs on a thread of the callers");
        assert!(!hangs.is_finished());
        for _ in 0..=TICKS {
            watch.tick();
        }
        let late = hangs.await.unwrap();
        assert_eq!((late.kind, reads.timed_out()), (FaultKind::NoAnswer, 1), "its thread still hangs");
        let [here, there] = threads(&reads).await;
        assert_ne!(here, there, "it keeps its permit");
        drop(end);
        drop(reads.on_callers_thread.acquire().await.unwrap());
    }

    #[tokio::test]
    async fn entry_is_read_on_the_thread_of_its_caller() {
        let (folder, watch) = (tempfile::tempdir().unwrap(), Arc::default());
        let [here, there] = threads(&Arc::new(reads(folder.path(), &watch))).await;
        assert_eq!(here, there);
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
        let (read, reads_it) = tokio::sync::oneshot::channel::<()>();
        let mut waits = Box::pin(reads.entries(async move |_| {
            read.send(()).unwrap();
            Ok(committed.await.is_ok())
        }));
        assert!(is_pending(&mut waits).await);
        reads_it.await.unwrap();
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
