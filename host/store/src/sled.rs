//! The store on sled 0.34: one tree of commits, one thread that writes them, and files of our own for large records.

mod blobs;
mod chain;
mod check;
mod committer;
mod deliveries;
mod disk;
mod export;
mod folder;
mod keys;
mod migrate;
mod plan;
mod reader;
mod rebuild;
mod removal;
mod tree;
mod turns;
mod verify;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, Audit, Audited, BegunTurns, ChainEntry, Commit, Committed, DeliveryRow, Denial, EndedTurn, Feed,
    Filter, Head, Indexes, Loaded, Log, NewFacts, Outbox, Page, Position, Retention, RowChange, StandingApprovals,
    StoreFault, SuspensionRow, TurnLog,
};
use domain::{
    CallId, ConversationId, Digest, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId, effect::Due,
    event::HostStarted, standing::StandingRow,
};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot, watch};

pub use self::check::{Problem, StoreCheck};
pub use self::export::ExportError;
pub use self::verify::{VerifyError, verify};

use self::committer::{Committer, Durable, Work};
use self::disk::SledDisk;
use self::folder::{FORMAT, Folder, FolderLock};
use self::plan::Plan;
use self::reader::Reader;
use self::tree::{Tree, attempt};
use crate::fault::fault;
use crate::{KeyValue, OpenError, StoreSettings, record};

/// The name of the tree of the plugins' data.
const VALUES: &str = "key-value";

/// The most commits that wait for the committing thread. Further callers wait for room.
const MAX_QUEUED: usize = 1024;

/// A store in a folder that no other process may use at the same time.
pub struct SledStore {
    reader: Reader,
    values: KeyValueTree,
    key_value: KeyValue,
    /// One removal of large records at a time.
    reclaiming: AsyncMutex<()>,
    /// `None` only while the store is dropped: the committing thread ends when no more work can arrive.
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl SledStore {
    /// Opens the folder, or creates it, and checks a sample of its content; see [`SledStore::check`].
    ///
    /// # Errors
    /// [`OpenError`]: it is used by another process, a newer host wrote it, it is damaged, or the disk fails.
    pub fn open(path: &Path, settings: &StoreSettings) -> Result<Self, OpenError> {
        match Self::open_whole(path, settings) {
            Err(OpenError::Damaged { .. }) if rebuild::snapshot(path, settings)? => Self::open_whole(path, settings),
            opened => opened,
        }
    }

    fn open_whole(path: &Path, settings: &StoreSettings) -> Result<Self, OpenError> {
        let broken = |reason: String| OpenError::Damaged { path: path.to_owned(), reason };
        let failed = |fault: StoreFault| OpenError::of(path, &fault);
        // These are dropped in reverse order if anything fails.
        let Folder { folder_lock, db, file, blobs, format } = Folder::open(path, settings)?;
        let values = attempt(|| db.open_tree(VALUES)).map_err(|cause| OpenError::of(path, &cause))?;
        // The default tree is the one of commits: it always exists, so it cannot be missing after a kill.
        let tree = Tree::new((*db).clone());
        let last = chain::head(&tree).map_err(failed)?;
        let (sender, durable) = watch::channel(Durable::Until(last.position));
        let reader = Reader { tree, blobs, durable: durable.clone(), recoveries: Arc::default() };
        let checked = check::sample(&reader, format == FORMAT).map_err(failed)?;
        if let Some(found) = checked.problems.iter().find_map(Problem::newer) {
            return Err(OpenError::Newer { path: path.to_owned(), found, known: record::VERSION });
        }
        if let Some(problem) = checked.problems.first() {
            return Err(broken(format!("{problem} ({} problems found)", checked.problems.len())));
        }
        if format < FORMAT {
            migrate::from_2(&reader, &file).map_err(failed)?;
        }
        let values = KeyValueTree { tree: Tree::new(values), unsynced: Arc::default(), durable, _lock: folder_lock };
        let (path_of_disk, settings) = (path.to_owned(), *settings);
        let disk = SledDisk { reader: reader.clone(), values: values.clone(), file, path: path_of_disk, settings };
        let committer = Committer::new(disk, last, sender);
        let (queue, work) = mpsc::channel(MAX_QUEUED);
        let thread = thread::Builder::new()
            .name("toolgate-commit".into())
            .spawn(move || committer.run(work))
            .map_err(|source| OpenError::io(path, source))?;
        let key_value = KeyValue::on(values.clone());
        let reclaiming = AsyncMutex::default();
        Ok(Self { reader, values, key_value, reclaiming, queue: Some(queue), thread: Some(thread) })
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
        let gone = || fault(attempted)("the committing thread has ended");
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue.send(work(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
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
        let ended = commit.rows.iter().find_map(|row| match row {
            RowChange::Ended(ended) => Some(ended.turn),
            _ => None,
        });
        let earlier = match ended {
            Some(turn) => self.reader.size(turn).await?,
            None => 0,
        };
        let mut plan = Plan::of(commit, earlier)?;
        plan.removed.extend(self.reader.pending_before(&commit.rows).await?);
        if let Some(NewFacts::Removal(removal)) = &commit.facts {
            self.reader.remove(removal, &mut plan).await?;
        }
        plan.holds = self.reader.blobs.write(std::mem::take(&mut plan.blobs)).await?;
        self.ask("commit", |reply| Work::Commit(Box::new(plan), reply)).await?
    }

    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        self.reader.load(turn, commits).await
    }

    async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        self.reader.follow(feed, after, limit, bytes).await
    }

    async fn sync(&self) -> Result<(), StoreFault> {
        self.ask("sync", Work::Sync).await?
    }

    fn failure(&self) -> Option<StoreFault> {
        match &*self.reader.durable.borrow() {
            Durable::Until(_) => None,
            Durable::Failed(_, fault) => Some(fault.clone()),
        }
    }
}

#[async_trait]
impl Indexes for SledStore {
    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        self.reader.owner(conversation).await
    }

    async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
        self.reader.conversations(after, limit).await
    }

    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault> {
        self.reader.find_call(conversation, call).await
    }

    async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        limit: usize,
    ) -> Result<BegunTurns, StoreFault> {
        self.reader.turns(conversation, before, limit)
    }

    async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        self.reader.due(after, until, limit)
    }

    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        self.reader.unfinished(after, limit)
    }

    async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
        self.reader.suspension(id).await
    }

    async fn suspensions(
        &self,
        filter: &Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        self.reader.suspensions(filter, after, limit).await
    }
}

#[async_trait]
impl Outbox for SledStore {
    async fn deliveries(&self, of: SuspensionId) -> Result<Vec<DeliveryRow>, StoreFault> {
        self.reader.deliveries(of).await
    }

    async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault> {
        self.reader.deliveries_due(webhook, until, limit).await
    }

    async fn webhooks_owed(&self) -> Result<Vec<String>, StoreFault> {
        self.reader.webhooks_owed()
    }
}

#[async_trait]
impl StandingApprovals for SledStore {
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        self.reader.standing(id).await
    }

    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault> {
        self.reader.standings(after, limit).await
    }

    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault> {
        self.reader.denied(conversation, alike).await
    }

    async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
        self.reader.denials(after, limit).await
    }
}

#[async_trait]
impl Audit for SledStore {
    async fn audit(&self, after: Position, limit: usize) -> Result<Vec<Audited>, StoreFault> {
        self.reader.audit(after, limit).await
    }

    async fn chain(&self, after: Position, limit: usize) -> Result<Vec<ChainEntry>, StoreFault> {
        self.reader.chain(after, limit).await
    }

    async fn head(&self) -> Result<Head, StoreFault> {
        self.reader.head()
    }

    async fn last_start(&self) -> Result<Option<HostStarted>, StoreFault> {
        self.reader.last_start().await
    }
}

#[async_trait]
impl Retention for SledStore {
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        self.reader.ended(after, limit).await
    }

    async fn reclaim(&self) -> Result<u64, StoreFault> {
        let _only = self.reclaiming.lock().await;
        let _removing = self.reader.blobs.begin_removing();
        let reader = self.reader.clone();
        let unreferred = blocking(move || reader.unreferred()).await?;
        if unreferred.is_empty() {
            return Ok(0);
        }
        // The commits that removed the references are on disk before the records go.
        self.sync().await?;
        let reader = self.reader.clone();
        blocking(move || reader.remove_blobs(unreferred)).await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreFault> + Send + 'static,
) -> Result<T, StoreFault> {
    tokio::task::spawn_blocking(work).await.map_err(fault("free the space of large records"))?
}

/// The tree of the plugins' data. It takes no writes after the disk has failed.
#[derive(Clone)]
pub(crate) struct KeyValueTree {
    tree: Tree,
    unsynced: Arc<Mutex<Unsynced>>,
    durable: watch::Receiver<Durable>,
    /// The folder is in use as long as there is a handle. Declared last, so that it is released last.
    _lock: Arc<FolderLock>,
}

/// Writes that may not be on disk yet, with the last value of each key. They are made again when the database is opened
/// again: a plugin that saw them may still be running.
#[derive(Default)]
struct Unsynced {
    /// Since the last flush began.
    new: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// Before the last flush.
    flushed: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl KeyValueTree {
    /// The tree, to read.
    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Sets a value, or removes it.
    pub(crate) fn put(&self, key: Vec<u8>, value: Option<&[u8]>) -> Result<(), StoreFault> {
        if let Durable::Failed(_, fault) = &*self.durable.borrow() {
            return Err(fault.clone());
        }
        // A flush that does not see this write in the list has written it if it is in the tree.
        let mut unsynced = self.unsynced();
        self.write(&key, value)?;
        unsynced.new.insert(key, value.map(<[u8]>::to_vec));
        Ok(())
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreFault> {
        let done = match value {
            Some(value) => self.tree.insert(key, value),
            None => self.tree.remove(key),
        };
        done.map(drop).map_err(fault("write a value"))
    }

    fn begin_flush(&self) {
        let mut unsynced = self.unsynced();
        let new = std::mem::take(&mut unsynced.new);
        unsynced.flushed.extend(new);
    }

    fn synced(&self) {
        self.unsynced().flushed.clear();
    }

    fn write_again(&self) -> Result<(), StoreFault> {
        let Unsynced { new, flushed } = &*self.unsynced();
        let mut writes = flushed.iter().chain(new);
        writes.try_for_each(|(key, value)| self.write(key, value.as_deref()))
    }

    fn unsynced(&self) -> MutexGuard<'_, Unsynced> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
