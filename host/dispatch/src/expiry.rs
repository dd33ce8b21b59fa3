//! What is due by itself: expiries, graces, leases. When the next one is due is an index of the store, not a timer in
//! memory, so it survives a kill.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Input, Rule, Span, Suspension, SuspensionId, Timestamp, Turn, TurnId, Verdict};
use futures::{FutureExt, StreamExt};
use tokio::sync::Notify;

use crate::dispatcher::Inner;
use crate::plan::GONE;
use crate::ports::StoreFault;
use crate::presence::clients_left;
use crate::turns::{Entered, Slot};

/// How many turns are seen to before the index is read again.
const BATCH: usize = 256;

/// How many of them are seen to at once.
const AT_ONCE: usize = 64;

/// How many turns are read at once to be counted. Each may hold megabytes.
const COUNTED_AT_ONCE: usize = 8;

/// The longest sleep. The clock may be set, and another host may have written to a shared store.
const LONGEST: Span = Span::from_secs(60);

/// How long a store that failed, or a turn that could not be seen to, is left alone.
const BACKOFF: Span = Span::from_secs(1);

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
    loop {
        // Whatever is committed from here on either is seen by the look below or rings the alarm.
        inner.alarm.planned.store(u64::MAX, Ordering::Release);
        let next = match look(&inner).await {
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
        see_to_all(inner, running, |_, _, _| Input::Restarted).await;
    }
}

/// Sees to everything that is due and says when to look again.
async fn look(inner: &Arc<Inner>) -> Result<Timestamp, StoreFault> {
    loop {
        let now = inner.parts.clock.now();
        let due = inner.parts.store.due(now, BATCH).await?;
        let nothing = due.is_empty();
        let ids = due.into_iter().map(|(id, _)| id).collect();
        let progress = see_to_all(inner, ids, |turn, slot, silent| tick(inner, turn, slot, silent)).await;
        if nothing {
            let next = inner.parts.store.due(Timestamp::MAX, 1).await?;
            return Ok(next.first().map_or(now + LONGEST, |(_, due)| due.at.min(now + LONGEST)));
        }
        if !progress {
            // Something is due that nothing can be done about. Looking again at once would spin.
            return Ok(now + BACKOFF);
        }
    }
}

fn tick(inner: &Inner, turn: &Turn, slot: &Slot, silent: &[(SuspensionId, Verdict)]) -> Input {
    let attended = turn.pending().filter(|(_, call, _)| inner.presence.attends(&turn.conversation, &call.tool));
    Input::Tick {
        alive: slot.running.keys().map(|(call, _)| *call).collect(),
        attended: attended.map(|(index, ..)| index).collect(),
        open_since: inner.open_since,
        silent: silent.to_vec(),
    }
}

/// What the policy makes by now of the calls that silence is about to approve: they have waited, and for what a client carries out
/// there is no later moment. Asked before the turn is held, because a policy may take its time.
async fn silent(inner: &Inner, entered: &Entered, id: TurnId) -> Result<Vec<(SuspensionId, Verdict)>, StoreFault> {
    let questions: Vec<_> = {
        let mut slot = entered.lock().await;
        if slot.turn.is_none() {
            slot.turn = inner.load(id).await?;
        }
        let now = inner.parts.clock.now();
        let is_over = |open: &Suspension| open.silence_approves() && open.expires_at <= now;
        let turn = slot.turn.iter().map(|(turn, _)| turn);
        let waiting = turn.flat_map(|turn| turn.pending().map(move |(_, call, open)| (turn, call, open)));
        let over = waiting.filter(|(.., open)| is_over(open));
        over.map(|(turn, call, open)| (open.id, inner.question(turn, call))).collect()
    };
    let judged = questions.into_iter().map(|(suspension, question)| async move {
        let verdict = match question {
            Some(question) => inner.parts.policy.judge(question).await,
            None => Verdict { rule: Rule::Deny, reason: Some(GONE.into()), ..Verdict::default() },
        };
        (suspension, verdict)
    });
    Ok(futures::future::join_all(judged).await)
}

/// Feeds an input to each of these turns, many at a time so that their commits share a flush. Returns whether any of them
/// changed. One turn that cannot be seen to, for whatever reason, must not keep the others from it.
async fn see_to_all(
    inner: &Arc<Inner>,
    turns: Vec<TurnId>,
    input: impl Fn(&Turn, &mut Slot, &[(SuspensionId, Verdict)]) -> Input + Send + Sync,
) -> bool {
    let seen_to = futures::stream::iter(turns).map(|id| {
        let input = &input;
        async move {
            let entered = inner.turns.enter(id);
            let step = async {
                let silent = silent(inner, &entered, id).await?;
                inner.step(&entered, id, |turn, slot| Some(input(turn, slot, &silent))).await
            };
            match AssertUnwindSafe(step).catch_unwind().await {
                Ok(Ok(changed)) => changed,
                Ok(Err(error)) => {
                    tracing::error!(turn = %id, %error, "a due turn could not be seen to");
                    false
                }
                Err(_) => {
                    tracing::error!(turn = %id, "the host panicked while it saw to a due turn");
                    false
                }
            }
        }
    });
    seen_to.buffer_unordered(AT_ONCE).fold(false, |any, changed| async move { any | changed }).await
}
