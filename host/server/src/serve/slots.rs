//! Slots for connections. When all are taken, the connection that has waited longest for its client is closed. So idle
//! clients cannot block others. One peer gets only part of the slots: at its limit, it replaces its own connections.
//!
//! Connections are of two classes: those whose newest request was authenticated, and all others. The larger class makes
//! room. So each class keeps half of the slots, if it needs them. A stranger cannot close the connections of principals,
//! and principals cannot keep out those who connect or log in.

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
    phase: Mutex<Phase>,
    evicted: Notify,
}

/// The part of the state that changes with each request.
#[derive(Clone, Copy)]
struct Phase {
    /// Since when the connection has waited for its client to send a request or to read an answer. `None` while the host
    /// is at work.
    waits_since: Option<u64>,
    /// Whether the newest request has a valid credential.
    is_authenticated: bool,
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

/// The connection of a request, among the extensions of the request.
#[derive(Clone)]
pub(crate) struct ConnectionHandle(Arc<Slots>, Arc<State>);

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
            if count >= self.max_per_peer && !self.evict_of(is_of) {
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
        let phase = Mutex::new(Phase { waits_since: Some(number), is_authenticated: false });
        let state = Arc::new(State { network, phase, evicted: Notify::new() });
        self.slots().insert(number, state.clone());
        let (answering, unread) = (AtomicBool::new(false), AtomicBool::new(false));
        Slot { slots: self.clone(), number, state, request_since: AtomicU64::new(number), answering, unread }
    }

    /// Closes a connection that waits for its client. Returns whether there was one that may be closed.
    pub(super) fn evict(&self) -> bool {
        self.evict_of(|_| true)
    }

    /// Closes the connection of the larger class that has waited longest. Authenticated connections make room only while
    /// they are more than the others.
    fn evict_of(&self, is_of: impl Fn(&State) -> bool) -> bool {
        let mut slots = self.slots();
        let phases = slots.iter().filter(|(_, state)| is_of(state)).map(|(number, state)| (*number, *state.phase()));
        let (authenticated, others): (Vec<_>, Vec<_>) = phases.partition(|(_, phase)| phase.is_authenticated);
        let longest_waiting = |class: &[(u64, Phase)]| {
            let waiting = class.iter().filter_map(|(number, phase)| Some((phase.waits_since?, *number)));
            waiting.min().map(|(_, number)| number)
        };
        let evicted = match longest_waiting(&authenticated) {
            Some(number) if authenticated.len() > others.len() => Some(number),
            _ => longest_waiting(&others),
        };
        let Some(state) = evicted.and_then(|number| slots.remove(&number)) else { return false };
        state.evicted.notify_one();
        true
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionHandle {
    /// The newest request has a valid credential.
    pub(crate) fn set_authenticated(&self) {
        self.1.phase().is_authenticated = true;
        // Its class may be the larger one now, and make room.
        self.0.changed.notify_waiters();
    }
}

impl Slot {
    pub(super) fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(self.slots.clone(), self.state.clone())
    }

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
        let mut phase = self.state.phase();
        if phase.waits_since.is_none() {
            phase.waits_since = Some(since);
            drop(phase);
            self.slots.changed.notify_waiters();
        }
    }

    /// The connection no longer waits for its client, if the host has a request to answer.
    pub(super) fn works(&self) {
        if self.answering.load(Ordering::Acquire) {
            self.state.phase().waits_since = None;
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
        // Until its credential is checked, the request is nobody's.
        *slot.state.phase() = Phase { waits_since: None, is_authenticated: false };
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

    /// Answers an authenticated request on each of these connections.
    fn authenticate<const N: usize>(connections: [&Arc<Slot>; N]) {
        for slot in connections {
            let _answering = Answering::new(slot.clone());
            slot.handle().set_authenticated();
        }
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
    fn stranger_never_closes_an_authenticated_connection() {
        let slots = Slots::new(4, 4);
        let [idle, sending] = [(); 2].map(|()| slot(&slots, LOCAL).unwrap());
        authenticate([&idle, &sending]);
        let _answering = Answering::new(sending.clone());
        sending.handle().set_authenticated();
        sending.waits_for_request();
        let mut strangers: Vec<_> = [(); 2].map(|()| slot(&slots, LOCAL).unwrap()).into();
        for _ in 0..20 {
            strangers.push(slot(&slots, LOCAL).unwrap());
            assert!(is_evicted(&strangers.remove(0)));
        }
        // While both strangers are being answered, the next one waits.
        let answering = [&strangers[0], &strangers[1]].map(|slot| Answering::new(slot.clone()));
        let mut waiting = Box::pin(slots.slot(Peer(LOCAL.parse().unwrap())));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(answering);
        assert!(waiting.now_or_never().is_some());
        assert!(!is_evicted(&idle) && !is_evicted(&sending));
    }

    #[test]
    fn authenticated_connections_leave_half_to_strangers() {
        let slots = Slots::new(4, 4);
        let principals = [(); 4].map(|()| slot(&slots, LOCAL).unwrap());
        authenticate(principals.each_ref());
        let strangers = [(); 3].map(|()| slot(&slots, LOCAL).unwrap());
        assert_eq!(principals.each_ref().map(|slot| is_evicted(slot)), [true, true, false, false]);
        assert_eq!(strangers.each_ref().map(|slot| is_evicted(slot)), [true, false, false]);
    }

    #[test]
    fn newcomer_that_waits_sees_a_change_of_class() {
        let slots = Slots::new(2, 2);
        let [idle, answered] = [(); 2].map(|()| slot(&slots, LOCAL).unwrap());
        authenticate([&idle]);
        let _answering = Answering::new(answered.clone());
        let mut waiting = Box::pin(slots.slot(Peer(LOCAL.parse().unwrap())));
        assert!(waiting.as_mut().now_or_never().is_none());
        answered.handle().set_authenticated();
        assert!(waiting.now_or_never().is_some());
        assert!(is_evicted(&idle));
    }

    #[test]
    fn class_follows_the_newest_request() {
        let slots = Slots::new(2, 2);
        let [first, second] = [(); 2].map(|()| slot(&slots, LOCAL).unwrap());
        authenticate([&first, &second]);
        // A request without a credential.
        drop(Answering::new(second.clone()));
        let _third = slot(&slots, LOCAL).unwrap();
        assert!(!is_evicted(&first) && is_evicted(&second));
    }

    #[test]
    fn stranger_replaces_another_if_no_principal_waits() {
        let slots = Slots::new(3, 3);
        let principals = [(); 2].map(|()| slot(&slots, LOCAL).unwrap());
        let _answering = principals.each_ref().map(|slot| {
            let answering = Answering::new(slot.clone());
            slot.handle().set_authenticated();
            answering
        });
        let stranger = slot(&slots, LOCAL).unwrap();
        let _next = slot(&slots, LOCAL).unwrap();
        assert!(is_evicted(&stranger));
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
