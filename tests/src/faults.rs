//! A store that fails. Faults are implementations of the ports, never switches in the tested code.

mod shared;
mod unchanged;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cluster::Member;
use async_trait::async_trait;
use dispatch::ports::{
    AppendError, Audiences, BegunTurns, CallLogs, Commit, Committed, DeliveryRow, FaultKind, Feed, Filter, Health,
    Indexes, JournalPage, Journals, Loaded, Log, NewFacts, Outbox, Page, Position, RowChange, RunLog, Store,
    StoreFault, StoreHealth, Subject, SuspensionRow, TurnLog,
};
use domain::{
    CallId, CallIndex, ConversationId, PrincipalId, SuspensionId, Timestamp, TurnId,
    effect::Due,
    journal::JournalBounds,
    suspension::{Audience, SuspensionKind},
    turn::TurnState,
};
use tokio::sync::{Notify, Semaphore};

/// When the process dies, seen from a commit of a turn or of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Before the commit is on disk.
    Before,
    /// After it is on disk and before the host reports it.
    After,
    /// While the commit is on its way. The test decides when it comes to the disk.
    Late,
}

/// Passes everything on until it dies at a commit of a turn or of a journal. After that no commit of a turn returns, as
/// if the process had ended, and each commit of a journal fails, because a thread waits for it.
pub struct MortalStore {
    inner: Arc<dyn Store>,
    /// The number of commits that are left, and how the last one ends.
    fate: Mutex<Option<(usize, Death)>>,
    died: Notify,
    /// The number of commits of turns and of journals that came to the disk.
    commits: AtomicUsize,
    /// The commit that is on its way.
    late: Mutex<Option<Commit>>,
    /// Whether the next query for an owner pauses.
    hesitates: AtomicBool,
    /// Whether the next search for external waits fails.
    fails_search: AtomicBool,
    /// Whether reads of owners hang.
    hangs: AtomicBool,
    /// Whether audiences are too many to be counted.
    hides_audiences: AtomicBool,
    /// The gates of the next commits, one each.
    gates: Mutex<VecDeque<Arc<Semaphore>>>,
    /// The number of commits that were refused because they use a standing approval, if all of them are refused.
    spent: AtomicUsize,
    spends: AtomicBool,
    /// The turn whose log is damaged.
    damaged: Mutex<Option<TurnId>>,
    /// The number of due rows that were read.
    read: AtomicUsize,
    /// The number of pages of feeds and of logs that were read.
    pages: AtomicUsize,
    logs: AtomicUsize,
    /// The number of entries of journals that were read.
    entries: AtomicUsize,
    /// The gates of all reads of feeds and of logs, if they are held.
    reading: Gate,
    loading: Gate,
    /// The number of commits of turns that are still to be refused.
    refuses: AtomicUsize,
    /// The other hosts on the store, if there may be some.
    member: Option<Arc<Member>>,
}

type Gate = Mutex<Option<Arc<Semaphore>>>;

/// Holds what reads through this gate from now on, until the result has permits for it.
fn close(gate: &Gate) -> Arc<Semaphore> {
    let closed = Arc::new(Semaphore::new(0));
    *gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(closed.clone());
    closed
}

/// Waits for a permit if the gate is closed.
async fn pass(gate: &Gate) {
    let gate = gate.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(gate) = gate {
        gate.acquire().await.map(tokio::sync::SemaphorePermit::forget).ok();
    }
}

impl MortalStore {
    /// A store without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            fate: Mutex::new(None),
            died: Notify::new(),
            commits: AtomicUsize::new(0),
            late: Mutex::default(),
            hesitates: AtomicBool::new(false),
            fails_search: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            hides_audiences: AtomicBool::new(false),
            gates: Mutex::default(),
            spent: AtomicUsize::new(0),
            spends: AtomicBool::new(false),
            damaged: Mutex::default(),
            read: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            logs: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            reading: Mutex::default(),
            loading: Mutex::default(),
            refuses: AtomicUsize::new(0),
            member: None,
        }
    }

    /// The store of a host that shares it with others.
    #[must_use]
    pub fn shared(inner: Arc<dyn Store>, member: Arc<Member>) -> Self {
        Self { member: Some(member), ..Self::new(inner) }
    }

    /// Dies at the commit after this many more.
    pub fn die_after(&self, commits: usize, death: Death) {
        *self.fate.lock().unwrap_or_else(PoisonError::into_inner) = Some((commits, death));
    }

    /// The log of this turn is damaged.
    pub fn damage(&self, turn: TurnId) {
        *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
    }

    /// Returns when it has died.
    pub async fn died(&self) {
        self.died.notified().await;
    }

    /// The number of commits of turns and of journals that came to the disk.
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::Relaxed)
    }

    /// The number of entries of journals that were read.
    pub fn entries_read(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Takes the commit that was on its way when it died.
    pub fn take_late(&self) -> Option<Commit> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Passes a commit on, and counts it.
    async fn pass_on(&self, commit: &Commit) -> Result<Position, AppendError> {
        let position = self.append_unless_ended(commit).await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(position)
    }

    /// A host whose lease has ended commits nothing.
    async fn append_unless_ended(&self, commit: &Commit) -> Result<Position, AppendError> {
        if self.member.as_ref().is_some_and(|member| member.has_ended()) {
            return Err(StoreFault::of_program("commit", "the lease of the host has ended").into());
        }
        let position = self.inner.append(commit).await?;
        if let Some(member) = &self.member {
            member.committed(commit);
        }
        Ok(position)
    }

    /// Refuses this many commits of turns, as a server does that finds a fault in them.
    pub fn refuse(&self, commits: usize) {
        self.refuses.store(commits, Ordering::Relaxed);
    }

    /// Holds the next commit that is not held by an earlier gate, until this one has a permit.
    pub fn hold(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        self.gates.lock().unwrap_or_else(PoisonError::into_inner).push_back(gate.clone());
        gate
    }

    /// Pauses before the next reply with an owner of a conversation, so that a test can cancel its caller there.
    pub fn hesitate(&self) {
        self.hesitates.store(true, Ordering::Relaxed);
    }

    /// From now on each read of an owner hangs, and is overdue at once.
    pub fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// From now on no audience of a suspension is counted, as if there were too many.
    pub fn hide_audiences(&self) {
        self.hides_audiences.store(true, Ordering::Relaxed);
    }

    /// Fails the next search for external waits.
    pub fn fail_search(&self) {
        self.fails_search.store(true, Ordering::Relaxed);
    }

    /// From now on every use of a standing approval fails as if another call had used it first.
    pub fn spend(&self) {
        self.spends.store(true, Ordering::Relaxed);
    }

    /// The number of commits that were refused for that.
    pub fn spent(&self) -> usize {
        self.spent.load(Ordering::Relaxed)
    }

    /// The number of due rows that were read since the last call.
    pub fn read_of_due(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }

    /// Holds every page of a feed from now on, until this has permits for it.
    pub fn hold_pages(&self) -> Arc<Semaphore> {
        close(&self.reading)
    }

    /// Holds every load of a turn from now on, until this has permits for it.
    pub fn hold_logs(&self) -> Arc<Semaphore> {
        close(&self.loading)
    }

    /// The number of pages of feeds that were begun to be read since the last call.
    pub fn read_of_feeds(&self) -> usize {
        self.pages.swap(0, Ordering::Relaxed)
    }

    /// The number of logs that were begun to be read since the last call.
    pub fn read_of_logs(&self) -> usize {
        self.logs.swap(0, Ordering::Relaxed)
    }

    fn fate(&self) -> Option<Death> {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        match fate.as_mut()? {
            (0, death) => Some(std::mem::replace(death, Death::Before)),
            (left, _) => {
                *left -= 1;
                None
            }
        }
    }
}

#[async_trait]
impl Log for MortalStore {
    async fn append(&self, commit: &Commit) -> Result<Position, AppendError> {
        let of_journal = commit.rows.iter().any(|row| matches!(row, RowChange::JournalEntry(_)));
        if !of_journal && !matches!(commit.facts, Some(NewFacts::Turn { .. })) {
            return self.append_unless_ended(commit).await;
        }
        let gate = self.gates.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(gate) = gate {
            // A dropped gate is open.
            drop(gate.acquire().await);
        }
        if self.refuses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(StoreFault::of_program("commit", "a test refuses it").into());
        }
        let used = commit.rows.iter().find_map(|change| match change {
            RowChange::StandingUse(id) => Some(*id),
            _ => None,
        });
        if let Some(id) = used.filter(|_| self.spends.load(Ordering::Relaxed)) {
            self.spent.fetch_add(1, Ordering::Relaxed);
            return Err(AppendError::StandingSpent(id));
        }
        match self.fate() {
            None => return self.pass_on(commit).await,
            Some(Death::Before) => {}
            Some(Death::After) => drop(self.pass_on(commit).await),
            Some(Death::Late) => {
                *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(commit.clone());
            }
        }
        self.died.notify_one();
        if of_journal {
            return Err(StoreFault::of_program("append to a journal", "the host was killed").into());
        }
        std::future::pending().await
    }

    async fn load_until(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        self.logs.fetch_add(1, Ordering::Relaxed);
        pass(&self.loading).await;
        if *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) == Some(turn) {
            return Err(StoreFault::damaged("load a turn", "a test damaged it"));
        }
        self.inner.load_until(turn, commits).await
    }

    async fn follow(
        &self,
        feed: &Feed,
        after: Position,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Committed>, StoreFault> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        pass(&self.reading).await;
        self.inner.follow(feed, after, limit, bytes).await
    }

    async fn sync(&self) -> Result<(), StoreFault> {
        self.inner.sync().await
    }
}

impl Health for MortalStore {
    fn health(&self) -> StoreHealth {
        self.inner.health()
    }
}

#[async_trait]
impl Indexes for MortalStore {
    async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        if self.hangs.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        if self.hesitates.swap(false, Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        self.inner.owner(conversation).await
    }

    async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
        self.inner.conversations(after, limit).await
    }

    async fn find_call(&self, conversation: &ConversationId, call: &CallId) -> Result<Option<TurnId>, StoreFault> {
        self.inner.find_call(conversation, call).await
    }

    async fn turns(
        &self,
        conversation: &ConversationId,
        before: Option<Position>,
        limit: usize,
    ) -> Result<BegunTurns, StoreFault> {
        self.inner.turns(conversation, before, limit).await
    }

    async fn states(&self, turns: &[TurnId]) -> Result<Vec<Option<TurnState>>, StoreFault> {
        self.inner.states(turns).await
    }

    async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let due = self.inner.due(after, until, limit).await?;
        self.read.fetch_add(due.len(), Ordering::Relaxed);
        Ok(due)
    }

    async fn unfinished(&self, after: Option<TurnId>, limit: usize) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        self.inner.unfinished(after, limit).await
    }

    async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
        self.inner.suspension(id).await
    }

    async fn suspensions(
        &self,
        filter: &Filter,
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        if filter.kind == Some(SuspensionKind::External) && self.fails_search.swap(false, Ordering::Relaxed) {
            return Err(StoreFault::of_program("read suspensions", "the disk is on fire"));
        }
        self.inner.suspensions(filter, after, limit).await
    }

    async fn suspensions_of(
        &self,
        filter: &Filter,
        audiences: &[Audience],
        after: Option<SuspensionId>,
        limit: usize,
    ) -> Result<Page, StoreFault> {
        self.inner.suspensions_of(filter, audiences, after, limit).await
    }

    async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault> {
        if self.hides_audiences.load(Ordering::Relaxed) {
            return Ok(Audiences::default());
        }
        self.inner.audiences(filter).await
    }

    async fn kept_bytes(&self, principal: &PrincipalId) -> Result<u64, StoreFault> {
        self.inner.kept_bytes(principal).await
    }

    async fn hangs(&self, task: tokio::task::Id) -> StoreFault {
        if self.hangs.load(Ordering::Relaxed) {
            let reason = "the disk does not answer in time".to_owned();
            return StoreFault { kind: FaultKind::NoAnswer, attempted: "read an owner", reason };
        }
        self.inner.hangs(task).await
    }
}

#[async_trait]
impl Outbox for MortalStore {
    async fn deliveries(&self, of: Subject) -> Result<Vec<DeliveryRow>, StoreFault> {
        self.inner.deliveries(of).await
    }

    async fn deliveries_due(
        &self,
        webhook: &str,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeliveryRow>, StoreFault> {
        self.inner.deliveries_due(webhook, until, limit).await
    }

    async fn webhooks_with_pending(&self) -> Result<Vec<String>, StoreFault> {
        self.inner.webhooks_with_pending().await
    }
}

#[async_trait]
impl CallLogs for MortalStore {
    async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        self.inner.call_log(turn, call).await
    }
}

#[async_trait]
impl Journals for MortalStore {
    async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault> {
        let page = self.inner.journal_page(turn, call, from, max).await?;
        self.entries.fetch_add(page.entries.len(), Ordering::Relaxed);
        Ok(page)
    }
}
