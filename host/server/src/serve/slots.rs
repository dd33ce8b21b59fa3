//! Slots for connections. When all are taken, the connection that has waited longest for its client is closed. So idle
//! clients cannot block others. One peer gets only part of the slots: at its limit, it replaces its own connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::login_throttle::{Peer, network};

/// The slots of a server.
pub(super) struct Slots {
    max: usize,
    max_per_peer: usize,
    /// A logical clock: a lower number is an earlier event.
    now: AtomicU64,
    slots: Mutex<HashMap<u64, Arc<State>>>,
    /// A slot became free, or its connection began to wait for its client.
    changed: Notify,
}

/// The state of a connection.
struct State {
    /// The network it comes from. `None` for loopback, which is not bounded: a local proxy and all local users share
    /// it.
    network: Option<IpAddr>,
    /// Since when it has waited for its client to send a request or to read an answer. Zero while the host is at work.
    idle: AtomicU64,
    evicted: Notify,
}

/// The slot of one connection, for as long as this is held.
pub(super) struct Slot {
    slots: Arc<Slots>,
    number: u64,
    state: Arc<State>,
    /// Since when the connection waits for the current request: when the connection was opened, or at the last response. Bytes
    /// of a request do not reset it, so a slow sender gains nothing.
    request_since: AtomicU64,
    /// Whether a request is being answered.
    answering: AtomicBool,
    /// Whether a request was answered before its whole body had arrived.
    pub(super) unread: AtomicBool,
}

/// A request is being answered for as long as this is held.
pub(super) struct Answering(Arc<Slot>);

impl Slots {
    pub(super) fn new(max: usize, max_per_peer: usize) -> Arc<Self> {
        let (max, max_per_peer) = (max.max(1), max_per_peer.max(1));
        Arc::new(Self { max, max_per_peer, now: AtomicU64::new(1), slots: Mutex::default(), changed: Notify::new() })
    }

    /// A slot for a peer, as soon as one is free. `None` if the peer has reached its limit and none of its connections
    /// waits for its client.
    pub(super) async fn slot(self: &Arc<Self>, peer: Peer) -> Option<Slot> {
        let network = (!peer.0.to_canonical().is_loopback()).then(|| network(Some(peer)));
        if let Some(network) = network {
            let is_of = |state: &State| state.network == Some(network);
            let count = self.slots().values().filter(|state| is_of(state)).count();
            if count >= self.max_per_peer && !self.evict_longest_waiting(is_of) {
                return None;
            }
        }
        loop {
            let changed = self.changed.notified();
            if self.slots().len() < self.max || self.evict() {
                return Some(self.take(network));
            }
            // Every connection has a request in flight. The quota of its principal and the time limits end it.
            changed.await;
        }
    }

    fn take(self: &Arc<Self>, network: Option<IpAddr>) -> Slot {
        let number = self.tick();
        let state = Arc::new(State { network, idle: AtomicU64::new(number), evicted: Notify::new() });
        self.slots().insert(number, state.clone());
        let (answering, unread) = (AtomicBool::new(false), AtomicBool::new(false));
        Slot { slots: self.clone(), number, state, request_since: AtomicU64::new(number), answering, unread }
    }

    /// Closes the connection that has waited longest for its client. Returns whether there was one.
    pub(super) fn evict(&self) -> bool {
        self.evict_longest_waiting(|_| true)
    }

    fn evict_longest_waiting(&self, may_be: impl Fn(&State) -> bool) -> bool {
        let mut slots = self.slots();
        let waiting = slots.iter().filter(|(_, state)| may_be(state));
        let waiting = waiting.map(|(number, state)| (state.idle.load(Ordering::Acquire), *number));
        let Some((_, number)) = waiting.filter(|(idle, _)| *idle > 0).min() else { return false };
        if let Some(state) = slots.remove(&number) {
            state.evicted.notify_one();
        }
        true
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Returns when the connection has to make room.
    pub(super) async fn evicted(&self) {
        self.state.evicted.notified().await;
    }

    /// From now on the connection waits for its client to read.
    pub(super) fn waits(&self) {
        self.waits_since(self.slots.tick());
    }

    /// The connection waits for the rest of a request.
    pub(super) fn waits_for_request(&self) {
        self.waits_since(self.request_since.load(Ordering::Acquire));
    }

    fn waits_since(&self, since: u64) {
        if self.state.idle.compare_exchange(0, since, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.slots.changed.notify_waiters();
        }
    }

    /// The connection no longer waits for its client, if the host has a request to answer.
    pub(super) fn works(&self) {
        if self.answering.load(Ordering::Acquire) {
            self.state.idle.store(0, Ordering::Release);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.slots().remove(&self.number);
        self.slots.changed.notify_waiters();
    }
}

impl Answering {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        slot.answering.store(true, Ordering::Release);
        slot.works();
        Self(slot)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let slot = &self.0;
        slot.answering.store(false, Ordering::Release);
        slot.request_since.store(slot.slots.tick(), Ordering::Release);
        slot.waits_for_request();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const LOCAL: &str = "127.0.0.1";

    fn slot(slots: &Arc<Slots>, peer: &str) -> Option<Arc<Slot>> {
        slots.slot(Peer(peer.parse().unwrap())).now_or_never().unwrap().map(Arc::new)
    }

    fn is_evicted(slot: &Slot) -> bool {
        slot.evicted().now_or_never().is_some()
    }

    #[test]
    fn longest_waiting_connection_makes_room() {
        let slots = Slots::new(3, 3);
        let [first, second, third] = [(); 3].map(|()| slot(&slots, LOCAL).unwrap());
        let answering = Answering::new(first.clone());
        let fourth = slot(&slots, LOCAL).unwrap();
        assert!(!is_evicted(&first) && is_evicted(&second) && !is_evicted(&third));
        drop(second);
        // A connection whose answer ended has waited since then, and not since it came.
        drop(answering);
        let fifth = slot(&slots, LOCAL).unwrap();
        assert!(!is_evicted(&first) && is_evicted(&third) && !is_evicted(&fourth));
        drop(third);
        let all = [&first, &fourth, &fifth].map(|slot| Answering::new(slot.clone()));
        let mut waiting = Box::pin(slots.slot(Peer(LOCAL.parse().unwrap())));
        assert!(waiting.as_mut().now_or_never().is_none(), "all are being answered");
        drop(all);
        assert!(waiting.now_or_never().is_some());
        assert!(is_evicted(&first));
    }

    #[test]
    fn connection_that_owes_a_body_makes_room() {
        let slots = Slots::new(2, 2);
        let [first, second] = [(); 2].map(|()| slot(&slots, LOCAL).unwrap());
        let answering = [&first, &second].map(|slot| Answering::new(slot.clone()));
        second.waits_for_request();
        // Some of the body comes, and then nothing again: it has waited since it was opened.
        second.works();
        second.waits_for_request();
        first.waits();
        let _third = slot(&slots, LOCAL).unwrap();
        assert!(!is_evicted(&first) && is_evicted(&second));
        drop(answering);
    }

    #[test]
    fn peer_at_its_bound_makes_room_for_itself() {
        let slots = Slots::new(5, 2);
        let [one, other] = ["192.0.2.1", "192.0.2.2"];
        let neighbour = slot(&slots, other).unwrap();
        let [first, second] = [(); 2].map(|()| slot(&slots, one).unwrap());
        let third = slot(&slots, "::ffff:192.0.2.1").unwrap();
        assert!(is_evicted(&first) && !is_evicted(&neighbour), "the neighbour has waited longer, and is another peer");
        drop(first);
        let answering = [&second, &third].map(|slot| Answering::new(slot.clone()));
        assert!(slot(&slots, one).is_none(), "all of its connections are being answered");
        assert!(slot(&slots, other).is_some());
        drop(answering);
        assert!(slot(&slots, one).is_some());
        assert!(is_evicted(&second) && !is_evicted(&neighbour));
    }

    #[test]
    fn loopback_has_no_bound_per_peer() {
        let slots = Slots::new(9, 1);
        let local: Vec<_> =
            ["127.0.0.1", "127.0.0.1", "::1", "::1", "::ffff:127.0.0.1"].map(|peer| slot(&slots, peer).unwrap()).into();
        assert!(local.iter().all(|slot| !is_evicted(slot)));
    }
}
