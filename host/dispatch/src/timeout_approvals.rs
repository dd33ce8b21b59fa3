//! Approvals that a timeout would grant. Before granting one, the host asks the policy again. This can be slow, so it
//! runs in separate tasks. This module knows which rechecks run, and which turns a scan of the due index skips
//! meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{PrincipalId, Suspension, SuspensionId, Timestamp, Turn, TurnId, effect::Due};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::alarm::MAX_SLEEP;

/// How many calls are rechecked at once.
const MAX_AT_ONCE: usize = 64;

/// How many of them belong to one caller. So a caller with many does not delay the others.
const MAX_AT_ONCE_OF_EACH: usize = 16;

/// The calls that are being rechecked, by their suspensions. There are never two rechecks of one suspension.
pub(crate) struct TimeoutApprovals {
    state: Mutex<State>,
    permits: Semaphore,
}

#[derive(Default)]
struct State {
    turns: HashMap<TurnId, Rechecked>,
    /// The permits of each caller that has calls here.
    callers: HashMap<PrincipalId, Arc<Semaphore>>,
    /// All entries of the due index up to this one are being rechecked.
    passed: Option<(Timestamp, TurnId)>,
    /// The earliest time at which a turn became due since the last scan.
    became_due: Option<Timestamp>,
    /// When the index was last read from its beginning.
    began: Option<Timestamp>,
}

struct Rechecked {
    suspensions: Vec<SuspensionId>,
    /// When the turn is due for another reason.
    next: Timestamp,
}

impl Default for TimeoutApprovals {
    fn default() -> Self {
        Self { state: Mutex::default(), permits: Semaphore::new(MAX_AT_ONCE) }
    }
}

impl TimeoutApprovals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call of a turn is being rechecked.
    pub(crate) fn rechecks(&self, id: TurnId) -> bool {
        self.state().turns.contains_key(&id)
    }

    /// The turns that are due for another reason than a running recheck.
    pub(crate) fn due_besides(&self, now: Timestamp) -> Vec<TurnId> {
        self.state().turns.iter().filter(|(_, rechecked)| rechecked.next <= now).map(|(id, _)| *id).collect()
    }

    /// When the first of these turns is due for another reason.
    pub(crate) fn next_besides(&self) -> Option<Timestamp> {
        self.state().turns.values().map(|rechecked| rechecked.next).min()
    }

    /// The index entry after which the next scan starts. Some scans start at the beginning, because
    /// another host may have written to a shared store.
    pub(crate) fn resume(&self, now: Timestamp) -> Option<(Timestamp, TurnId)> {
        let mut state = self.state();
        let became_due = state.became_due.take();
        let is_whole = state.passed.is_none_or(|(at, _)| became_due.is_some_and(|due| due <= at))
            || state.began.is_none_or(|began| began + MAX_SLEEP <= now);
        if is_whole {
            state.passed = None;
            state.began = Some(now);
        }
        state.passed
    }

    /// Other hosts have committed, so the next scan starts at the beginning.
    pub(crate) fn peers_committed(&self) {
        self.state().becomes_due(Timestamp::from_millis(0));
    }

    /// Reads a page of the index. The next scan starts after the leading entries that are being rechecked. Returns
    /// whether all entries of the page are being rechecked.
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

    /// Notes a commit. Returns when the turn is next due, apart from running rechecks.
    pub(crate) fn committed(&self, turn: &Turn) -> Option<Timestamp> {
        let mut state = self.state();
        if let Some(rechecked) = state.turns.get_mut(&turn.id) {
            rechecked.next = besides(turn, &rechecked.suspensions);
            return Some(rechecked.next);
        }
        let at = turn.next_due()?.at;
        state.becomes_due(at);
        Some(at)
    }

    /// Begins to recheck the calls of a turn that a timeout would approve now. Returns those that were not being
    /// rechecked before.
    pub(crate) fn begin(&self, turn: &Turn, now: Timestamp) -> Vec<SuspensionId> {
        let timed_out = turn.pending().filter(|(.., open)| is_timed_out(open, now)).map(|(.., open)| open.id);
        let turns = &mut self.state().turns;
        let known = turns.get(&turn.id).map_or(&[][..], |rechecked| &rechecked.suspensions);
        let new: Vec<_> = timed_out.filter(|id| !known.contains(id)).collect();
        if !new.is_empty() || !known.is_empty() {
            let rechecked = turns.entry(turn.id).or_insert(Rechecked { suspensions: Vec::new(), next: Timestamp::MAX });
            rechecked.suspensions.extend(&new);
            rechecked.next = besides(turn, &rechecked.suspensions);
        }
        new
    }

    /// Ends a recheck. If it changed nothing, the turn is due as before, even if its other calls wait for longer.
    pub(crate) fn end(&self, id: TurnId, suspension: SuspensionId, decided: bool) {
        let mut state = self.state();
        let Some(rechecked) = state.turns.get_mut(&id) else { return };
        rechecked.suspensions.retain(|known| *known != suspension);
        if !decided {
            rechecked.next = Timestamp::from_millis(0);
        }
        let (next, is_last) = (rechecked.next, rechecked.suspensions.is_empty());
        if is_last {
            state.turns.remove(&id);
            state.becomes_due(next);
        }
    }

    /// Waits until a call of this caller may be rechecked.
    pub(crate) async fn permit(&self, caller: &PrincipalId) -> RecheckPermit<'_> {
        let own = {
            let mut state = self.state();
            let permits = state.callers.entry(caller.clone());
            permits.or_insert_with(|| Arc::new(Semaphore::new(MAX_AT_ONCE_OF_EACH))).clone()
        };
        // The semaphores are never closed. The caller's comes first: a caller with many waits for its own permits.
        let own = own.acquire_owned().await.ok();
        let all = self.permits.acquire().await.ok();
        RecheckPermit { approvals: self, caller: caller.clone(), own, _all: all }
    }
}

/// A call may be rechecked while this is held.
pub(crate) struct RecheckPermit<'a> {
    approvals: &'a TimeoutApprovals,
    caller: PrincipalId,
    own: Option<OwnedSemaphorePermit>,
    _all: Option<SemaphorePermit<'a>>,
}

impl Drop for RecheckPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.approvals.state();
        self.own = None;
        if state.callers.get(&self.caller).is_some_and(|permits| Arc::strong_count(permits) == 1) {
            state.callers.remove(&self.caller);
        }
    }
}

impl State {
    /// The index has an entry at this time that is not being rechecked.
    fn becomes_due(&mut self, at: Timestamp) {
        self.became_due = Some(self.became_due.map_or(at, |before| before.min(at)));
    }
}

/// Whether a timeout grants this approval now, if the policy still allows it.
pub(crate) fn is_timed_out(open: &Suspension, now: Timestamp) -> bool {
    open.timeout_approves() && open.expires_at <= now
}

fn besides(turn: &Turn, rechecked: &[SuspensionId]) -> Timestamp {
    turn.next_due_besides(rechecked).map_or(Timestamp::MAX, |due| due.at)
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

    fn rechecking(turns: impl IntoIterator<Item = u128>) -> TimeoutApprovals {
        let approvals = TimeoutApprovals::default();
        for turn in turns {
            let rechecked = Rechecked { suspensions: vec![SuspensionId::from_bits(turn)], next: Timestamp::MAX };
            approvals.state().turns.insert(TurnId::from_bits(turn), rechecked);
        }
        approvals
    }

    fn entry(turn: u64) -> Option<(Timestamp, TurnId)> {
        Some((at(turn), TurnId::from_bits(turn.into())))
    }

    #[test]
    fn a_scan_starts_after_leading_rechecked_turns() {
        let approvals = rechecking([1, 2, 4]);
        assert_eq!(approvals.resume(at(9)), None);
        assert!(!approvals.pass(&page(4)), "the third is not rechecked");
        assert_eq!(approvals.resume(at(9)), entry(2));
        assert_eq!((approvals.rechecks(TurnId::from_bits(4)), approvals.rechecks(TurnId::from_bits(3))), (true, false));
    }

    #[test]
    fn a_turn_that_becomes_due_earlier_is_not_skipped() {
        for meanwhile in [false, true] {
            let approvals = rechecking(1..=4);
            assert_eq!(approvals.resume(at(9)), None);
            if meanwhile {
                approvals.state().becomes_due(at(3));
                assert!(!approvals.pass(&page(4)), "its key may be between those that were read before");
                assert_eq!(approvals.resume(at(9)), entry(2));
                assert!(approvals.pass(&page(4)[2..]));
            } else {
                assert!(approvals.pass(&page(4)));
            }
            approvals.state().becomes_due(at(5));
            assert_eq!(approvals.resume(at(9)), entry(4));
            approvals.end(TurnId::from_bits(3), SuspensionId::from_bits(3), false);
            assert_eq!(approvals.resume(at(9)), None, "one that could not be rechecked is due as before");
        }
    }

    #[test]
    fn a_scan_starts_over_once_a_minute() {
        let approvals = rechecking(1..=4);
        assert_eq!(approvals.resume(at(9)), None);
        assert!(approvals.pass(&page(4)));
        assert_eq!(approvals.resume(at(68)), entry(4));
        assert_eq!(approvals.resume(at(9) + MAX_SLEEP), None);
    }
}
