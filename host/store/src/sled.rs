//! The store on sled 0.34: one tree of commits, one thread that writes them, and files of our own for large records.

#[cfg(test)]
mod archives;
mod blobs;
mod building;
mod call_records;
mod chain;
mod check;
mod cleaning;
mod committer;
mod copying;
mod database_file;
mod deliveries;
mod disk;
mod durable;
mod export;
mod feeds;
mod folder;
mod import;
mod inbox;
mod journals;
mod keys;
mod log;
mod migrate;
mod plan;
mod reader;
mod reads;
mod rebuild;
mod remains;
mod removal;
mod salvage;
mod set_aside;
mod sizes;
mod space;
mod tree;
mod turns;
mod values;
mod verify;
mod watchdog;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, Checkpoint, Commit, Committed, FaultKind, Feed, Head, Health, Loaded, Log, NewFacts, Peers, Position,
    RowChange, StoreFault, StoreHealth, TurnLog,
};
use domain::TurnId;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};

pub(crate) use self::blobs::SEGMENT;
pub use self::check::{Inconsistency, StoreCheck};
pub use self::import::{BESIDE, import};
pub use self::reads::MAX_READ_THREADS;
pub use self::salvage::{SalvageError, Salvaged, salvage};
pub use self::verify::VerifyError;

use self::cleaning::{CLEANING, Cleaning};
use self::committer::{Committer, Work};
use self::disk::SledDisk;
use self::durable::Durable;
use self::folder::{FORMAT, Folder};
use self::plan::{Earlier, Plan};
use self::reader::Reader;
use self::reads::Reads;
use self::set_aside::SetAside;
use self::sizes::{Sizes, read_before};
use self::space::Space;
use self::tree::{Tree, attempt};
use self::values::{KeyValueTree, VALUES};
use self::watchdog::{TICKS, Watch, Watchdog};
use crate::fault::fault;
use crate::read_ports::read_ports;
use crate::{KeyValue, OpenError, StoreSettings};

/// The maximum number of commits that wait for the committing thread. Further callers wait for room.
const MAX_QUEUED: usize = 1024;

/// A store in a folder that no other process may use at the same time.
pub struct SledStore {
    /// For callers that may block. All others use `reads`.
    reader: Reader,
    reads: Reads,
    values: KeyValueTree,
    key_value: KeyValue,
    sizes: Sizes,
    /// How often the committing thread has failed.
    failures: Arc<AtomicU64>,
    /// One removal of large records at a time.
    reclaiming: AsyncMutex<()>,
    /// `None` only while the store is dropped: the committing thread ends when no more work can arrive.
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

/// Verifies the audit of a folder that no host uses: from the first commit to the head, with every checkpoint on the
/// way. Returns the head.
///
/// # Errors
/// [`VerifyError`] with the first place that is not as it was written.
pub fn verify(path: &Path, settings: &StoreSettings, checkpoints: Vec<Checkpoint>) -> Result<Head, VerifyError> {
    verify::verified(Folder::open(path, settings, rebuild::check_log)?, checkpoints)
}

impl SledStore {
    /// Opens the folder, or creates it, and checks a sample of its content; see [`SledStore::check`].
    ///
    /// # Errors
    /// [`OpenError`]: it is used by another process, a newer host wrote it, it is damaged, or the disk fails.
    pub fn open(path: &Path, settings: &StoreSettings) -> Result<Self, OpenError> {
        let opened = || Self::open_whole(path, settings, rebuild::check_log);
        match opened() {
            Err(OpenError::Damaged { .. }) if rebuild::snapshot(path, settings)? => opened(),
            opened => opened,
        }
    }

    fn open_whole(
        path: &Path,
        settings: &StoreSettings,
        check: impl FnOnce(&Path, &StoreSettings) -> Result<(), OpenError>,
    ) -> Result<Self, OpenError> {
        let broken = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
        let failed = |fault: StoreFault| OpenError::of(path, &fault);
        // These are dropped in reverse order if anything fails.
        let Folder { folder_lock, db, file, blobs, format } = Folder::open(path, settings, check)?;
        if format < FORMAT && !settings.migrates {
            return Err(OpenError::NotMigrated { path: path.to_owned(), found: format, known: FORMAT });
        }
        let values = attempt(|| db.open_tree(VALUES)).map_err(|cause| OpenError::of(path, &cause))?;
        // The default tree is the one of commits: it always exists, so it cannot be missing after a kill.
        let tree = Tree::new((*db).clone());
        let last = chain::head(&tree).map_err(failed)?;
        let (sender, durable) = watch::channel(Durable::Until(last.position));
        let reader = Reader {
            tree,
            blobs,
            durable: durable.clone(),
            recoveries: Arc::default(),
            set_aside: SetAside::default(),
        };
        let checked = check::sample(&reader, format == FORMAT).map_err(failed)?;
        if let Some((found, known)) = checked.problems.iter().find_map(Inconsistency::newer) {
            return Err(OpenError::Newer { path: path.to_owned(), found, known });
        }
        if let Some(problem) = checked.problems.iter().find(|problem| problem.is_structural()) {
            return Err(broken(format!("{problem} ({} problems found)", checked.problems.len())));
        }
        checked.problems.iter().for_each(|problem| problem.set_aside(&reader.set_aside));
        if format < FORMAT {
            migrate::from(format, &reader, &file).map_err(failed)?;
        }
        let watch = Arc::<Watch>::default();
        let second = file.again(path).map_err(|source| OpenError::io(path, source))?;
        let values = KeyValueTree::new(Tree::new(values), second, durable, settings, watch.clone(), folder_lock);
        let cleaning = attempt(|| db.open_tree(CLEANING)).map_err(|cause| OpenError::of(path, &cause))?;
        let (path_of_disk, settings) = (path.to_owned(), *settings);
        let waking = reader.tree.clone();
        let watchdog =
            Watchdog::start(watch.clone(), settings.disk_deadline / TICKS, move || disk::wake_flush(&waking));
        let watchdog = watchdog.map_err(|source| OpenError::io(path, source))?;
        let disk = SledDisk {
            reader: reader.clone(),
            values: values.clone(),
            cleaning: Cleaning::new(cleaning),
            file,
            path: path_of_disk,
            settings,
            space: Space::default(),
            watch: watch.clone(),
            _watchdog: watchdog,
        };
        let committer = Committer::new(disk, last, sender);
        let failures = committer.failures();
        let (queue, work) = mpsc::channel(MAX_QUEUED);
        let thread = thread::Builder::new()
            .name("toolgate-commit".into())
            .spawn(move || committer.run(work))
            .map_err(|source| OpenError::io(path, source))?;
        let key_value = KeyValue::on(Arc::new(values.clone()));
        let reclaiming = AsyncMutex::default();
        let reads = Reads::new(reader.clone(), &settings, watch);
        let (queue, thread) = (Some(queue), Some(thread));
        Ok(Self { reader, reads, values, key_value, sizes: Sizes::default(), failures, reclaiming, queue, thread })
    }

    /// The plugins' key-value data, in a tree of its own.
    #[must_use]
    pub fn key_value(&self) -> KeyValue {
        self.key_value.clone()
    }

    /// Sends work to the committing thread. Dropping the future does not withdraw work that was sent.
    async fn ask<T>(
        &self,
        attempted: &'static str,
        work: impl FnOnce(oneshot::Sender<T>) -> Work,
    ) -> Result<T, StoreFault> {
        let ended = || fault(attempted)("the committing thread has ended");
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.send(work(reply)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())
    }
}

/// Waits for the committing thread, so that the folder can be opened again as soon as the last handle is dropped.
impl Drop for SledStore {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the committing thread panicked");
        }
    }
}

#[async_trait]
impl Log for SledStore {
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError> {
        let size = self.sizes.before(commit);
        let (mut earlier, pending) = match read_before(&commit.rows, size) {
            None => (Earlier::default(), Vec::new()),
            Some(rows) => self.reads.for_commit(move |reader| async move { reader.before(&rows).await }).await?,
        };
        earlier.bytes = size.unwrap_or(earlier.bytes);
        let mut plan = Plan::of(commit, earlier)?;
        let added = plan.added;
        plan.removed.extend(pending);
        if let Some(NewFacts::Removal(removal)) = &commit.facts {
            let removal = removal.clone();
            let planning = self.reads.for_commit(move |reader| async move {
                reader.remove(&removal, &mut plan).await?;
                Ok::<_, AppendError>(plan)
            });
            plan = planning.await?;
        }
        for change in &commit.rows {
            let RowChange::Forget(records, row, bytes) = change else { continue };
            let (records, row, bytes) = (*records, row.clone(), *bytes);
            let planning = self.reads.for_commit(move |reader| async move {
                reader.forget(records, &row, bytes, &mut plan)?;
                Ok::<_, AppendError>(plan)
            });
            plan = planning.await?;
        }
        plan.holds = match self.reader.blobs.write(std::mem::take(&mut plan.blobs)).await {
            Ok(holds) => holds,
            Err(fault) if fault.kind == FaultKind::Program => return Err(fault.into()),
            Err(fault) => {
                self.ask(blobs::WRITE, |reply| Work::Failed(fault.clone(), reply)).await??;
                return Err(fault.into());
            }
        };
        let position = self.ask("commit", |reply| Work::Commit(Box::new(plan), reply)).await??;
        self.sizes.count(commit, added);
        Ok(position)
    }

    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        self.reads.run(move |reader| async move { reader.load(turn, commits).await }).await
    }

    async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        let feed = feed.clone();
        self.reads.run(move |reader| async move { reader.follow(&feed, after, limit, bytes).await }).await
    }

    async fn sync(&self) -> Result<(), StoreFault> {
        self.ask("sync", Work::Sync).await?
    }
}

impl Peers for SledStore {}

impl Health for SledStore {
    fn health(&self) -> StoreHealth {
        let failure = match &*self.reader.durable.borrow() {
            Durable::Until(_) => self.reads.failure(),
            Durable::Failed(_, fault) => Some(fault.clone()),
        };
        let trees = [&self.reader.tree, self.values.tree()];
        StoreHealth {
            failure,
            failures: self.failures.load(Ordering::Relaxed),
            damaged_records: self.reader.set_aside.count() + trees.into_iter().filter(|tree| tree.is_damaged()).count(),
            timed_out_reads: self.reads.timed_out(),
            syncs: self.reader.blobs.syncs(),
        }
    }
}

read_ports!(
    SledStore,
    entries,
    async fn hangs(&self, task: tokio::task::Id) -> StoreFault {
        self.reads.hangs(task).await
    }
);

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreFault> + Send + 'static,
) -> Result<T, StoreFault> {
    tokio::task::spawn_blocking(work).await.map_err(fault("free the space of large records"))?
}
