//! The current usage of each principal, checked against its quota.
//!
//! A usage is a few numbers. It exists only while one of them is not zero, or while a rate limit is not full again. The usage of a
//! turn is computed from the turn before and after each commit, so it is not stored. After a restart, the turns that have
//! not ended are counted before the host accepts anything new. Each process counts for itself, except what the
//! store of several hosts counts for all of them.

mod outcomes;

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::event::CallEvent;
use domain::json::VALUE_COST;
use domain::rate::Spent;
use domain::{Event, PrincipalId, Span, Timestamp, Turn, TurnId};
use outcomes::Outcomes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::committer::{Observer, Storage, TurnChange};
use crate::error::{Error, RequestPart};
use crate::footprint::asked;
use crate::ports::{CHECK_COST, Commit, Footprint, JournalRow, RowChange, StoreFault, text};
use crate::quota::{Busy, Quota, QuotaBound, Quotas};
use crate::request::{Counts, TurnRequest};

/// Principals of different shards never wait for each other.
const SHARDS: usize = 64;

/// The values of smaller requests are not charged: the quota bounds the number of requests.
const UNCHARGED: usize = 4 * KIB;

const KIB: usize = 1 << 10;

/// The usage of every principal.
pub(crate) struct QuotaTracker {
    quotas: Quotas,
    /// Whether the store counts the stored turns of all hosts. Then only reservations and ephemeral turns are counted here.
    is_shared: bool,
    shards: [Mutex<HashMap<PrincipalId, PrincipalUsage>>; SHARDS],
    hasher: RandomState,
    refused: [AtomicU64; QuotaBound::ALL.len()],
    outcomes: Outcomes,
    recount: Recount,
}

/// The current usage of one principal.
#[derive(Default)]
struct PrincipalUsage {
    has: Footprint,
    /// Calls that run or wait to be run.
    calls: usize,
    /// One permit for each call that may run at once. Exists only while there are calls.
    permits: Option<Arc<Semaphore>>,
    /// Requests whose parsed arguments are in memory, or that wait for this memory.
    readers: usize,
    /// One permit for each KiB that these values may take. Exists only while there are such requests.
    memory: Option<Arc<Semaphore>>,
    /// The part of its rates that its recent turns have spent.
    spent_turns: Spent,
    spent_bytes: Spent,
}

impl PrincipalUsage {
    /// Whether it uses nothing now. It may have spent some of its rates.
    fn is_idle(&self) -> bool {
        self.calls == 0 && self.readers == 0 && self.has == Footprint::default()
    }
}

/// The limit that refuses a submission.
struct Refused {
    bound: QuotaBound,
    limit: usize,
    wait: Option<Span>,
}

/// The count after a start. While it is under way, only turns in `charged` have been counted.
struct Recount {
    done: AtomicBool,
    charged: Mutex<HashSet<TurnId>>,
    ended: watch::Sender<Option<Result<(), StoreFault>>>,
}

impl QuotaTracker {
    pub(crate) fn new(quotas: Quotas, is_shared: bool) -> Self {
        Self {
            quotas,
            is_shared,
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

    /// Returns once the turns of the last host are counted, so that a restart does not raise anybody's quota.
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

    /// Counts a turn of the last host. The caller holds the lock of its slot, as for `committed`, so that each change
    /// of the turn is counted here or there and not twice.
    pub(crate) fn found(&self, turn: &Turn) {
        if !self.is_shared && lock(&self.recount.charged).insert(turn.id) {
            self.change(&turn.caller, |usage| usage.has.change(Footprint::default(), Footprint::of(turn)));
        }
    }

    /// Ends the count, or records why it failed.
    pub(crate) fn counted(&self, end: Result<(), StoreFault>) {
        if end.is_ok() {
            self.recount.done.store(true, Ordering::Release);
            *lock(&self.recount.charged) = HashSet::new();
        }
        self.recount.ended.send_replace(Some(end));
    }

    /// Reserves room for a turn of this principal, before any work is done for it. `stored` is what the store counts for it.
    ///
    /// # Errors
    /// [`Error::Busy`]; [`Error::TooLarge`] if the turn could never fit.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        by: &PrincipalId,
        request: &TurnRequest,
        stored: Footprint,
    ) -> Result<Reservation, Error> {
        let quota = self.quotas.of(by);
        let asked = asked(request);
        if asked.bytes > quota.open_bytes {
            return Err(Error::TooLarge { part: RequestPart::Turn, size: asked.bytes, limit: quota.open_bytes });
        }
        self.change(by, |usage| {
            if usage.has.turns + stored.turns >= quota.open_turns {
                return Err(Refused { bound: QuotaBound::OpenTurns, limit: quota.open_turns, wait: None });
            }
            if usage.has.bytes + stored.bytes + asked.bytes > quota.open_bytes {
                return Err(Refused { bound: QuotaBound::OpenBytes, limit: quota.open_bytes, wait: None });
            }
            usage.has.change(Footprint::default(), asked);
            Ok(())
        })
        .map_err(|refused| self.refuse(by, refused))?;
        Ok(Reservation { tracker: self.clone(), principal: by.clone(), asked, calls: 0 })
    }

    /// Counts a new turn against the rates of its principal, which keeps `kept` bytes already.
    ///
    /// # Errors
    /// [`Error::Busy`]; nothing is counted.
    pub(crate) fn count_new(
        &self,
        by: &PrincipalId,
        request: &TurnRequest,
        kept: u64,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Quota { turn_rate, byte_rate, kept_bytes, .. } = self.quotas.of(by);
        let bytes = asked(request).bytes as u64;
        let limit = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        if kept.saturating_add(bytes) > kept_bytes {
            return Err(self.refuse(by, Refused { bound: QuotaBound::KeptBytes, limit: limit(kept_bytes), wait: None }));
        }
        self.forget_idle(by, now);
        let (bound, rate, wait) = self.change(by, |usage| {
            if let Err(wait) = usage.spent_turns.spend(1, turn_rate, now) {
                return (QuotaBound::TurnRate, turn_rate, Some(wait));
            }
            let spent = usage.spent_bytes.spend(bytes, byte_rate, now);
            if spent.is_err() {
                usage.spent_turns.refund(1);
            }
            (QuotaBound::ByteRate, byte_rate, spent.err())
        });
        let limit = limit(rate.per_second);
        wait.map_or(Ok(()), |wait| Err(self.refuse(by, Refused { bound, limit, wait: Some(wait) })))
    }

    /// Counts the results of calls against the rate of their principal. They cannot be refused, so later turns wait.
    fn charge_results(&self, caller: &PrincipalId, events: &[Event]) {
        let rate = self.quotas.of(caller).byte_rate;
        for event in events {
            let Event::Call { event: CallEvent::Settled { outcome, at, .. }, .. } = event else { continue };
            self.change(caller, |usage| usage.spent_bytes.charge(text(outcome) as u64, rate, *at));
        }
    }

    /// Counts the entries of a journal in the same way.
    fn charge_journal(&self, rows: &[RowChange]) {
        let [rows @ .., RowChange::Kept(caller)] = rows else { return };
        let rate = self.quotas.of(caller).byte_rate;
        for row in rows {
            let RowChange::JournalEntry(JournalRow { entry, .. }) = row else { continue };
            self.change(caller, |usage| usage.spent_bytes.charge(entry.size() as u64, rate, entry.at));
        }
    }

    /// Makes room in a full shard: removes principals that use nothing and whose rate limits are full again.
    fn forget_idle(&self, by: &PrincipalId, now: Timestamp) {
        let mut shard = self.shard(by);
        if shard.len() == shard.capacity() {
            shard.retain(|principal, usage| {
                let Quota { turn_rate, byte_rate, .. } = self.quotas.of(principal);
                let is_whole =
                    usage.spent_turns.is_nothing(turn_rate, now) && usage.spent_bytes.is_nothing(byte_rate, now);
                !(usage.is_idle() && is_whole)
            });
        }
    }

    /// A ticket for a call that was accepted earlier: it was approved now, or a kill interrupted it.
    pub(crate) fn ticket(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        self.change(principal, |usage| usage.calls += 1);
        self.ticket_of(principal)
    }

    /// A ticket for a call that is counted already.
    fn ticket_of(self: &Arc<Self>, principal: &PrincipalId) -> Ticket {
        let max = self.quotas.of(principal).running_calls.clamp(1, Semaphore::MAX_PERMITS);
        let permits =
            self.change(principal, |usage| usage.permits.get_or_insert_with(|| Arc::new(Semaphore::new(max))).clone());
        Ticket { tracker: self.clone(), principal: principal.clone(), permits }
    }

    /// Waits for memory to parse and check the texts of a request. All requests of a principal together take at most its
    /// `open_bytes`. One request always gets memory.
    pub(crate) async fn values(self: &Arc<Self>, principal: &PrincipalId, texts: Texts) -> Option<Values> {
        if texts.total < UNCHARGED {
            return None;
        }
        let all = (self.quotas.of(principal).open_bytes / KIB).clamp(1, Semaphore::MAX_PERMITS);
        let memory = self.change(principal, |usage| {
            usage.readers += 1;
            usage.memory.get_or_insert_with(|| Arc::new(Semaphore::new(all))).clone()
        });
        let mut values = Values { permit: None, tracker: self.clone(), principal: principal.clone() };
        let wanted = u32::try_from(texts.memory().div_ceil(KIB).min(all)).unwrap_or(u32::MAX);
        values.permit = memory.acquire_many_owned(wanted).await.ok();
        Some(values)
    }

    fn refuse(&self, by: &PrincipalId, Refused { bound, limit, wait }: Refused) -> Error {
        let at = QuotaBound::ALL.iter().position(|each| *each == bound);
        at.and_then(|at| self.refused.get(at)).map(|refused| refused.fetch_add(1, Ordering::Relaxed));
        Error::Busy(Busy { principal: by.clone(), bound, limit, wait })
    }

    /// The usage of all principals together.
    pub(crate) fn counts(&self) -> Counts {
        let refused = self.refused.iter().map(|count| count.load(Ordering::Relaxed));
        let refused = QuotaBound::ALL.into_iter().zip(refused).collect();
        let mut counts = Counts { refused, settled: self.outcomes.list(), ..Counts::default() };
        for shard in &self.shards {
            for (principal, usage) in lock(shard).iter() {
                counts.open_turns += usage.has.turns;
                counts.open_bytes += usage.has.bytes;
                counts.suspensions += usage.has.suspensions;
                let max = self.quotas.of(principal).running_calls.max(1);
                let free = usage.permits.as_ref().map_or(max, |permits| permits.available_permits());
                let running = max.saturating_sub(free);
                counts.running_calls += running;
                counts.waiting_calls += usage.calls.saturating_sub(running);
            }
        }
        counts
    }

    fn change<T>(&self, principal: &PrincipalId, change: impl FnOnce(&mut PrincipalUsage) -> T) -> T {
        let mut shard = self.shard(principal);
        let usage = shard.entry(principal.clone()).or_default();
        let changed = change(usage);
        if usage.calls == 0 {
            usage.permits = None;
        }
        if usage.readers == 0 {
            usage.memory = None;
        }
        if usage.is_idle() && [usage.spent_turns, usage.spent_bytes] == [Spent::default(); 2] {
            shard.remove(principal);
        }
        changed
    }

    fn shard(&self, principal: &PrincipalId) -> MutexGuard<'_, HashMap<PrincipalId, PrincipalUsage>> {
        lock(&self.shards[self.hasher.hash_one(principal) as usize % SHARDS])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for QuotaTracker {
    fn observes_ephemeral(&self) -> bool {
        true
    }

    /// Counts a commit. A turn that begins counts for itself from now on, and its reservation only for calls without a
    /// ticket. The reservation of an ephemeral turn counts for it until it ends.
    fn committed(&self, commit: &Commit, change: Option<&TurnChange<'_>>) {
        self.charge_journal(&commit.rows);
        let Some(TurnChange { before, after, reserved, storage }) = change else { return };
        if *storage != Storage::Stored {
            if after.is_ended() {
                self.outcomes.count(None, after);
            }
            return;
        }
        self.outcomes.count(*before, after);
        if before.is_some() {
            self.charge_results(&after.caller, commit.events());
        }
        if self.is_shared {
            // Only its reservation was counted here.
            self.change(&after.caller, |usage| usage.has.change(*reserved, Footprint::default()));
            return;
        }
        let is_counted = || {
            let charged = lock(&self.recount.charged);
            // Asked again: the count may have ended before the lock was taken.
            self.recount.done.load(Ordering::Acquire) || charged.contains(&after.id)
        };
        if before.is_none() || self.recount.done.load(Ordering::Acquire) || is_counted() {
            let less = before.map_or(*reserved, Footprint::of);
            self.change(&after.caller, |usage| usage.has.change(less, Footprint::of(after)));
        }
    }
}

/// Room for a turn that is being submitted. Released when it is dropped: the turn was refused, or counts for itself.
pub(crate) struct Reservation {
    tracker: Arc<QuotaTracker>,
    principal: PrincipalId,
    asked: Footprint,
    /// Calls that are counted and have no ticket yet.
    calls: usize,
}

impl Reservation {
    /// Reserves room for calls that will run without an answer. If a turn alone needs more than the quota, it is accepted
    /// when no other call of its principal runs. Otherwise a retry could never succeed.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(crate) fn calls(&mut self, more: usize) -> Result<(), Error> {
        let quota = self.tracker.quotas.of(&self.principal);
        let max = quota.running_calls.saturating_add(quota.waiting_calls);
        let accepted = self.tracker.change(&self.principal, |usage| {
            let fits = usage.calls == 0 || usage.calls + more <= max;
            usage.calls += if fits { more } else { 0 };
            fits
        });
        if !accepted {
            let refused = Refused { bound: QuotaBound::WaitingCalls, limit: max, wait: None };
            return Err(self.tracker.refuse(&self.principal, refused));
        }
        self.calls += more;
        Ok(())
    }

    /// The reservation for the turn, without its calls.
    pub(crate) fn footprint(&self) -> Footprint {
        self.asked
    }

    /// The first commit of the turn has happened, so the turn counts for itself.
    pub(crate) fn hand_over(&mut self) {
        self.asked = Footprint::default();
    }

    /// The ticket of one of the reserved calls.
    pub(crate) fn ticket(&mut self) -> Option<Ticket> {
        self.calls = self.calls.checked_sub(1)?;
        Some(self.tracker.ticket_of(&self.principal))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tracker.change(&self.principal, |usage| {
            usage.has.change(self.asked, Footprint::default());
            usage.calls = usage.calls.saturating_sub(self.calls);
        });
    }
}

/// The sizes of the texts that a request parses and checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Texts {
    total: usize,
    largest: usize,
}

impl Texts {
    /// The memory that they take. All values exist at once. The texts are checked one after the other.
    const fn memory(self) -> usize {
        self.total * VALUE_COST + self.largest * CHECK_COST
    }
}

impl FromIterator<usize> for Texts {
    fn from_iter<T: IntoIterator<Item = usize>>(sizes: T) -> Self {
        let add = |texts: Self, size| Self { total: texts.total + size, largest: texts.largest.max(size) };
        sizes.into_iter().fold(Self::default(), add)
    }
}

/// Memory for the values of a request's texts, while this is held.
pub(crate) struct Values {
    permit: Option<OwnedSemaphorePermit>,
    tracker: Arc<QuotaTracker>,
    principal: PrincipalId,
}

impl Drop for Values {
    fn drop(&mut self) {
        self.permit = None;
        self.tracker.change(&self.principal, |usage| usage.readers = usage.readers.saturating_sub(1));
    }
}

/// Counts a call as running or waiting to be run, while this is held.
pub(crate) struct Ticket {
    tracker: Arc<QuotaTracker>,
    principal: PrincipalId,
    permits: Arc<Semaphore>,
}

impl Ticket {
    /// Waits until one more call of the principal may run. Tickets are served in their order.
    pub(crate) async fn permit(self) -> CallPermit {
        let (permit, waited) = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => (Some(permit), false),
            // The semaphore is never closed. If it were, calls would run unbounded rather than not at all.
            Err(_) => (self.permits.clone().acquire_owned().await.ok(), true),
        };
        CallPermit { waited, _permit: permit, _ticket: self }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.tracker.change(&self.principal, |usage| usage.calls = usage.calls.saturating_sub(1));
    }
}

/// A call may run while this is held. The permit is released before the call is no longer counted.
pub(crate) struct CallPermit {
    /// Whether there was none at once.
    pub(crate) waited: bool,
    _permit: Option<OwnedSemaphorePermit>,
    _ticket: Ticket,
}

#[cfg(test)]
mod tests;
