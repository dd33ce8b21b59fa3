//! What each principal has at the host at this moment, held against its quota.
//!
//! An usage is a handful of numbers, however many turns wait, and is there only while one of them is not zero. What a turn
//! counts for is worked out from the turn itself, before and after each commit, so that nothing is remembered for it; after
//! a restart the turns that have not ended are counted before anything new is admitted. Counts are of this process alone.

mod outcomes;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{PrincipalId, Turn, TurnId};
use outcomes::Outcomes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::error::Error;
use crate::ports::StoreFault;
use crate::quota::{Bound, Busy, Quotas};
use crate::request::{Counts, TurnRequest};

/// Principals of different shards never wait for each other.
const SHARDS: usize = 64;

/// The usages of all principals.
pub(crate) struct QuotaTracker {
    quotas: Quotas,
    shards: [Mutex<HashMap<PrincipalId, Usage>>; SHARDS],
    hasher: RandomState,
    refused: [AtomicU64; Bound::ALL.len()],
    outcomes: Outcomes,
    recount: Recount,
}

/// What one principal has at the host.
#[derive(Default)]
struct Usage {
    has: Footprint,
    /// Calls that run or wait to be run.
    calls: usize,
    /// Where they run. There while there are any.
    permits: Option<Arc<Semaphore>>,
}

/// What something counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Footprint {
    turns: usize,
    bytes: usize,
    suspensions: usize,
}

/// The count that follows a start. While it is under way, only turns in `charged` have been counted.
struct Recount {
    done: AtomicBool,
    charged: Mutex<HashSet<TurnId>>,
    ended: watch::Sender<Option<Result<(), StoreFault>>>,
}

impl Footprint {
    /// What a turn counts for: nothing once it has ended. Its size is that of what was submitted, which never changes.
    fn of(turn: &Turn) -> Self {
        if turn.is_ended() {
            return Self::default();
        }
        let context = turn.context.as_ref().map_or(0, domain::Json::size);
        let calls = turn.calls.iter().map(|call| call.submitted.size() + call.tool.len());
        Self { turns: 1, bytes: context + calls.sum::<usize>(), suspensions: turn.pending().count() }
    }

    /// What a turn that is asked for will count for.
    fn asked(request: &TurnRequest) -> Self {
        let context = request.context.as_ref().map_or(0, domain::Json::size);
        let calls = request.calls.iter().map(|call| call.arguments.size() + call.tool.len());
        Self { turns: 1, bytes: context + calls.sum::<usize>(), suspensions: 0 }
    }

    fn change(&mut self, less: Self, more: Self) {
        self.turns = (self.turns + more.turns).saturating_sub(less.turns);
        self.bytes = (self.bytes + more.bytes).saturating_sub(less.bytes);
        self.suspensions = (self.suspensions + more.suspensions).saturating_sub(less.suspensions);
    }
}

impl QuotaTracker {
    pub(crate) fn new(quotas: Quotas) -> Self {
        Self {
            quotas,
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            refused: Default::default(),
            outcomes: Outcomes::default(),
            recount: Recount {
                done: AtomicBool::new(false),
                charged: Mutex::default(),
                ended: watch::Sender::new(None),
            },
        }
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns once the turns that the last host left are counted, so that nobody gets more by a restart.
    ///
    /// # Errors
    /// Why they could not be read.
    pub(crate) async fn ready(&self) -> Result<(), StoreFault> {
        if self.recount.done.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut ended = self.recount.ended.subscribe();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(Err(fault))) => Err(fault.clone()),
            // The sender lives as long as the tracker.
            _ => Ok(()),
        }
    }

    /// Counts a turn that was there before this host. To be called while its slot is locked, as `moved` is, so that each
    /// change of the turn is seen here or there and not twice.
    pub(crate) fn found(&self, turn: &Turn) {
        if lock(&self.recount.charged).insert(turn.id) {
            self.change(&turn.caller, |usage| usage.has.change(Footprint::default(), Footprint::of(turn)));
        }
    }

    /// The count has ended, or could not be carried out this time.
    pub(crate) fn counted(&self, end: Result<(), StoreFault>) {
        if end.is_ok() {
            self.recount.done.store(true, Ordering::Release);
            *lock(&self.recount.charged) = HashSet::new();
        }
        self.recount.ended.send_replace(Some(end));
    }

    /// Takes in a commit. A turn that begins counts for itself from now on, and its reservation for the calls without a ticket.
    pub(crate) fn committed(&self, before: Option<&Turn>, after: &Turn, reservation: Option<&mut Reservation>) {
        self.outcomes.count(before, after);
        let is_counted = || {
            let charged = lock(&self.recount.charged);
            // Asked again: the count may have ended before the lock was taken.
            self.recount.done.load(Ordering::Acquire) || charged.contains(&after.id)
        };
        if before.is_none() || self.recount.done.load(Ordering::Acquire) || is_counted() {
            let reserved = reservation.map(|reservation| std::mem::take(&mut reservation.asked)).unwrap_or_default();
            let less = before.map_or(reserved, Footprint::of);
            self.change(&after.caller, |usage| usage.has.change(less, Footprint::of(after)));
        }
    }

    /// Takes in a commit of an ephemeral turn, whose reservation counts for it until it ends.
    pub(crate) fn ephemeral_committed(&self, turn: &Turn) {
        if turn.is_ended() {
            self.outcomes.count(None, turn);
        }
    }

    /// Room for a turn of this principal, before anything is made of it.
    ///
    /// # Errors
    /// [`Error::Busy`]; [`Error::TooLarge`] where there never will be room for it.
    pub(crate) fn reserve(self: &Arc<Self>, by: &PrincipalId, request: &TurnRequest) -> Result<Reservation, Error> {
        let quota = self.quotas.of(by);
        let asked = Footprint::asked(request);
        if asked.bytes > quota.open_bytes {
            return Err(Error::TooLarge { what: "the turn", size: asked.bytes, limit: quota.open_bytes });
        }
        self.change(by, |usage| {
            if usage.has.turns >= quota.open_turns {
                return Err((Bound::OpenTurns, quota.open_turns));
            }
            if usage.has.bytes + asked.bytes > quota.open_bytes {
                return Err((Bound::OpenBytes, quota.open_bytes));
            }
            usage.has.change(Footprint::default(), asked);
            Ok(())
        })
        .map_err(|refused| self.refuse(by, refused))?;
        Ok(Reservation { tracker: self.clone(), principal: by.clone(), asked, calls: 0 })
    }

    /// A ticket for a call that was admitted long ago: one that was approved, or that a kill interrupted.
    pub(crate) fn ticket(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        self.change(principal, |usage| usage.calls += 1);
        self.ticket_of(principal)
    }

    /// A ticket for a call that is counted already.
    fn ticket_of(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        let most = self.quotas.of(principal).running_calls.clamp(1, Semaphore::MAX_PERMITS);
        let permits =
            self.change(principal, |usage| usage.permits.get_or_insert_with(|| Arc::new(Semaphore::new(most))).clone());
        Ticket { tracker: self.clone(), principal: principal.clone(), permits }
    }

    fn refuse(&self, by: &PrincipalId, (bound, limit): (Bound, usize)) -> Error {
        let at = Bound::ALL.iter().position(|(each, _)| *each == bound);
        at.and_then(|at| self.refused.get(at)).map(|refused| refused.fetch_add(1, Ordering::Relaxed));
        Error::Busy(Busy { principal: by.clone(), bound, limit })
    }

    /// What all of them have, for whoever watches the host.
    pub(crate) fn counts(&self) -> Counts {
        let names = Bound::ALL.into_iter().map(|(_, name)| name);
        let refused = names.zip(&self.refused).map(|(name, refused)| (name, refused.load(Ordering::Relaxed))).collect();
        let mut counts = Counts { refused, settled: self.outcomes.list(), ..Counts::default() };
        for shard in &self.shards {
            for (principal, usage) in lock(shard).iter() {
                counts.open_turns += usage.has.turns;
                counts.open_bytes += usage.has.bytes;
                counts.suspensions += usage.has.suspensions;
                let most = self.quotas.of(principal).running_calls.max(1);
                let free = usage.permits.as_ref().map_or(most, |permits| permits.available_permits());
                let running = most.saturating_sub(free);
                counts.running_calls += running;
                counts.waiting_calls += usage.calls.saturating_sub(running);
            }
        }
        counts
    }

    fn change<T>(&self, principal: &PrincipalId, change: impl FnOnce(&mut Usage) -> T) -> T {
        let shard = self.hasher.hash_one(principal) as usize % SHARDS;
        let mut shard = lock(&self.shards[shard]);
        let usage = shard.entry(principal.clone()).or_default();
        let changed = change(usage);
        if usage.calls == 0 {
            usage.permits = None;
            if usage.has == Footprint::default() {
                shard.remove(principal);
            }
        }
        changed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room for a turn that is being submitted. Given back when this is dropped: by then the turn was refused, or counts for
/// itself.
pub(crate) struct Reservation {
    tracker: Arc<QuotaTracker>,
    principal: PrincipalId,
    asked: Footprint,
    /// Calls that are counted and have no ticket yet.
    calls: usize,
}

impl Reservation {
    /// Room for so many calls that will run without anybody's answer. A turn with more of them than there ever is room for
    /// is admitted while nothing else of its principal runs, so that trying again is never in vain.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(crate) fn calls(&mut self, more: usize) -> Result<(), Error> {
        let quota = self.tracker.quotas.of(&self.principal);
        let most = quota.running_calls.saturating_add(quota.waiting_calls);
        let admitted = self.tracker.change(&self.principal, |usage| {
            let fits = usage.calls == 0 || usage.calls + more <= most;
            usage.calls += if fits { more } else { 0 };
            fits
        });
        if !admitted {
            return Err(self.tracker.refuse(&self.principal, (Bound::WaitingCalls, most)));
        }
        self.calls += more;
        Ok(())
    }

    /// The ticket of one of those calls.
    pub(crate) fn ticket(&mut self) -> Option<Ticket> {
        self.calls = self.calls.checked_sub(1)?;
        Some(self.tracker.ticket_of(&self.principal))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (asked, calls) = (self.asked, self.calls);
        self.tracker.change(&self.principal, |usage| {
            usage.has.change(asked, Footprint::default());
            usage.calls = usage.calls.saturating_sub(calls);
        });
    }
}

/// Counts a call as running or waiting to be run, while this is held.
pub(crate) struct Ticket {
    tracker: Arc<QuotaTracker>,
    principal: PrincipalId,
    permits: Arc<Semaphore>,
}

impl Ticket {
    /// Waits until as few calls of the principal run that one more may. Those that wait take turns.
    pub(crate) async fn permit(self) -> Permit {
        // Nobody closes the semaphore; should somebody, calls would run unbounded rather than not at all.
        let permit = self.permits.clone().acquire_owned().await.ok();
        Permit { _permit: permit, _ticket: self }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.tracker.change(&self.principal, |usage| usage.calls = usage.calls.saturating_sub(1));
    }
}

/// Where a call runs, while this is held. The place is free before the call is no longer counted.
pub(crate) struct Permit {
    _permit: Option<OwnedSemaphorePermit>,
    _ticket: Ticket,
}
