//! The only loop: load, decide, commit, publish, perform. Whatever happens to a turn goes through [`Inner::step`].

use std::sync::Arc;

use domain::{Context, Input, OwnerId, Rules, Timestamp, Turn, TurnId};
use tokio::runtime;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::feed::Feeds;
use crate::handle::Handle;
use crate::inbox::Inbox;
use crate::ledger::{Admission, Ledger};
use crate::ports::{AppendError, Clock, Commit, Policy, Store, StoreFault, Subscribers, Tools};
use crate::presence::Presence;
use crate::quota::Quotas;
use crate::request::Bounds;
use crate::silence::Silence;
use crate::standing::{self, Standings};
use crate::turns::{Entered, Slot, Turns};
use crate::{expiry, forget, index, outbox};

/// How often a decision is made anew because another process appended first. More often than this is a fault.
const CONFLICTS: usize = 16;

/// What a host is made of.
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The live tools.
    pub tools: Arc<dyn Tools>,
    /// Who decides that a person is needed.
    pub policy: Arc<dyn Policy>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where guests run: threads of their own, so that a spinning guest delays nobody else.
    pub guests: runtime::Handle,
    /// This run of the host: what the starts of its calls name as their owner.
    pub owner: OwnerId,
    /// Makes 128 bits that were never made before, and that sort by time.
    pub mint: Arc<dyn Fn() -> u128 + Send + Sync>,
    /// The operator's rules.
    pub rules: Rules,
    /// Bounds on what may be sent.
    pub bounds: Bounds,
    /// What each principal may have at once.
    pub quotas: Quotas,
    /// Who is told of suspensions; `()` is nobody.
    pub subscribers: Arc<dyn Subscribers>,
}

/// A running host. Dropping it stops what it does by itself; calls that run are recovered by the next one.
pub struct Host {
    inner: Arc<Inner>,
    watching: [JoinHandle<()>; 2],
}

impl Host {
    /// Starts a host: recovers what a killed one left, and from then on sees to what is due.
    ///
    /// Must be called in a tokio runtime, which it uses for everything but the guests.
    pub fn start(mut parts: Parts) -> Self {
        let ledger = Arc::new(Ledger::new(std::mem::take(&mut parts.quotas)));
        let inner = Arc::new(Inner {
            owner: parts.owner,
            open_since: parts.clock.now(),
            turns: Arc::default(),
            feeds: Feeds::default(),
            inbox: Inbox::default(),
            presence: Presence::default(),
            alarm: expiry::Alarm::default(),
            silence: Silence::default(),
            ledger,
            standings: Arc::default(),
            parts,
        });
        let watching = [tokio::spawn(expiry::watch(inner.clone())), tokio::spawn(forget::watch(inner.clone()))];
        Self { inner, watching }
    }

    /// What doors hold.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(self.inner.clone())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.watching.iter().for_each(JoinHandle::abort);
    }
}

/// What the parts of this crate share.
pub(crate) struct Inner {
    pub(crate) parts: Parts,
    pub(crate) owner: OwnerId,
    pub(crate) open_since: Timestamp,
    pub(crate) turns: Arc<Turns>,
    pub(crate) feeds: Feeds,
    pub(crate) inbox: Inbox,
    pub(crate) presence: Presence,
    pub(crate) alarm: expiry::Alarm,
    pub(crate) silence: Silence,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) standings: Arc<Standings>,
}

impl Inner {
    /// Decides with a fresh context.
    pub(crate) fn with_context<T>(&self, decide: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let mut mint = || (self.parts.mint)();
        let now = self.parts.clock.now();
        decide(&mut Context { now, owner: self.owner, rules: &self.parts.rules, mint: &mut mint })
    }

    /// Feeds an input to a turn. The input is made from the turn as it is at that moment; `None` leaves it as it is.
    /// Returns whether anything changed.
    pub(crate) async fn step(
        self: &Arc<Self>,
        entered: &Entered,
        id: TurnId,
        input: impl Fn(&Turn, &mut Slot) -> Option<Input> + Send,
    ) -> Result<bool, Error> {
        let mut slot = entered.lock().await;
        for _ in 0..CONFLICTS {
            let (turn, version) = match slot.turn.take() {
                Some(known) => known,
                None => self.load(id).await?.ok_or(Error::NotFound("turn"))?,
            };
            let decided = match input(&turn, &mut slot) {
                None => Ok(None),
                Some(input) => self.with_context(|cx| turn.decide(input, cx)).map(Some),
            };
            let (events, next) = match decided {
                Ok(Some((events, next))) if !events.is_empty() => (events, next),
                unchanged => {
                    slot.turn = Some((turn, version));
                    return unchanged.map(|_| false).map_err(Error::from);
                }
            };
            let index = index::changes(Some(&turn), &events, &next);
            let index = outbox::with_deliveries(index, self.parts.subscribers.as_ref(), Some(&turn), &next);
            let owes = outbox::owes(&index);
            let standings = standing::of(&index);
            let conversation = turn.conversation.clone();
            let commit = Commit { turn: id, conversation, expected: version, index, events };
            match self.parts.store.append(commit).await {
                Ok(_) => {
                    if owes {
                        self.parts.subscribers.owed();
                    }
                    self.standings.committed(&standings);
                    self.ledger.moved(&turn, &next);
                    self.inbox.moved(Some(&turn), &next);
                    self.committed(entered, &mut slot, next, version + 1, None);
                    return Ok(true);
                }
                Err(AppendError::Conflict) => {}
                Err(AppendError::Fault(fault)) => return Err(fault.into()),
                Err(error) => return Err(fault("extend a turn", &error).into()),
            }
        }
        Err(fault("extend a turn", &AppendError::Conflict).into())
    }

    /// A commit is on disk: publish it, and perform what the new state owes.
    pub(crate) fn committed(
        self: &Arc<Self>,
        entered: &Entered,
        slot: &mut Slot,
        turn: Turn,
        version: u32,
        admission: Option<&mut Admission>,
    ) {
        self.feeds.committed(&turn.conversation);
        if let Some(at) = self.silence.moved(&turn) {
            self.alarm.no_later_than(at);
        }
        self.perform(&turn, slot, admission);
        slot.turn = Some((turn, version));
        entered.count_commit();
    }

    /// A turn as the store has it, with the number of its commits.
    pub(crate) async fn load(&self, id: TurnId) -> Result<Option<(Turn, u32)>, StoreFault> {
        let Some(loaded) = self.parts.store.load(id).await? else { return Ok(None) };
        let turn = Turn::replay(&loaded.events).ok_or_else(|| StoreFault {
            attempted: "load a turn",
            reason: format!("the log of {id} does not begin with the start of a turn"),
        })?;
        Ok(Some((turn, loaded.version)))
    }

    /// A turn as it is now.
    pub(crate) async fn read(&self, entered: &Entered, id: TurnId) -> Result<Option<Turn>, StoreFault> {
        let mut slot = entered.lock().await;
        if slot.turn.is_none() {
            slot.turn = self.load(id).await?;
        }
        Ok(slot.turn.as_ref().map(|(turn, _)| turn.clone()))
    }
}

/// A commit that the store should never have refused.
pub(crate) fn fault(attempted: &'static str, error: &AppendError) -> StoreFault {
    StoreFault { attempted, reason: error.to_string() }
}
