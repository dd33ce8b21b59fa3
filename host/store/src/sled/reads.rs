//! Reads of the database. They run in threads that may block, so that a slow disk delays no other request. A read that
//! takes too long fails. Its thread keeps its permit until it returns. A disk that hangs therefore holds only that many
//! threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dispatch::ports::{FaultKind, StoreFault};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::reader::Reader;
use super::watchdog::Watch;
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
    deadline: Duration,
    watch: Arc<Watch>,
    timed_out: AtomicU64,
}

impl Reads {
    pub(super) fn new(reader: Reader, deadline: Duration, watch: Arc<Watch>) -> Self {
        let (permits, for_commits) = (Semaphore::new(MAX_READS).into(), Semaphore::new(MAX_FOR_COMMITS).into());
        Self { reader, permits, for_commits, deadline, watch, timed_out: AtomicU64::new(0) }
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
        let reading = self.blocking(&self.permits, read);
        tokio::time::timeout(self.deadline, reading).await.unwrap_or_else(|_| {
            self.timed_out.fetch_add(1, Ordering::Relaxed);
            Err(no_answer().into())
        })
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
    use dispatch::ports::Position;
    use tokio::sync::watch;

    use super::*;
    use crate::sled::blobs::Blobs;
    use crate::sled::durable::Durable;
    use crate::sled::set_aside::SetAside;
    use crate::sled::tree::Tree;
    use crate::sled::watchdog::TICKS;

    #[tokio::test]
    async fn read_that_waits_for_others_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let db = sled::Config::new().temporary(true).flush_every_ms(None).open().unwrap();
        let reader = Reader {
            tree: Tree::new((*db).clone()),
            blobs: Blobs::open(folder.path().join("blobs")).unwrap(),
            durable: watch::channel(Durable::Until(Position(0))).1,
            recoveries: Arc::default(),
            set_aside: SetAside::default(),
        };
        let watch = Arc::new(Watch::default());
        let reads = Reads::new(reader, Duration::from_secs(3600), watch.clone());
        // Other reads, which take no time that the watch counts.
        let others = reads.permits.clone().try_acquire_many_owned(u32::try_from(MAX_READS).unwrap()).unwrap();
        let mut waits = Box::pin(reads.run(async |_| Ok::<_, StoreFault>(())));
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it has no permit"),
            () = std::future::ready(()) => {}
        }
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
