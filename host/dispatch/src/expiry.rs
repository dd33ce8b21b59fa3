//! What is due by itself: expiries, graces, leases. When the next one is due is an index of the store, not a timer in
//! memory, so it survives a kill.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Input, PrincipalId, Span, SuspensionId, Timestamp, Turn, TurnId, Verdict};
use futures::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::dispatcher::Inner;
use crate::error::Error;
use crate::ports::StoreFault;
use crate::presence::clients_left;
use crate::silence::judge;
use crate::turns::Slot;

/// How many turns are read of an index at once.
const BATCH: usize = 256;

/// How many of them are seen to at once.
const AT_ONCE: usize = 64;

/// How many turns are read at once to be counted. Each may hold megabytes.
const COUNTED_AT_ONCE: usize = 8;

/// The longest sleep. The clock may be set, and another host may have written to a shared store.
pub(crate) const LONGEST: Span = Span::from_secs(60);

/// How long a store that failed, or a turn that could not be seen to, is left alone.
pub(crate) const BACKOFF: Span = Span::from_secs(1);

/// Wakes the watch when something becomes due before it meant to look again.
#[derive(Default)]
pub(crate) struct Alarm {
    planned: AtomicU64,
    wake: Notify,
}

impl Alarm {
    /// Something is due at this time.
    pub(crate) fn no_later_than(&self, at: Timestamp) {
        if at.millis() < self.planned.load(Ordering::Acquire) {
            self.wake.notify_one();
        }
    }
}

/// Recovers what a killed host left, then sees to what is due, for as long as the host lives.
pub(crate) async fn watch(inner: Arc<Inner>) {
    loop {
        let counted = count(&inner).await;
        inner.ledger.counted(counted.clone());
        let recovered = if counted.is_ok() { recover(&inner).await } else { counted };
        let Err(error) = recovered else { break };
        tracing::error!(%error, "what the last run left could not be read");
        inner.parts.clock.sleep_until(inner.parts.clock.now() + BACKOFF).await;
    }
    // Judged as long as this is: with the host it ends.
    let mut judging = JoinSet::new();
    loop {
        // Whatever is committed from here on either is seen by the look below or rings the alarm.
        inner.alarm.planned.store(u64::MAX, Ordering::Release);
        let next = match look(&inner, &mut judging).await {
            Ok(next) => next,
            Err(error) => {
                tracing::error!(%error, "what is due could not be read");
                inner.parts.clock.now() + BACKOFF
            }
        };
        inner.alarm.planned.store(next.millis(), Ordering::Release);
        tokio::select! {
            () = inner.parts.clock.sleep_until(next) => {}
            () = inner.alarm.wake.notified() => {}
        }
    }
}

/// Counts what each principal's turns hold, before anything new is admitted. A turn that cannot be read counts for nothing:
/// it must not keep everybody from submitting.
async fn count(inner: &Arc<Inner>) -> Result<(), StoreFault> {
    let mut after = None;
    loop {
        let page = inner.parts.store.unfinished(after, BATCH).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(*last);
        let counted = futures::stream::iter(page).map(|(id, _)| async move {
            let entered = inner.turns.enter(id);
            let mut slot = entered.lock().await;
            if slot.turn.is_none() {
                match inner.load(id).await {
                    Ok(loaded) => slot.turn = loaded,
                    Err(error) => tracing::error!(turn = %id, %error, "a turn could not be counted"),
                }
            }
            if let Some((turn, _)) = &slot.turn {
                inner.ledger.found(turn);
            }
        });
        counted.buffer_unordered(COUNTED_AT_ONCE).collect::<()>().await;
    }
}

/// Feeds `Restarted` to every turn of which a call was running, and gives clients the time to attach again.
async fn recover(inner: &Arc<Inner>) -> Result<(), StoreFault> {
    let mut after = None;
    loop {
        let page = inner.parts.store.unfinished(after, BATCH).await?;
        let Some((last, _)) = page.last() else { return clients_left(inner, None).await };
        after = Some(*last);
        let running = page.into_iter().filter(|(_, due)| due.running).map(|(id, _)| id).collect();
        see_to_all(running, |id| restarted(inner, id)).await;
    }
}

async fn restarted(inner: &Arc<Inner>, id: TurnId) -> Result<bool, Error> {
    let entered = inner.turns.enter(id);
    inner.step(&entered, id, |_, _| Some(Input::Restarted)).await
}

/// Sees to everything that is due and says when to look again. What silence is about to approve is judged beside that, and is not
/// read again meanwhile.
async fn look(inner: &Arc<Inner>, judging: &mut JoinSet<()>) -> Result<Timestamp, StoreFault> {
    while judging.try_join_next().is_some() {}
    let (silence, store, now) = (&inner.silence, &inner.parts.store, inner.parts.clock.now());
    let (mut after, mut passes, mut stuck) = (silence.resume(now), true, false);
    let mut turns = silence.due_besides(now);
    loop {
        let page = store.due(after, now, BATCH).await?;
        turns.extend(page.iter().map(|(id, _)| *id).filter(|id| !silence.judges(*id)));
        stuck |= !see_to_these(inner, std::mem::take(&mut turns), judging).await;
        passes = passes && silence.pass(&page);
        after = page.last().map(|(id, due)| (due.at, *id));
        if page.len() < BATCH {
            break;
        }
    }
    let later = store.due(Some((now, TurnId::from_bits(u128::MAX))), Timestamp::MAX, 1).await?;
    if stuck {
        // Something is due that nothing can be done about. Looking again at once would spin.
        return Ok(later.first().map_or(now + BACKOFF, |(_, due)| due.at.min(now + BACKOFF)));
    }
    let next = later.first().map(|(_, due)| due.at).into_iter().chain(silence.next_besides()).min();
    Ok(next.map_or(now + LONGEST, |at| at.min(now + LONGEST)))
}

/// Sees to turns that are due. Says whether something came of each.
async fn see_to_these(inner: &Arc<Inner>, turns: Vec<TurnId>, judging: &mut JoinSet<()>) -> bool {
    let due = turns.len();
    let mut moved = 0;
    for (id, (changed, silent)) in see_to_all(turns, |id| see_to(inner, id)).await {
        moved += usize::from(changed || !silent.is_empty());
        for (suspension, caller) in silent {
            judging.spawn(judge(inner.clone(), id, suspension, caller));
        }
    }
    moved == due
}

/// Feeds a tick to a turn. Returns whether it changed, and what of it is to be judged, with whose it is.
async fn see_to(inner: &Arc<Inner>, id: TurnId) -> Result<(bool, Vec<(SuspensionId, PrincipalId)>), Error> {
    let entered = inner.turns.enter(id);
    let changed = inner.step(&entered, id, |turn, slot| Some(tick(inner, turn, slot, &[]))).await?;
    let slot = entered.lock().await;
    let Some((turn, _)) = &slot.turn else { return Ok((changed, Vec::new())) };
    let silent = inner.silence.begin(turn, inner.parts.clock.now()).into_iter();
    Ok((changed, silent.map(|suspension| (suspension, turn.caller.clone())).collect()))
}

/// The time passes, for a turn. `silent` is what the policy made of calls that nobody answered.
pub(crate) fn tick(inner: &Inner, turn: &Turn, slot: &Slot, silent: &[(SuspensionId, Verdict)]) -> Input {
    let attended = turn.pending().filter(|(_, call, _)| inner.presence.attends(&turn.conversation, &call.tool));
    Input::Tick {
        alive: slot.running.keys().map(|(call, _)| *call).collect(),
        attended: attended.map(|(index, ..)| index).collect(),
        open_since: inner.open_since,
        silent: silent.to_vec(),
    }
}

/// Sees to each of these turns, many at a time so that their commits share a flush. One that cannot be seen to, for whatever
/// reason, must not keep the others from it.
async fn see_to_all<T: Send, F: Future<Output = Result<T, Error>> + Send>(
    turns: Vec<TurnId>,
    see_to: impl Fn(TurnId) -> F + Send + Sync,
) -> Vec<(TurnId, T)> {
    let seen_to = futures::stream::iter(turns).map(|id| {
        let step = see_to(id);
        async move {
            match AssertUnwindSafe(step).catch_unwind().await {
                Ok(Ok(seen)) => Some((id, seen)),
                Ok(Err(error)) => {
                    tracing::error!(turn = %id, %error, "a due turn could not be seen to");
                    None
                }
                Err(_) => {
                    tracing::error!(turn = %id, "the host panicked while it saw to a due turn");
                    None
                }
            }
        }
    });
    seen_to.buffer_unordered(AT_ONCE).filter_map(async |seen| seen).collect().await
}
