//! The instances and the memory of all guests together. The memory of a guest is its linear memories, what the host holds on
//! its behalf, and the journal that its run repeats.
//!
//! A call reserves an instance and as much memory as the largest call of its component has used so far, or all that it may
//! use if none has ended. It takes both at once, so no call keeps one of them while it waits for the other. If there is no
//! room, the call waits. So a crowd of calls queues before it begins, and small guests do not pay for the limit of large ones.
//! A call that grows beyond its reservation takes more memory. If it may not, it ends `busy`, because it cannot wait without
//! keeping what it has from others that wait as well.
//!
//! No plugin can keep others waiting:
//! - a plugin that already runs leaves a quarter of what other plugins do not use, and an eighth of all for plugins without a
//!   running call;
//! - a call whose memory is unknown, and whose plugin runs no other, begins once it gets that eighth;
//! - of the calls that wait, those of the plugin with the least memory begin first, and a call that does not fit holds up only
//!   the calls of its own plugin;
//! - an eighth is kept for policies, because a policy that gets no answer in time counts as failed.
//!
//! The instances of durable calls that wait are dropped before any call waits for room ([`Spare`]).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capabilities::SharedMemory;
use capabilities::fair_share::FairShare;
use domain::{Digest, Limits, PluginName};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The part that is kept for policies, once one is loaded.
const POLICIES: usize = 8;

/// The part that plugins leave for others that run no call. Without it, a few plugins that always run could keep out the
/// first call of another one, which reserves all that it may use.
const NEWCOMERS: usize = 8;

/// A running plugin may have at most this many times the memory that it leaves free.
const MAX_SHARE: usize = 3;

/// The user of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// The calls of a plugin.
    Plugin(PluginName),
    /// The call of `tools()` of a component.
    Catalog(Digest),
    Policy(Digest),
}

impl User {
    fn is_policy(&self) -> bool {
        matches!(self, Self::Policy(_))
    }
}

/// Reservations that nobody needs. They are given up when others need the room.
pub(crate) trait Spare: Send + Sync {
    fn count(&self) -> usize;
    /// Drops one. False if nothing is spare. Nothing of the pool may be locked.
    fn drop_one(&self) -> bool;
}

/// The instances and the memory that all guests share.
pub(crate) struct Pool {
    instances: usize,
    memory: usize,
    spare: Arc<dyn Spare>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    has_policies: bool,
    all: Amount,
    of_policies: Amount,
    users: HashMap<User, Held>,
    /// The calls that wait, in the order of their arrival.
    waiting: Vec<Waiting>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    instances: usize,
    memory: usize,
}

struct Held {
    amount: Amount,
    fair_share: Arc<FairShare>,
}

struct Waiting {
    user: User,
    memory: Expected,
    /// Where the call will run.
    runtime: Handle,
    ready: oneshot::Sender<Reservation>,
}

impl Pool {
    pub(crate) fn new(instances: usize, memory: usize, spare: Arc<dyn Spare>) -> Arc<Self> {
        Arc::new(Self { instances, memory, spare, state: Mutex::default() })
    }

    /// Keeps a part for policies from now on.
    pub(crate) fn keep_for_policies(&self) {
        self.state().has_policies = true;
    }

    /// Whether no guest runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().all.instances <= self.spare.count()
    }

    /// Whether calls wait for room.
    pub(crate) fn is_full(&self) -> bool {
        self.state().waiting.iter().any(|call| !call.ready.is_closed())
    }

    /// Waits for an instance and this much memory, or for this user's maximum if that is less. `None` if they are not free
    /// in time.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        user: User,
        memory: Expected,
        patience: Duration,
    ) -> Option<Reservation> {
        let runtime = Handle::current();
        let waits = loop {
            let mut state = self.state();
            // A sender whose receiver was dropped belongs to a call that has ended.
            let is_first = !state.waiting.iter().any(|other| other.user == user && !other.ready.is_closed());
            if let Some(reservation) = is_first.then(|| self.take(&mut state, &user, memory, &runtime)).flatten() {
                return Some(reservation);
            }
            // Looked at under the lock: what becomes spare later sees that this call waits.
            if self.spare.count() == 0 {
                let (ready, waits) = oneshot::channel();
                state.waiting.push(Waiting { user, memory, runtime, ready });
                break waits;
            }
            drop(state);
            self.spare.drop_one();
        };
        // Dropped after the receiver: when this call leaves, a smaller one of the same plugin may begin.
        let _leaves = Leaves(self);
        tokio::time::timeout(patience, waits).await.ok()?.ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reservation, if there is room.
    fn take(
        self: &Arc<Self>,
        state: &mut State,
        user: &User,
        memory: Expected,
        runtime: &Handle,
    ) -> Option<Reservation> {
        // A call waits for no more than it can get. A policy waits for no more than the part that is kept for policies.
        let kept = self.memory / POLICIES;
        let max = match (user.is_policy(), state.has_policies) {
            (true, _) => kept,
            (false, true) => self.memory - kept,
            (false, false) => self.memory,
        };
        let held = state.users.get(user).map(|held| held.amount).unwrap_or_default();
        let (free, is_alone) = (self.free(state, user), held.instances == 0);
        let memory = match memory {
            Expected::AtMost(memory) if is_alone && free.memory >= self.memory / NEWCOMERS => {
                let kept = self.memory / NEWCOMERS;
                // More if it is free, but then it leaves as much for others.
                memory.min((free.memory - kept).max(kept))
            }
            Expected::AtMost(memory) | Expected::Known(memory) => memory,
        };
        let memory = memory.min(max);
        let fits = is_within_share(free.instances, held.instances, 1, kept_free(self.instances, is_alone))
            && is_within_share(free.memory, held.memory, memory, kept_free(self.memory, is_alone));
        if !fits {
            return None;
        }
        let new = || Held { amount: Amount::default(), fair_share: FairShare::on(runtime) };
        let fair_share = Arc::clone(&state.users.entry(user.clone()).or_insert_with(new).fair_share);
        state.change(user, |amount| {
            amount.instances += 1;
            amount.memory += memory;
        });
        let memory = Mutex::new(Memory { reserved: memory, used: [0; 3] });
        Some(Reservation { pool: Arc::clone(self), user: user.clone(), memory, fair_share })
    }

    /// The instances and the memory that this user may take.
    fn free(&self, state: &State, user: &User) -> Amount {
        let free = |whole: usize, used: usize, by_policies: usize| {
            let part = (whole / POLICIES).max(usize::from(whole > 1));
            let kept = if state.has_policies && !user.is_policy() { part } else { 0 };
            let kept = kept.saturating_sub(by_policies);
            whole.saturating_sub(used).saturating_sub(kept)
        };
        Amount {
            instances: free(self.instances, state.all.instances, state.of_policies.instances),
            memory: free(self.memory, state.all.memory, state.of_policies.memory),
        }
    }

    /// Lets calls begin that wait and fit.
    fn serve(self: &Arc<Self>) {
        loop {
            let (ready, reservation) = {
                let mut state = self.state();
                state.waiting.retain(|call| !call.ready.is_closed());
                let Some(next) = self.next(&mut state) else { return };
                next
            };
            // A call that has left meanwhile drops its reservation, which serves the next one.
            drop(ready.send(reservation));
        }
    }

    /// The next of the waiting calls that may begin, with its reservation.
    fn next(self: &Arc<Self>, state: &mut State) -> Option<(oneshot::Sender<Reservation>, Reservation)> {
        for (at, user) in state.first_of_each() {
            let Waiting { memory, runtime, .. } = &state.waiting[at];
            let (memory, runtime) = (*memory, runtime.clone());
            if let Some(reservation) = self.take(state, &user, memory, &runtime) {
                return Some((state.waiting.remove(at).ready, reservation));
            }
        }
        None
    }
}

/// The part of a whole that a plugin leaves free. `None`: it may take everything, because it runs no other call.
fn kept_free(whole: usize, is_alone: bool) -> Option<usize> {
    (!is_alone).then_some(whole / NEWCOMERS)
}

/// Whether a user that has `held` may take `more` of what is free, and leaves its share and `kept` of it.
fn is_within_share(free: usize, held: usize, more: usize, kept: Option<usize>) -> bool {
    let Some(left) = free.checked_sub(more) else { return more == 0 };
    let leaves = |kept| left >= kept && held.saturating_add(more) <= left.saturating_mul(MAX_SHARE);
    more == 0 || kept.is_none_or(leaves)
}

impl State {
    /// The first waiting call of each user: policies before plugins, and users with little memory before others.
    fn first_of_each(&self) -> Vec<(usize, User)> {
        let mut seen = HashSet::new();
        let calls = self.waiting.iter().map(|call| &call.user).enumerate();
        let mut first: Vec<_> =
            calls.filter(|(_, user)| seen.insert(*user)).map(|(at, user)| (at, user.clone())).collect();
        let held = |user: &User| self.users.get(user).map_or(0, |held| held.amount.memory);
        first.sort_by_key(|(_, user)| (!user.is_policy(), held(user)));
        first
    }

    /// Changes the amount of a user who holds something, and the sums.
    fn change(&mut self, user: &User, change: impl Fn(&mut Amount)) {
        change(&mut self.all);
        if user.is_policy() {
            change(&mut self.of_policies);
        }
        if let Some(held) = self.users.get_mut(user) {
            change(&mut held.amount);
            if held.amount.instances == 0 {
                self.users.remove(user);
            }
        }
    }
}

/// Serves others when a call stops waiting.
struct Leaves<'a>(&'a Arc<Pool>);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.serve();
    }
}

/// One guest's instance and its part of the memory. They are given back when this is dropped.
pub(crate) struct Reservation {
    pool: Arc<Pool>,
    user: User,
    memory: Mutex<Memory>,
    fair_share: Arc<FairShare>,
}

/// The memory of one guest. Memory that the guest has used is not given back before the guest ends.
struct Memory {
    reserved: usize,
    used: [usize; 3],
}

/// A part of the memory of one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Linear,
    /// Host memory that is held on its behalf.
    Host,
    /// The journal that its run repeats.
    Journal,
}

fn sum(used: [usize; 3]) -> usize {
    used.iter().fold(0, |sum: usize, part| sum.saturating_add(*part))
}

impl Reservation {
    /// Covers so much memory of this part: first by the reservation, then by what is free or spare. Returns false if there is
    /// too little.
    pub(crate) fn covers(&self, part: Part, bytes: usize) -> bool {
        self.covers_with_spare(part, bytes, 0)
    }

    /// Covers the journal of a run that continues a kept instance, and reserves as much for the guest as a new instance would.
    /// Returns false if there is too little.
    pub(crate) fn covers_next_run(&self, guest: usize, journal: usize) -> bool {
        self.covers_with_spare(Part::Journal, journal, guest.saturating_add(journal))
    }

    /// Nothing of this is locked while something spare is dropped, because that changes the pool.
    fn covers_with_spare(&self, part: Part, bytes: usize, at_least: usize) -> bool {
        loop {
            if self.covers_with_free(part, bytes, at_least) {
                return true;
            }
            if !self.pool.spare.drop_one() {
                return false;
            }
        }
    }

    fn covers_with_free(&self, part: Part, bytes: usize, at_least: usize) -> bool {
        let mut memory = self.memory();
        let mut used = memory.used;
        used[part as usize] = bytes.max(used[part as usize]);
        let sum = sum(used).max(at_least);
        if let Some(more) = sum.checked_sub(memory.reserved).filter(|more| *more > 0) {
            if !self.takes(more) {
                return false;
            }
            memory.reserved = sum;
        }
        memory.used = used;
        true
    }

    /// Takes more of what is free.
    fn takes(&self, more: usize) -> bool {
        let mut state = self.pool.state();
        let held = state.users.get(&self.user).map(|held| held.amount).unwrap_or_default();
        let free = self.pool.free(&state, &self.user).memory;
        let kept = kept_free(self.pool.memory, held.instances == 1);
        let fits = is_within_share(free, held.memory, more, kept);
        if fits {
            state.change(&self.user, |amount| amount.memory += more);
        }
        fits
    }

    /// The bytes that the guest has used at most, without the journal.
    pub(crate) fn peak(&self) -> usize {
        let used = self.memory().used;
        used[Part::Linear as usize] + used[Part::Host as usize]
    }

    pub(crate) fn reserved(&self) -> usize {
        self.memory().reserved
    }

    /// Gives back what a guest that waits does not need: the journal except for `repeated` bytes, and what the guest has not used
    /// and exceeds this much memory.
    pub(crate) fn shrink(&self, guest: usize, repeated: usize) {
        {
            let mut memory = self.memory();
            let journal = &mut memory.used[Part::Journal as usize];
            *journal = repeated.min(*journal);
            let journal = *journal;
            let kept = sum(memory.used).max(guest.saturating_add(journal)).min(memory.reserved);
            let less = memory.reserved - kept;
            memory.reserved = kept;
            self.pool.state().change(&self.user, |amount| amount.memory -= less);
        }
        self.pool.serve();
    }

    /// Locked before the pool's state.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes that all guests together may use.
    pub(crate) fn budget(&self) -> usize {
        self.pool.memory
    }

    /// The share of the plugin in the guests' threads.
    pub(crate) fn fair_share(&self) -> &FairShare {
        &self.fair_share
    }
}

impl SharedMemory for Reservation {
    fn covers_host_memory(&self, bytes: usize) -> bool {
        self.covers(Part::Host, bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let memory = self.reserved();
        self.pool.state().change(&self.user, |amount| {
            amount.instances -= 1;
            amount.memory -= memory;
        });
        self.pool.serve();
    }
}

/// The bytes that a call will use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The maximum of the component's earlier calls.
    Known(usize),
    /// No call of the component has ended yet, so only its limit is known.
    AtMost(usize),
}

impl Expected {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Known(bytes) | Self::AtMost(bytes) => bytes,
        }
    }
}

/// The maximum memory that a call of one component has used.
pub(crate) struct Peak(AtomicUsize);

impl Default for Peak {
    fn default() -> Self {
        Self(AtomicUsize::new(Self::UNKNOWN))
    }
}

impl Expected {
    /// The same and a journal.
    pub(crate) fn with_journal(self, bytes: usize) -> Self {
        match self {
            Self::Known(memory) => Self::Known(memory.saturating_add(bytes)),
            Self::AtMost(memory) => Self::AtMost(memory.saturating_add(bytes)),
        }
    }
}

impl Peak {
    const UNKNOWN: usize = usize::MAX;

    /// The memory of the next call under these limits.
    pub(crate) fn expected(&self, limits: &Limits) -> Expected {
        let limit = limits.memory.saturating_add(limits.host_bytes);
        match self.0.load(Ordering::Relaxed) {
            Self::UNKNOWN => Expected::AtMost(limit),
            known => Expected::Known(known.min(limit)),
        }
    }

    /// Records the memory of a call that has ended.
    pub(crate) fn record(&self, used: usize) {
        let larger = |known: usize| (known == Self::UNKNOWN || known < used).then_some(used);
        // An error means that a call has used as much before.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, larger);
    }
}

#[cfg(test)]
mod tests;
