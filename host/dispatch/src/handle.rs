//! The API of a running host. Each request is made in the name of a principal.

mod answer;
mod audit;
mod hosts;
mod inbox;
mod links;
mod planning;
mod progress;
mod read;
mod signals;
mod standing;
mod submit;
mod turns;
mod waiting;

pub use answer::Answered;
pub use hosts::CallOfHost;
pub use inbox::Open;
pub use links::{LinkPermit, LinkRequest};
pub use read::SuspensionPage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub use turns::Within;
pub use waiting::{KeptTurn, TurnWait};

use domain::{
    ConversationId, Json, Outcome, OwnerId, Principal, PrincipalId, Span, Timestamp, ToolName, Turn, TurnId,
    call::Pinned, nested::NestedCall, principal::Role, turn::Input,
};
use futures::TryFutureExt;
use tokio::sync::watch;

use crate::error::{Error, Forbidden, Resource};
use crate::feed::Follower;
use crate::inbox::Inbox;
use crate::loads::Loads;
use crate::pending::Pending;
use crate::pipeline::Pipeline;
use crate::ports::{
    Audit, CallLogs, Feed, Footprint, Health, Indexes, Journals, KnownTool, Lingering, Loaded, Outbox, Position, Share,
    StandingApprovals, StoreFault, StoreHealth,
};
use crate::presence::{Attachment, Presence, may_attach};
use crate::quota::Quota;
use crate::request::Counts;
use crate::shared::Shared;
use crate::standing::Standings;

/// A cheap clone that reaches the host.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    pipeline: Arc<Pipeline>,
    readers: Readers,
    pending: Pending,
    presence: Arc<Presence>,
    loads: Loads,
}

/// The ports and caches that a handle reads besides turns.
pub(crate) struct Readers {
    pub(crate) indexes: Arc<dyn Indexes>,
    pub(crate) outbox: Arc<dyn Outbox>,
    pub(crate) standing: Arc<dyn StandingApprovals>,
    pub(crate) audit: Arc<dyn Audit>,
    pub(crate) logs: Arc<dyn CallLogs>,
    pub(crate) journals: Arc<dyn Journals>,
    pub(crate) health: Arc<dyn Health>,
    /// The usable standing approvals, in memory.
    pub(crate) standings: Arc<Standings>,
    pub(crate) inbox: Arc<Inbox>,
    /// How far the time of retention is behind the clock, in milliseconds.
    pub(crate) retention_lag: Arc<AtomicU64>,
    /// Notified after each run of retention that removed turns.
    pub(crate) removals: watch::Receiver<()>,
}

impl Handle {
    pub(crate) fn new(pipeline: Arc<Pipeline>, presence: Arc<Presence>, readers: Readers) -> Self {
        let (shared, turns) = (pipeline.shared.clone(), pipeline.turns.clone());
        let (log, principals) = (pipeline.log.clone(), shared.principals.clone());
        let recheck = pipeline.runner.recheck.clone();
        let pending = Pending { indexes: readers.indexes.clone(), log, turns, principals, recheck };
        Self { inner: Arc::new(Inner { shared, pipeline, readers, pending, presence, loads: Loads::default() }) }
    }

    /// The time of the host's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.inner.shared.clock.now()
    }

    /// Whether callers may answer for their own calls.
    #[must_use]
    pub fn own_calls(&self) -> bool {
        self.inner.shared.settings.own_calls
    }

    /// Every live tool, sorted by name.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<KnownTool>> {
        self.inner.shared.tools.list()
    }

    /// A new id of 128 bits.
    #[must_use]
    pub fn mint(&self) -> u128 {
        (self.inner.shared.mint)()
    }

    /// This run of the host.
    #[must_use]
    pub fn owner(&self) -> OwnerId {
        self.inner.shared.owner
    }

    /// The part of the work of all hosts that this host does.
    #[must_use]
    pub fn share(&self) -> Share {
        self.inner.pipeline.peers.share()
    }

    /// The usage of the open turns of all hosts. `None`: only one host uses the store, and [`Handle::counts`] has it.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn open_turns(&self) -> Result<Option<Footprint>, StoreFault> {
        self.inner.pipeline.peers.open_turns(None).await
    }

    /// From now on, the host takes no turns and no answers, and other hosts do its share of the work. Its running calls go on.
    pub fn drain(&self) {
        self.inner.shared.is_draining.store(true, Ordering::Relaxed);
        self.inner.pipeline.peers.drain();
    }

    /// Whether [`Handle::drain`] was called.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.shared.is_draining.load(Ordering::Relaxed)
    }

    /// Refuses what could start a call.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_draining() { Err(Error::Draining) } else { Ok(()) }
    }

    /// How many turns run in this process, or are waited for.
    #[must_use]
    pub fn turns_in_memory(&self) -> usize {
        self.inner.pipeline.turns.len()
    }

    /// The instances of durable calls that are kept while the calls wait.
    #[must_use]
    pub fn lingering(&self) -> Lingering {
        self.inner.shared.tools.lingering()
    }

    /// How many logs of calls are only in memory, or still grow.
    #[must_use]
    pub fn unstored_logs(&self) -> usize {
        self.inner.pipeline.logs.len()
    }

    #[must_use]
    pub fn quota(&self, principal: &PrincipalId) -> Quota {
        self.inner.pipeline.tracker.quotas().of(principal)
    }

    /// The usage of all principals, and how calls ended since the host started.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.inner.pipeline.tracker.counts()
    }

    /// A turn as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this principal cannot see such a turn, [`Error::Removed`] if retention removed it, and
    /// faults of the store.
    pub async fn turn(&self, by: &Principal, conversation: &ConversationId, id: TurnId) -> Result<Turn, Error> {
        let entered = self.inner.pipeline.turns.enter(id);
        self.visible(by, conversation, entered.read(self.inner.pipeline.log.as_ref()).await?).await
    }

    /// A turn as it is now, for the host itself. `None` if it does not exist, or retention removed it.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn turn_for_host(&self, id: TurnId) -> Result<Option<Turn>, StoreFault> {
        let entered = self.inner.pipeline.turns.enter(id);
        Ok(entered.read(self.inner.pipeline.log.as_ref()).await?.found())
    }

    /// Cancels a turn: every call of it that has not ended ends `cancelled`. A turn that ended stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`], or a refusal if the principal is neither its caller nor an admin.
    pub async fn cancel(&self, by: &Principal, conversation: &ConversationId, id: TurnId) -> Result<Turn, Error> {
        self.turn(by, conversation, id).await?;
        let (pipeline, principal) = (self.inner.pipeline.clone(), by.clone());
        run_uncancelled("cancel a turn", async move {
            let entered = pipeline.turns.enter(id);
            pipeline.step(&entered, |_, _| Some(Input::Cancel { by: principal.clone() })).await
        })
        .await?;
        self.turn(by, conversation, id).await
    }

    /// Continues the call that waits for a nested turn, with its results.
    ///
    /// # Errors
    /// Faults of the store.
    pub(crate) async fn return_nested(&self, parent: TurnId, turn: TurnId, results: Json) -> Result<bool, Error> {
        let pipeline = self.inner.pipeline.clone();
        run_uncancelled("return the results of a nested turn", async move {
            let entered = pipeline.turns.enter(parent);
            pipeline.step(&entered, |_, _| Some(Input::Returned { turn, results: results.clone() })).await
        })
        .await
    }

    /// The outcome of all these calls by a component, if it may not make each of them.
    pub(crate) async fn refused_calls(&self, by: &Pinned, calls: &[NestedCall]) -> Option<Outcome> {
        self.inner.pipeline.runner.recheck.refused(by, calls).await
    }

    /// Cancels a nested turn that no call waits for.
    ///
    /// # Errors
    /// Faults of the store.
    pub(crate) async fn cancel_unawaited(&self, turn: TurnId) -> Result<bool, Error> {
        let pipeline = self.inner.pipeline.clone();
        run_uncancelled("cancel a nested turn", async move {
            // No input is needed: a step cancels such a turn first.
            pipeline.step(&pipeline.turns.enter(turn), |_, _| None).await
        })
        .await
    }

    /// Waits for this time of the host's clock.
    pub async fn sleep(&self, span: Span) {
        self.inner.shared.clock.sleep(span).await;
    }

    async fn visible(&self, by: &Principal, conversation: &ConversationId, turn: Loaded<Turn>) -> Result<Turn, Error> {
        match turn {
            Loaded::Found(turn) if turn.conversation == *conversation && by.may_see(conversation, &turn.caller) => {
                Ok(turn)
            }
            Loaded::Removed(tombstone) if tombstone.conversation == *conversation => {
                // The owner of the conversation was the caller of each of its turns.
                let owner = self.inner.readers.indexes.owner(conversation).await?;
                match owner.filter(|owner| by.may_see(conversation, owner)) {
                    Some(_) => Err(Error::Removed { at: tombstone.at, rule: tombstone.rule }),
                    None => Err(Error::NotFound(Resource::Turn)),
                }
            }
            Loaded::Found(_) | Loaded::Removed(_) | Loaded::Absent => Err(Error::NotFound(Resource::Turn)),
        }
    }

    /// Follows a conversation from a position on: first the commits after it, then later ones.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the conversation belongs to somebody else.
    pub async fn follow(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        after: Position,
    ) -> Result<Follower, Error> {
        self.may_follow(by, conversation).await?;
        Ok(self.follower(by, Feed::Conversation(conversation.clone()), after))
    }

    /// The position of the last commit. A follower from there gets only later ones, and reads none of the others.
    ///
    /// # Errors
    /// Faults of the store.
    pub async fn last_position(&self) -> Result<Position, Error> {
        Ok(self.inner.readers.audit.head().await?.position)
    }

    /// Attaches a client that carries out these tools for a conversation, until the attachment is dropped.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the role `client`; [`Error::NotFound`] if this client may not see the
    /// conversation.
    pub async fn attach(
        &self,
        by: &Principal,
        conversation: &ConversationId,
        tools: Vec<ToolName>,
    ) -> Result<Attachment, Error> {
        if !may_attach(by) {
            return Err(Forbidden::Attach.into());
        }
        self.may_follow(by, conversation).await?;
        let (presence, pipeline) = (self.inner.presence.clone(), self.inner.pipeline.clone());
        let attachment = Attachment::new(presence.clone(), pipeline, conversation.clone(), tools);
        presence.tell(conversation).await?;
        Ok(attachment)
    }

    /// A conversation without turns may be followed by everybody who could submit to it.
    async fn may_follow(&self, by: &Principal, conversation: &ConversationId) -> Result<(), Error> {
        let owner = self.inner.readers.indexes.owner(conversation).await?.unwrap_or_else(|| by.id.clone());
        if by.may_see(conversation, &owner) { Ok(()) } else { Err(Error::NotFound(Resource::Conversation)) }
    }

    /// The health of the store.
    #[must_use]
    pub fn store_health(&self) -> StoreHealth {
        self.inner.readers.health.health()
    }

    /// How far the time of retention is behind the clock, because the clock is far ahead of the last known time.
    #[must_use]
    pub fn retention_lag(&self) -> Span {
        Span::from_millis(self.inner.readers.retention_lag.load(Ordering::Relaxed))
    }

    /// Changes after each run of retention that removed turns.
    #[must_use]
    pub fn removals(&self) -> watch::Receiver<()> {
        self.inner.readers.removals.clone()
    }

    /// The free space of the disk in bytes. `None`: unknown.
    #[must_use]
    pub fn free_disk(&self) -> Option<u64> {
        self.inner.shared.disk.free()
    }

    /// Whether the disk has room for `bytes` bytes beside its reserve. Unknown space counts as room.
    #[must_use]
    pub fn has_room(&self, bytes: u64) -> bool {
        let needed = bytes.saturating_add(self.inner.shared.bounds.disk_reserve);
        self.free_disk().is_none_or(|free| free >= needed)
    }

    /// Whether the host refuses new turns, because the disk has less free space than its reserve.
    #[must_use]
    pub fn is_disk_low(&self) -> bool {
        self.free_disk().is_some_and(|free| free < self.inner.shared.bounds.disk_reserve)
    }

    /// Follows the ends of the stored turns that this principal may see. An admin also follows the loading and unloading
    /// of plugins.
    #[must_use]
    pub fn follow_host(&self, by: &Principal, after: Position) -> Follower {
        // A caller does not read past the turns of others.
        let feed = if by.may_see_others() { Feed::Host } else { Feed::Caller(by.id.clone()) };
        self.follower(by, feed, after)
    }

    fn follower(&self, by: &Principal, feed: Feed, after: Position) -> Follower {
        let (feeds, log) = (self.inner.pipeline.feeds.clone(), self.inner.pipeline.log.clone());
        Follower::new(feeds, log, self.inner.readers.indexes.clone(), by.clone(), feed, after)
    }
}

/// Finishes work even if the caller hangs up. Otherwise a caller that hangs up after a commit and before its effects
/// would leave a call that is recorded as running and does not run.
fn run_uncancelled<T: Send + 'static>(
    attempted: &'static str,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> impl Future<Output = Result<T, Error>> {
    // Spawned here and not when it is polled, so that the caller's future does not hold the work as well.
    tokio::spawn(work).unwrap_or_else(move |error| {
        let reason = format!("the task ended: {error}");
        Err(StoreFault::of_program(attempted, reason).into())
    })
}

fn admin(by: &Principal) -> Result<(), Error> {
    if by.roles.has(Role::Admin) { Ok(()) } else { Err(Forbidden::Admin.into()) }
}
