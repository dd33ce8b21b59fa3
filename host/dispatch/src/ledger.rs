//! What each principal has at the host at this moment, held against its quota.
//!
//! An account is a handful of numbers, however many turns wait, and is there only while one of them is not zero. What a turn
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

/// The accounts of all principals.
pub(crate) struct Ledger {
    quotas: Quotas,
    shards: [Mutex<HashMap<PrincipalId, Account>>; SHARDS],
    hasher: RandomState,
    refused: [AtomicU64; Bound::ALL.len()],
    outcomes: Outcomes,
    recount: Recount,
}

/// What one principal has at the host.
#[derive(Default)]
struct Account {
    has: Footprint,
    /// Calls that run or wait to be run.
    calls: usize,
    /// Where they run. There while there are any.
    places: Option<Arc<Semaphore>>,
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

impl Ledger {
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
            // The sender lives as long as the ledger.
            _ => Ok(()),
        }
    }

    /// Counts a turn that was there before this host. To be called while its slot is locked, as `moved` is, so that each
    /// change of the turn is seen here or there and not twice.
    pub(crate) fn found(&self, turn: &Turn) {
        if lock(&self.recount.charged).insert(turn.id) {
            self.change(&turn.caller, |account| account.has.change(Footprint::default(), Footprint::of(turn)));
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

    /// A commit began a turn: from now on it counts for itself, and its admission for the calls without a ticket.
    pub(crate) fn began(&self, admission: &mut Admission, turn: &Turn) {
        self.outcomes.count(None, turn);
        let asked = std::mem::take(&mut admission.asked);
        self.change(&turn.caller, |account| account.has.change(asked, Footprint::of(turn)));
    }

    /// A commit made another turn of a turn.
    pub(crate) fn moved(&self, before: &Turn, after: &Turn) {
        self.outcomes.count(Some(before), after);
        let is_counted = || {
            let charged = lock(&self.recount.charged);
            // Asked again: the count may have ended before the lock was there.
            self.recount.done.load(Ordering::Acquire) || charged.contains(&after.id)
        };
        if self.recount.done.load(Ordering::Acquire) || is_counted() {
            self.change(&after.caller, |account| account.has.change(Footprint::of(before), Footprint::of(after)));
        }
    }

    /// An ephemeral turn has ended; its admission is what it counted for.
    pub(crate) fn ended_ephemeral(&self, turn: &Turn) {
        self.outcomes.count(None, turn);
    }

    /// Room for a turn of this principal, before anything is made of it.
    ///
    /// # Errors
    /// [`Error::Busy`]; [`Error::TooLarge`] where there never will be room for it.
    pub(crate) fn admit(self: &Arc<Self>, by: &PrincipalId, request: &TurnRequest) -> Result<Admission, Error> {
        let quota = self.quotas.of(by);
        let asked = Footprint::asked(request);
        if asked.bytes > quota.open_bytes {
            return Err(Error::TooLarge { what: "the turn", size: asked.bytes, limit: quota.open_bytes });
        }
        self.change(by, |account| {
            if account.has.turns >= quota.open_turns {
                return Err((Bound::OpenTurns, quota.open_turns));
            }
            if account.has.bytes + asked.bytes > quota.open_bytes {
                return Err((Bound::OpenBytes, quota.open_bytes));
            }
            account.has.change(Footprint::default(), asked);
            Ok(())
        })
        .map_err(|refused| self.refuse(by, refused))?;
        Ok(Admission { ledger: self.clone(), principal: by.clone(), asked, calls: 0 })
    }

    /// A ticket for a call that was admitted long ago: one that was approved, or that a kill interrupted.
    pub(crate) fn ticket(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        self.change(principal, |account| account.calls += 1);
        self.ticket_of(principal)
    }

    /// A ticket for a call that is counted already.
    fn ticket_of(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        let most = self.quotas.of(principal).running_calls.clamp(1, Semaphore::MAX_PERMITS);
        let places = self
            .change(principal, |account| account.places.get_or_insert_with(|| Arc::new(Semaphore::new(most))).clone());
        Ticket { ledger: self.clone(), principal: principal.clone(), places }
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
            for (principal, account) in lock(shard).iter() {
                counts.open_turns += account.has.turns;
                counts.open_bytes += account.has.bytes;
                counts.suspensions += account.has.suspensions;
                let most = self.quotas.of(principal).running_calls.max(1);
                let free = account.places.as_ref().map_or(most, |places| places.available_permits());
                let running = most.saturating_sub(free);
                counts.running_calls += running;
                counts.waiting_calls += account.calls.saturating_sub(running);
            }
        }
        counts
    }

    fn change<T>(&self, principal: &PrincipalId, change: impl FnOnce(&mut Account) -> T) -> T {
        let shard = self.hasher.hash_one(principal) as usize % SHARDS;
        let mut shard = lock(&self.shards[shard]);
        let account = shard.entry(principal.clone()).or_default();
        let changed = change(account);
        if account.calls == 0 {
            account.places = None;
            if account.has == Footprint::default() {
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
pub(crate) struct Admission {
    ledger: Arc<Ledger>,
    principal: PrincipalId,
    asked: Footprint,
    /// Calls that are counted and have no ticket yet.
    calls: usize,
}

impl Admission {
    /// Room for so many calls that will run without anybody's answer. A turn with more of them than there ever is room for
    /// is admitted while nothing else of its principal runs, so that trying again is never in vain.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(crate) fn calls(&mut self, more: usize) -> Result<(), Error> {
        let quota = self.ledger.quotas.of(&self.principal);
        let most = quota.running_calls.saturating_add(quota.waiting_calls);
        let admitted = self.ledger.change(&self.principal, |account| {
            let fits = account.calls == 0 || account.calls + more <= most;
            account.calls += if fits { more } else { 0 };
            fits
        });
        if !admitted {
            return Err(self.ledger.refuse(&self.principal, (Bound::WaitingCalls, most)));
        }
        self.calls += more;
        Ok(())
    }

    /// The ticket of one of those calls.
    pub(crate) fn ticket(&mut self) -> Option<Ticket> {
        self.calls = self.calls.checked_sub(1)?;
        Some(self.ledger.ticket_of(&self.principal))
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let (asked, calls) = (self.asked, self.calls);
        self.ledger.change(&self.principal, |account| {
            account.has.change(asked, Footprint::default());
            account.calls = account.calls.saturating_sub(calls);
        });
    }
}

/// Counts a call as running or waiting to be run, while this is held.
pub(crate) struct Ticket {
    ledger: Arc<Ledger>,
    principal: PrincipalId,
    places: Arc<Semaphore>,
}

impl Ticket {
    /// Waits until as few calls of the principal run that one more may. Those that wait take turns.
    pub(crate) async fn place(self) -> Place {
        // Nobody closes the semaphore; should somebody, calls would run unbounded rather than not at all.
        let permit = self.places.clone().acquire_owned().await.ok();
        Place { _permit: permit, _ticket: self }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.ledger.change(&self.principal, |account| account.calls = account.calls.saturating_sub(1));
    }
}

/// Where a call runs, while this is held. The place is free before the call is no longer counted.
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    _ticket: Ticket,
}
