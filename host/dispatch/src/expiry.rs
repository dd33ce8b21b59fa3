//! Handles turns that become due: expiries, grace periods, leases. The due times are an index of the store and not timers
//! in memory, so they survive a kill.

mod granting;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::{
    PrincipalId, Span, SuspensionId, Timestamp, TurnId,
    effect::Due,
    gate::Verdict,
    turn::{Input, Tick},
};
use futures::{FutureExt, StreamExt};
use tokio::task::JoinSet;

use crate::alarm::MAX_SLEEP;
use crate::error::Error;
use crate::nested::NestedTurns;
use crate::pipeline::Pipeline;
use crate::ports::{Indexes, Peers, StoreFault};
use crate::presence::Presence;
use crate::turns::Entered;

/// How many turns are read from an index at once.
const BATCH: usize = 256;

/// How many of them get their input at once.
const MAX_AT_ONCE: usize = 64;

/// How many turns are loaded at once to be counted. Each may hold megabytes.
const MAX_COUNTED_AT_ONCE: usize = 8;

/// How long to wait after the store failed, or after a due turn could not be handled.
const BACKOFF: Span = Span::from_secs(1);

/// Recovers the turns of a killed host, then feeds a tick to every turn that is due.
pub(crate) struct Expiry {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) indexes: Arc<dyn Indexes>,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) presence: Arc<Presence>,
    pub(crate) nested: Arc<NestedTurns>,
    /// Since when clients could attach to this host.
    pub(crate) open_since: Timestamp,
}

impl Expiry {
    /// Works for as long as the host lives.
    pub(crate) async fn watch(self: Arc<Self>) {
        let clock = &self.pipeline.shared.clock;
        while let Err(error) = self.take_over().await {
            tracing::error!(%error, "the turns of the last run could not be read");
            clock.sleep(BACKOFF).await;
        }
        let alarm = &self.pipeline.timers.alarm;
        // These tasks end together with this one.
        let mut rechecks = JoinSet::new();
        loop {
            // A commit from here on is either seen by the scan below or wakes it.
            alarm.plan(Timestamp::MAX);
            let next = self.look(&mut rechecks).await.unwrap_or_else(|error| {
                tracing::error!(%error, "the turns that are due could not be read");
                clock.now() + BACKOFF
            });
            alarm.plan(next);
            tokio::select! {
                () = clock.sleep_until(next) => {}
                () = alarm.rings() => {}
            }
        }
    }

    async fn take_over(&self) -> Result<(), StoreFault> {
        if self.peers.is_shared() {
            // The store counts for all hosts.
            self.pipeline.tracker.counted(Ok(()));
        } else {
            let counted = self.count().await;
            self.pipeline.tracker.counted(counted.clone());
            counted?;
        }
        self.recover().await
    }

    /// Counts the usage of each principal, before the host accepts anything new, and looks at nested turns. A turn that cannot be
    /// read counts for nothing, so that everybody can still submit.
    async fn count(&self) -> Result<(), StoreFault> {
        let pipeline = &self.pipeline;
        let mut after = None;
        loop {
            let page = self.indexes.unfinished(after, BATCH).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(*last);
            let counted = futures::stream::iter(page).map(|(id, _)| async move {
                let entered = pipeline.turns.enter(id);
                match entered.loaded(pipeline.log.as_ref()).await {
                    Ok(slot) => slot.turn.iter().for_each(|(turn, _)| {
                        pipeline.tracker.found(turn);
                        self.nested.found(turn);
                    }),
                    Err(error) => tracing::error!(turn = %id, %error, "a turn could not be counted"),
                }
            });
            counted.buffer_unordered(MAX_COUNTED_AT_ONCE).collect::<()>().await;
        }
    }

    /// Tells every turn with a call that a host ran which has ended, and gives clients the time to attach again. Each of several hosts
    /// does this, because they may not agree about their shares now. Only the first one changes anything.
    pub(crate) async fn recover(&self) -> Result<(), StoreFault> {
        let mut after = None;
        loop {
            let page = self.indexes.unfinished(after, BATCH).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            let running = page.into_iter().filter(|(_, due)| due.running).map(|(id, _)| id).collect();
            each(running, |id| async move {
                let entered = self.pipeline.turns.enter(id);
                let ended = self.pipeline.ended_hosts(&entered).await?;
                if ended.owners.is_empty() {
                    return Ok(false);
                }
                self.pipeline.step(&entered, |_, _| Some(Input::HostsEnded(ended.clone()))).await
            })
            .await;
        }
        self.presence.clients_left(&self.pipeline, None).await?;
        // The host that has ended may have left nested turns that it had to submit, continue or cancel.
        if self.peers.is_shared() { self.count().await } else { Ok(()) }
    }

    /// Feeds a tick to each due turn. Returns when to look again. Skips turns while the policy rechecks one of their
    /// calls.
    async fn look(self: &Arc<Self>, rechecks: &mut JoinSet<()>) -> Result<Timestamp, StoreFault> {
        while rechecks.try_join_next().is_some() {}
        let (approvals, now) = (&self.pipeline.timers.timeout_approvals, self.pipeline.shared.clock.now());
        let (mut after, mut passes, mut stuck) = (approvals.resume(now), true, false);
        let mut turns = approvals.due_besides(now);
        let share = self.peers.share();
        loop {
            let page = self.indexes.due(after, now, BATCH).await?;
            // The lease of a running call concerns its host, and those who recover it.
            let is_own = |(id, due): &&(TurnId, Due)| share.has_turn(*id) || due.running;
            let own = page.iter().filter(is_own).map(|(id, _)| *id);
            turns.extend(own.filter(|id| !approvals.rechecks(*id)));
            stuck |= !self.handle(std::mem::take(&mut turns), rechecks).await;
            passes = passes && approvals.pass(&page);
            after = page.last().map(|(id, due)| (due.at, *id));
            if page.len() < BATCH {
                break;
            }
        }
        let later = self.indexes.due(Some((now, TurnId::from_bits(u128::MAX))), Timestamp::MAX, 1).await?;
        if stuck {
            // A due turn could not be handled. Trying again at once would spin.
            return Ok(later.first().map_or(now + BACKOFF, |(_, due)| due.at.min(now + BACKOFF)));
        }
        let next = later.first().map(|(_, due)| due.at).into_iter().chain(approvals.next_besides()).min();
        Ok(next.map_or(now + MAX_SLEEP, |at| at.min(now + MAX_SLEEP)))
    }

    /// Feeds a tick to turns that are due. Returns whether each one changed.
    async fn handle(self: &Arc<Self>, turns: Vec<TurnId>, rechecks: &mut JoinSet<()>) -> bool {
        let due = turns.len();
        let mut moved = 0;
        for (changed, timed_out) in each(turns, |id| self.tick_one(id)).await {
            moved += usize::from(changed || !timed_out.is_empty());
            for (turn, suspension, caller) in timed_out {
                rechecks.spawn(self.clone().recheck(turn, suspension, caller));
            }
        }
        moved == due
    }

    /// Feeds a tick to a turn. Returns whether it changed, and which calls are to be rechecked, with their caller.
    async fn tick_one(&self, id: TurnId) -> Result<(bool, Vec<(TurnId, SuspensionId, PrincipalId)>), Error> {
        let entered = self.pipeline.turns.enter(id);
        let changed = match self.tick(&entered, &[]).await {
            // It stays as it is. Trying again would not help.
            Err(error) if error.is_damage() => return Ok((true, Vec::new())),
            changed => changed?,
        };
        let slot = entered.lock().await;
        let Some((turn, _)) = &slot.turn else { return Ok((changed, Vec::new())) };
        let timed_out = self.pipeline.timers.timeout_approvals.begin(turn, self.pipeline.shared.clock.now());
        Ok((changed, timed_out.into_iter().map(|suspension| (id, suspension, turn.caller.clone())).collect()))
    }

    /// Tells a turn that time has passed. `rechecked` holds the verdicts on calls that a timeout would approve.
    async fn tick(&self, entered: &Entered, rechecked: &[(SuspensionId, Verdict)]) -> Result<bool, Error> {
        let ended = self.pipeline.ended_hosts(entered).await?;
        let elsewhere = self.presence.elsewhere(entered, self.pipeline.log.as_ref()).await?;
        let ticked = self.pipeline.step(entered, |turn, slot| {
            let attended =
                turn.pending().filter(|(_, call, _)| self.presence.attends(&turn.conversation, &call.tool, &elsewhere));
            Some(Input::Tick(Tick {
                alive: slot.running.keys().map(|(call, _)| *call).collect(),
                attended: attended.map(|(index, ..)| index).collect(),
                open_since: self.open_since,
                rechecked: rechecked.to_vec(),
                ended: ended.clone(),
            }))
        });
        ticked.await
    }
}

/// Handles each of these turns, many at a time so that their commits share a flush. A failure of one does not stop the
/// others.
async fn each<T: Send, F: Future<Output = Result<T, Error>> + Send>(
    turns: Vec<TurnId>,
    handle: impl Fn(TurnId) -> F + Send + Sync,
) -> Vec<T> {
    let handled = futures::stream::iter(turns).map(|id| {
        let step = handle(id);
        async move {
            match AssertUnwindSafe(step).catch_unwind().await {
                Ok(Ok(value)) => Some(value),
                Ok(Err(error)) => {
                    tracing::error!(turn = %id, %error, "a turn that is due could not be handled");
                    None
                }
                Err(_) => {
                    tracing::error!(turn = %id, "the host panicked while it handled a turn that is due");
                    None
                }
            }
        }
    });
    handled.buffer_unordered(MAX_AT_ONCE).filter_map(async |value| value).collect().await
}
