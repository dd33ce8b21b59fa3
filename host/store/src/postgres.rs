//! The store on a PostgreSQL server. One task writes: it takes what is queued, and commits all of it in one transaction that holds
//! the lock of the head. So positions have no gaps, and there is one chain of the audit. Reads use connections of their own.
//!
//! The server shows a commit to others only when it is on disk, so a read never returns what a crash could undo.

mod audit;
mod calls;
mod committer;
mod components;
mod connect;
mod differences;
mod documents;
mod error;
mod export;
mod fault;
mod fence;
mod hints;
mod hosts;
mod import;
mod inbox;
mod indexes;
mod left;
mod life;
mod live_plugins;
mod load;
mod lock;
mod log;
mod migrate;
mod news;
mod outbox;
mod peers;
mod plan;
mod reads;
mod removal;
mod rows;
mod servers;
mod session;
mod settings;
mod standing;
mod state;
mod table;
mod threads;
mod tls;
mod values;
mod write;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, CallRecords, Commit, Committed, EndedTurn, EndedTurns, Feed, Health, Loaded, Log, Position,
    StoreFault, StoreHealth, TurnLog,
};
use domain::{Timestamp, TurnId};
use tokio::sync::{mpsc, oneshot, watch};

pub use self::components::SharedComponents;
pub use self::connect::authorities;
pub use self::documents::Documents;
pub use self::error::PostgresError;
pub use self::export::export as export_database;
pub use self::import::import as import_database;
pub use self::life::DatabaseTime;
pub use self::settings::{HostIdentity, PostgresSettings};

use self::committer::{Committer, Counters, Work};
use self::connect::Connector;
use self::fence::Fence;
use self::hints::Messenger;
use self::life::Life;
use self::news::Poller;
use self::peers::Peer;
use self::plan::Plan;
use self::reads::{READ, Reads};
use self::threads::Threads;
use self::values::Values;
use crate::KeyValue;
use crate::fault::fault;
use crate::read_ports::read_ports;

/// The maximum number of commits that wait for the committer. Further callers wait for room.
const MAX_QUEUED: usize = 1024;

/// A store in a database that other hosts may use at the same time.
pub struct PostgresStore {
    reads: Reads,
    peer: Peer,
    key_value: KeyValue,
    documents: Documents,
    components: SharedComponents,
    failed: watch::Receiver<Option<StoreFault>>,
    final_failure: watch::Receiver<Option<StoreFault>>,
    time: watch::Receiver<DatabaseTime>,
    counters: Arc<Counters>,
    /// `None` only while the store is dropped.
    queue: Option<mpsc::Sender<Work>>,
    /// Closes when the committer has ended.
    ended: Mutex<std::sync::mpsc::Receiver<()>>,
    deadline: Duration,
    /// Of all connections. They end last.
    _threads: Threads,
}

impl PostgresStore {
    /// Connects to the server, checks it, takes the lock of the host's name, and makes or migrates the tables.
    ///
    /// # Errors
    /// [`PostgresError`].
    pub async fn open(settings: &PostgresSettings) -> Result<Self, PostgresError> {
        let statements =
            [load::STATEMENTS, write::sql::STATEMENTS, removal::STATEMENTS, fence::STATEMENTS, hosts::STATEMENTS];
        let connector = Connector::new(settings, statements.into_iter().flatten().copied().collect())?;
        let threads = Threads::start(2)?;
        let (deadline, handle, me) = (settings.deadline, threads.handle().clone(), connector.me.clone());
        let requests = |pool, attempted| Reads::new(handle.clone(), pool, deadline, attempted);
        let reads = requests(connector.requests(settings.readers)?, READ);
        let shared = Arc::new(requests(connector.requests(documents::CONNECTIONS)?, documents::ATTEMPTED));
        let components = requests(connector.requests(components::CONNECTIONS)?, components::ATTEMPTED);
        let polls = requests(connector.requests(1)?, READ);
        let time = deadline.min(settings.lease / 3);
        let renewals = Reads::new(handle.clone(), connector.requests(1)?, time, life::ATTEMPTED);
        let (values, (config, servers)) = (connector.values(settings.values)?, connector.hints());

        let (lock_wait, fence) = (settings.lock_wait, Arc::new(Fence::new(settings.host.name.clone())));
        let of_host = fence.clone();
        let connecting = async move { Ok((connector.writer(lock_wait, None, &of_host).await?, connector)) };
        let ((session, own), connector) = threads.run(connecting).await?;
        let ((failing, failed), counters) = (watch::channel(None), Arc::<Counters>::default());
        let (ending_for_good, final_failure) = watch::channel(None);
        let writing = (session, own.mark);
        let committer =
            Committer::new(connector, writing, fence.clone(), deadline, (failing, ending_for_good), counters.clone());
        let ((queue, work), (ending, ended)) = (mpsc::channel(MAX_QUEUED), std::sync::mpsc::channel());
        handle.spawn(async move {
            committer.run(work).await;
            drop::<std::sync::mpsc::Sender<()>>(ending);
        });

        let report = Arc::default();
        let mut life = Life::new(renewals, me.clone(), Arc::clone(&report), queue.downgrade());
        let (members, time) = (life.members(), life.time());
        life.begin(deadline).await?;
        handle.spawn(life.run(final_failure.clone(), failed.clone()));
        let (hints, looks) = (Arc::default(), settings.poll);
        let messenger = Messenger {
            config,
            servers,
            name: me.name().to_owned(),
            deadline,
            members: members.clone(),
            counters: counters.clone(),
            hints: Arc::clone(&hints),
        };
        handle.spawn(messenger.run());
        let (poller, news) = Poller::new(polls, own.run, own.mark.head.position, members.clone(), (hints, looks));
        handle.spawn(poller.run());
        let values = Values::new(handle.clone(), values, deadline, failed.clone(), fence, queue.downgrade());
        Ok(Self {
            reads,
            peer: Peer { me, report, members, news: tokio::sync::Mutex::new(news), requests: shared.clone() },
            key_value: KeyValue::on(Arc::new(values)),
            documents: Documents::of_store(shared),
            components: SharedComponents::new(components),
            failed,
            final_failure,
            time,
            counters,
            queue: Some(queue),
            ended: Mutex::new(ended),
            deadline,
            _threads: threads,
        })
    }

    /// The name of this host among those on the database.
    #[must_use]
    pub fn name(&self) -> &str {
        self.peer.me.name()
    }

    /// Small files that all hosts share.
    #[must_use]
    pub fn documents(&self) -> Documents {
        self.documents.clone()
    }

    /// The components that all hosts share.
    #[must_use]
    pub fn components(&self) -> SharedComponents {
        self.components.clone()
    }

    /// The time of the database.
    #[must_use]
    pub fn time(&self) -> watch::Receiver<DatabaseTime> {
        self.time.clone()
    }

    /// Why the store takes no commits until the host is started again. `None`: it takes them, or will take them again.
    #[must_use]
    pub fn final_failure(&self) -> watch::Receiver<Option<StoreFault>> {
        self.final_failure.clone()
    }

    /// The plugins' key-value data.
    #[must_use]
    pub fn key_value(&self) -> KeyValue {
        self.key_value.clone()
    }

    /// Sends work to the committer. Dropping the future does not withdraw work that was sent.
    async fn ask<T>(
        &self,
        attempted: &'static str,
        work: impl FnOnce(oneshot::Sender<T>) -> Work,
    ) -> Result<T, StoreFault> {
        let ended = || fault(attempted)("the committer has ended");
        let (reply, answer) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(ended)?;
        queue.send(work(reply)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())
    }
}

/// Waits until the queued commits are made, as long as for a transaction: a caller may have given up waiting for one.
impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(self.deadline) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            tracing::error!("the store is closed before the database server has answered; queued commits may be lost");
        }
    }
}

#[async_trait]
impl Log for PostgresStore {
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError> {
        let plan = Plan::of(commit.clone())?;
        self.ask("commit", |reply| Work::Commit(Box::new(plan), reply)).await?
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

impl Health for PostgresStore {
    fn health(&self) -> StoreHealth {
        StoreHealth {
            failure: self.failed.borrow().clone(),
            failures: self.counters.failures.load(Ordering::Relaxed),
            damaged_records: self.reads.set_aside.count(),
            timed_out_reads: self.reads.timed_out(),
            syncs: self.counters.syncs.load(Ordering::Relaxed),
        }
    }
}

read_ports!(PostgresStore, run);

#[async_trait]
impl EndedTurns for PostgresStore {
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        self.reads.run(move |reader| async move { reader.ended(after, limit).await }).await
    }

    async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        self.reads.run(move |reader| async move { reader.size_of_calls(turn, records).await }).await
    }

    async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.reads.run(|reader| async move { reader.retention_time().await }).await
    }

    /// Large records are in the rows of the database, so none is left behind.
    async fn reclaim(&self) -> Result<u64, StoreFault> {
        Ok(0)
    }
}
