//! Silence that would approve: the policy is asked what it makes of the call by now, in tasks of their own. It may take its time, and
//! nothing else that is due waits for that.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{Due, OnExpiry, PrincipalId, Rule, Suspension, SuspensionId, Timestamp, Turn, TurnId, Verdict};
use futures::FutureExt;
use tokio::sync::Semaphore;

use crate::dispatcher::Inner;
use crate::error::Error;
use crate::expiry::{BACKOFF, LONGEST, tick};
use crate::judge::unknown;
use crate::plan::Asker;
use crate::turns::Entered;

/// How many calls are judged at once.
const AT_ONCE: usize = 64;

/// How many of them are one caller's, so that nobody waits for more of each of the others.
const AT_ONCE_OF_EACH: usize = 16;

/// The calls that are being judged, by their suspensions. Never two for one of them.
pub(crate) struct Silence {
    state: Mutex<State>,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    turns: HashMap<TurnId, Judged>,
    /// The places of each caller who has calls here.
    callers: HashMap<PrincipalId, Arc<Semaphore>>,
    /// Up to here, whatever the index of what is due has is being judged.
    passed: Option<(Timestamp, TurnId)>,
    /// What became due since the last look became so at this time, at the earliest.
    became_due: Option<Timestamp>,
    /// When the index was last looked at from its beginning.
    began: Option<Timestamp>,
}

struct Judged {
    suspensions: Vec<SuspensionId>,
    /// When the turn is due for anything else.
    next: Timestamp,
}

impl Default for Silence {
    fn default() -> Self {
        Self { state: Mutex::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl Silence {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something of a turn is being judged.
    pub(crate) fn judges(&self, id: TurnId) -> bool {
        self.state().turns.contains_key(&id)
    }

    /// The turns that are due for something else than what is being judged.
    pub(crate) fn due_besides(&self, now: Timestamp) -> Vec<TurnId> {
        self.state().turns.iter().filter(|(_, judged)| judged.next <= now).map(|(id, _)| *id).collect()
    }

    /// When the first of these turns is due for something else.
    pub(crate) fn next_besides(&self) -> Option<Timestamp> {
        self.state().turns.values().map(|judged| judged.next).min()
    }

    /// Behind what a look at the index begins. Now and then it begins at the beginning: another host may have written to a shared
    /// store.
    pub(crate) fn resume(&self, now: Timestamp) -> Option<(Timestamp, TurnId)> {
        let mut state = self.state();
        let became_due = state.became_due.take();
        let is_whole = state.passed.is_none_or(|(at, _)| became_due.is_some_and(|due| due <= at))
            || state.began.is_none_or(|began| began + LONGEST <= now);
        if is_whole {
            state.passed = None;
            state.began = Some(now);
        }
        state.passed
    }

    /// The next turns of the index. From now on those at its front that are being judged are not looked at. Says whether all are.
    pub(crate) fn pass(&self, page: &[(TurnId, Due)]) -> bool {
        let mut state = self.state();
        for (id, due) in page {
            if !state.turns.contains_key(id) || state.became_due.is_some_and(|at| at <= due.at) {
                return false;
            }
            state.passed = Some((due.at, *id));
        }
        true
    }

    /// The places of a caller, to be given back by [`Silence::leave`].
    fn places_of(&self, caller: &PrincipalId) -> Arc<Semaphore> {
        let mut state = self.state();
        let places = state.callers.entry(caller.clone()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE_OF_EACH)));
        places.clone()
    }

    fn leave(&self, caller: &PrincipalId, places: Arc<Semaphore>) {
        let mut state = self.state();
        drop(places);
        if state.callers.get(caller).is_some_and(|places| Arc::strong_count(places) == 1) {
            state.callers.remove(caller);
        }
    }

    /// Takes in how a turn is by now, and says when it is next due besides what is being judged.
    pub(crate) fn moved(&self, turn: &Turn) -> Option<Timestamp> {
        let mut state = self.state();
        if let Some(judged) = state.turns.get_mut(&turn.id) {
            judged.next = besides(turn, &judged.suspensions);
            return Some(judged.next);
        }
        let at = turn.next_due()?.at;
        state.becomes_due(at);
        Some(at)
    }

    /// The calls of a turn that silence is about to approve and that are not being judged. From now on they are.
    pub(crate) fn begin(&self, turn: &Turn, now: Timestamp) -> Vec<SuspensionId> {
        let over = turn.pending().filter(|(.., open)| is_over(open, now)).map(|(.., open)| open.id);
        let turns = &mut self.state().turns;
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
        let mut state = self.state();
        let Some(judged) = state.turns.get_mut(&id) else { return };
        judged.suspensions.retain(|known| *known != suspension);
        if !decided {
            judged.next = Timestamp::from_millis(0);
        }
        let (next, is_last) = (judged.next, judged.suspensions.is_empty());
        if is_last {
            state.turns.remove(&id);
            state.becomes_due(next);
        }
    }
}

impl State {
    /// Something that is not judged stands in the index at this time.
    fn becomes_due(&mut self, at: Timestamp) {
        self.became_due = Some(self.became_due.map_or(at, |before| before.min(at)));
    }
}

fn is_over(open: &Suspension, now: Timestamp) -> bool {
    open.silence_approves() && open.expires_at <= now
}

fn besides(turn: &Turn, judged: &[SuspensionId]) -> Timestamp {
    turn.next_due_besides(judged).map_or(Timestamp::MAX, |due| due.at)
}

/// Judges a call that nobody answered, and feeds what comes of it to its turn. Whatever ended the call meanwhile stands.
pub(crate) async fn judge(inner: Arc<Inner>, id: TurnId, suspension: SuspensionId, caller: PrincipalId) {
    let own = inner.silence.places_of(&caller);
    // Never closed. Its caller's comes first: whoever has many waits for a place of their own.
    let places = (own.acquire().await, inner.silence.places.acquire().await);
    let decided = match AssertUnwindSafe(decide(&inner, id, suspension)).catch_unwind().await {
        Ok(decided) => decided.map_err(|error| error.to_string()),
        Err(_) => Err("the host panicked".to_owned()),
    };
    drop(places);
    inner.silence.leave(&caller, own);
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
    let live = match inner.recalled(pinned, &call.tool).await {
        Ok(live) => live,
        Err(outcome) => {
            let reason = Some(unknown(outcome).into());
            return Ok(Some(Verdict { rule: Rule::Deny, reason, ..Verdict::default() }));
        }
    };
    let verdict = inner.parts.policy.judge(asker.question(&live, &call.arguments)).await;
    // The operator may have taken back that silence approves calls of this tool, and then only a person does.
    let rule = if live.wait.on_expiry == OnExpiry::Approve { verdict.rule } else { verdict.rule.max(Rule::Ask) };
    Ok(Some(Verdict { rule, ..verdict }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    /// The index: a turn due at each of the first seconds.
    fn page(turns: u64) -> Vec<(TurnId, Due)> {
        (1..=turns).map(|n| (TurnId::from_bits(n.into()), Due { at: at(n), running: false })).collect()
    }

    fn judging(turns: impl IntoIterator<Item = u128>) -> Silence {
        let silence = Silence::default();
        for turn in turns {
            let judged = Judged { suspensions: vec![SuspensionId::from_bits(turn)], next: Timestamp::MAX };
            silence.state().turns.insert(TurnId::from_bits(turn), judged);
        }
        silence
    }

    fn place(turn: u64) -> Option<(Timestamp, TurnId)> {
        Some((at(turn), TurnId::from_bits(turn.into())))
    }

    #[test]
    fn a_look_begins_behind_what_is_being_judged_and_before_all_else() {
        let silence = judging([1, 2, 4]);
        assert_eq!(silence.resume(at(9)), None);
        assert!(!silence.pass(&page(4)), "the third is not judged");
        assert_eq!(silence.resume(at(9)), place(2));
        assert_eq!((silence.judges(TurnId::from_bits(4)), silence.judges(TurnId::from_bits(3))), (true, false));
    }

    #[test]
    fn what_becomes_due_before_that_is_not_passed_over() {
        for meanwhile in [false, true] {
            let silence = judging(1..=4);
            assert_eq!(silence.resume(at(9)), None);
            if meanwhile {
                silence.state().becomes_due(at(3));
                assert!(!silence.pass(&page(4)), "it may stand between those that were read before");
                assert_eq!(silence.resume(at(9)), place(2));
                assert!(silence.pass(&page(4)[2..]));
            } else {
                assert!(silence.pass(&page(4)));
            }
            silence.state().becomes_due(at(5));
            assert_eq!(silence.resume(at(9)), place(4));
            silence.end(TurnId::from_bits(3), SuspensionId::from_bits(3), false);
            assert_eq!(silence.resume(at(9)), None, "one that could not be judged is due as before");
        }
    }

    #[test]
    fn a_look_begins_at_the_beginning_now_and_then() {
        let silence = judging(1..=4);
        assert_eq!(silence.resume(at(9)), None);
        assert!(silence.pass(&page(4)));
        assert_eq!(silence.resume(at(68)), place(4));
        assert_eq!(silence.resume(at(9) + LONGEST), None);
    }
}
