//! Silence that would approve: the policy is asked what it makes of the call by now, in tasks of their own. It may take its time, and
//! nothing else that is due waits for that.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Rule, Suspension, SuspensionId, Timestamp, Turn, TurnId, Verdict};
use futures::FutureExt;
use tokio::sync::Semaphore;

use crate::dispatcher::Inner;
use crate::error::Error;
use crate::expiry::{BACKOFF, tick};
use crate::judge::unknown;
use crate::plan::Asker;
use crate::turns::Entered;

/// How many calls are judged at once.
const AT_ONCE: usize = 64;

/// The calls that are being judged, by their suspensions. Never two for one of them.
pub(crate) struct Silence {
    turns: Mutex<HashMap<TurnId, Judged>>,
    places: Semaphore,
}

struct Judged {
    suspensions: Vec<SuspensionId>,
    /// When the turn is due for anything else.
    next: Timestamp,
}

impl Default for Silence {
    fn default() -> Self {
        Self { turns: Mutex::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl Silence {
    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, Judged>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many turns have calls that are being judged.
    pub(crate) fn len(&self) -> usize {
        self.turns().len()
    }

    /// Whether a turn is due for nothing but what is being judged.
    pub(crate) fn is_all_of(&self, id: TurnId, now: Timestamp) -> bool {
        self.turns().get(&id).is_some_and(|judged| judged.next > now)
    }

    /// When turns are next due, of which this says when they were due in all: those that are being judged only for what else there is.
    pub(crate) fn next_of(&self, all: &[(TurnId, domain::Due)]) -> Option<Timestamp> {
        let turns = self.turns();
        let others = all.iter().find(|(id, _)| !turns.contains_key(id)).map(|(_, due)| due.at);
        turns.values().map(|judged| judged.next).chain(others).min()
    }

    /// Takes in how a turn is by now, and says when it is next due besides what is being judged.
    pub(crate) fn moved(&self, turn: &Turn) -> Option<Timestamp> {
        match self.turns().get_mut(&turn.id) {
            Some(judged) => {
                judged.next = besides(turn, &judged.suspensions);
                Some(judged.next)
            }
            None => turn.next_due().map(|due| due.at),
        }
    }

    /// The calls of a turn that silence is about to approve and that are not being judged. From now on they are.
    pub(crate) fn begin(&self, turn: &Turn, now: Timestamp) -> Vec<SuspensionId> {
        let over = turn.pending().filter(|(.., open)| is_over(open, now)).map(|(.., open)| open.id);
        let mut turns = self.turns();
        let known = turns.get(&turn.id).map_or(&[][..], |judged| &judged.suspensions);
        let new: Vec<_> = over.filter(|id| !known.contains(id)).collect();
        if !new.is_empty() || !known.is_empty() {
            let judged = turns.entry(turn.id).or_insert(Judged { suspensions: Vec::new(), next: Timestamp::MAX });
            judged.suspensions.extend(&new);
            judged.next = besides(turn, &judged.suspensions);
        }
        new
    }

    /// What was decided has moved the turn. What was not is due as before, whatever the other calls wait for.
    fn end(&self, id: TurnId, suspension: SuspensionId, decided: bool) {
        let mut turns = self.turns();
        if let Some(judged) = turns.get_mut(&id) {
            judged.suspensions.retain(|known| *known != suspension);
            if judged.suspensions.is_empty() {
                turns.remove(&id);
            } else if !decided {
                judged.next = Timestamp::from_millis(0);
            }
        }
    }
}

fn is_over(open: &Suspension, now: Timestamp) -> bool {
    open.silence_approves() && open.expires_at <= now
}

fn besides(turn: &Turn, judged: &[SuspensionId]) -> Timestamp {
    turn.next_due_besides(judged).map_or(Timestamp::MAX, |due| due.at)
}

/// Judges a call that nobody answered, and feeds what comes of it to its turn. Whatever ended the call meanwhile stands.
pub(crate) async fn judge(inner: Arc<Inner>, id: TurnId, suspension: SuspensionId) {
    // Never closed.
    let place = inner.silence.places.acquire().await;
    let decided = match AssertUnwindSafe(decide(&inner, id, suspension)).catch_unwind().await {
        Ok(decided) => decided.map_err(|error| error.to_string()),
        Err(_) => Err("the host panicked".to_owned()),
    };
    drop(place);
    if let Err(error) = &decided {
        tracing::error!(turn = %id, error, "a call that nobody answered could not be judged");
        inner.parts.clock.sleep_until(inner.parts.clock.now() + BACKOFF).await;
    }
    inner.silence.end(id, suspension, decided.unwrap_or(false));
    // Whatever the turn is due for by now was looked at without this.
    inner.alarm.no_later_than(inner.parts.clock.now());
}

/// Says whether it came to anything.
async fn decide(inner: &Arc<Inner>, id: TurnId, suspension: SuspensionId) -> Result<bool, Error> {
    let entered = inner.turns.enter(id);
    // Asked before the turn is held. What it is asked about cannot change: the time for an answer with other arguments is over.
    let Some(verdict) = verdict(inner, &entered, id, suspension).await? else { return Ok(false) };
    let silent = [(suspension, verdict)];
    inner.step(&entered, id, |turn, slot| Some(tick(inner, turn, slot, &silent))).await
}

/// What the policy makes of the call. `None`: nothing waits for that any more.
async fn verdict(
    inner: &Inner,
    entered: &Entered,
    id: TurnId,
    suspension: SuspensionId,
) -> Result<Option<Verdict>, Error> {
    let (asker, call) = {
        let mut slot = entered.lock().await;
        if slot.turn.is_none() {
            slot.turn = inner.load(id).await?;
        }
        let Some((turn, _)) = &slot.turn else { return Ok(None) };
        let now = inner.parts.clock.now();
        let mut pending = turn.pending();
        let Some((_, call, _)) = pending.find(|(.., open)| open.id == suspension && is_over(open, now)) else {
            return Ok(None);
        };
        (Asker::of(turn), call.clone())
    };
    let Some(pinned) = &call.pinned else { return Ok(None) };
    let judged = inner.judge(&asker, pinned, &call.tool, &call.arguments).await;
    let unjudged = |outcome| Verdict { rule: Rule::Deny, reason: Some(unknown(outcome).into()), ..Verdict::default() };
    Ok(Some(judged.unwrap_or_else(unjudged)))
}
