//! Slots for connections. When all are taken, the connection that has waited longest for its client is closed, so that
//! clients that send or read nothing keep nobody out. One peer has only part of the slots, and makes room for itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::guesses::{Peer, network};

/// The slots of a server.
pub(super) struct Room {
    most: usize,
    most_per_peer: usize,
    /// Rises with each event, so that a lower number is an earlier event.
    now: AtomicU64,
    seats: Mutex<HashMap<u64, Arc<State>>>,
    /// A slot became free, or its connection began to wait for its client.
    changed: Notify,
}

/// The state of a connection.
struct State {
    /// The network it comes from. `None` for loopback, which is not bounded: a local proxy and all local users share it.
    network: Option<IpAddr>,
    /// Since when it has waited for its client to send a request or to read an answer. Zero while the host is at work.
    idle: AtomicU64,
    taken: Notify,
}

/// The slot of one connection, for as long as this is held.
pub(super) struct Seat {
    room: Arc<Room>,
    number: u64,
    state: Arc<State>,
    /// Since when the client has owed the current request: since the connection was opened, or since the last answer. A client
    /// that sends a little at a time gains nothing by it.
    owed: AtomicU64,
    /// Whether a request is being answered.
    answering: AtomicBool,
    /// Whether a request was answered before its whole body had arrived.
    pub(super) unread: AtomicBool,
}

/// A request is being answered for as long as this is held.
pub(super) struct Answering(Arc<Seat>);

impl Room {
    pub(super) fn new(most: usize, most_per_peer: usize) -> Arc<Self> {
        let (most, most_per_peer) = (most.max(1), most_per_peer.max(1));
        Arc::new(Self { most, most_per_peer, now: AtomicU64::new(1), seats: Mutex::default(), changed: Notify::new() })
    }

    /// A slot for a peer, as soon as there is one. `None` where the peer has as many as it may, and none of them waits for
    /// its client.
    pub(super) async fn seat(self: &Arc<Self>, peer: Peer) -> Option<Seat> {
        let network = (!peer.0.to_canonical().is_loopback()).then(|| network(Some(peer)));
        if let Some(network) = network {
            let is_of = |state: &State| state.network == Some(network);
            let count = self.seats().values().filter(|state| is_of(state)).count();
            if count >= self.most_per_peer && !self.close_longest_waiting(is_of) {
                return None;
            }
        }
        loop {
            let changed = self.changed.notified();
            if self.seats().len() < self.most || self.make() {
                return Some(self.take(network));
            }
            // Each connection is being answered, for no longer than its principal's quota and the clock allow.
            changed.await;
        }
    }

    fn take(self: &Arc<Self>, network: Option<IpAddr>) -> Seat {
        let number = self.tick();
        let state = Arc::new(State { network, idle: AtomicU64::new(number), taken: Notify::new() });
        self.seats().insert(number, state.clone());
        let (answering, unread) = (AtomicBool::new(false), AtomicBool::new(false));
        Seat { room: self.clone(), number, state, owed: AtomicU64::new(number), answering, unread }
    }

    /// Closes the connection that has waited longest for its client. Returns whether there was one.
    pub(super) fn make(&self) -> bool {
        self.close_longest_waiting(|_| true)
    }

    fn close_longest_waiting(&self, may_be: impl Fn(&State) -> bool) -> bool {
        let mut seats = self.seats();
        let waiting = seats.iter().filter(|(_, state)| may_be(state));
        let waiting = waiting.map(|(number, state)| (state.idle.load(Ordering::Acquire), *number));
        let Some((_, number)) = waiting.filter(|(idle, _)| *idle > 0).min() else { return false };
        if let Some(state) = seats.remove(&number) {
            state.taken.notify_one();
        }
        true
    }

    fn tick(&self) -> u64 {
        self.now.fetch_add(1, Ordering::AcqRel)
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<u64, Arc<State>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Returns when the connection has to make room.
    pub(super) async fn taken(&self) {
        self.state.taken.notified().await;
    }

    /// From now on the connection waits for its client to read.
    pub(super) fn waits(&self) {
        self.waits_since(self.room.tick());
    }

    /// The connection waits for the rest of a request.
    pub(super) fn waits_for_request(&self) {
        self.waits_since(self.owed.load(Ordering::Acquire));
    }

    fn waits_since(&self, since: u64) {
        if self.state.idle.compare_exchange(0, since, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.room.changed.notify_waiters();
        }
    }

    /// The client has done its part: the host is at work, if it has a request to answer.
    pub(super) fn works(&self) {
        if self.answering.load(Ordering::Acquire) {
            self.state.idle.store(0, Ordering::Release);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.seats().remove(&self.number);
        self.room.changed.notify_waiters();
    }
}

impl Answering {
    pub(super) fn new(seat: Arc<Seat>) -> Self {
        seat.answering.store(true, Ordering::Release);
        seat.works();
        Self(seat)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let seat = &self.0;
        seat.answering.store(false, Ordering::Release);
        seat.owed.store(seat.room.tick(), Ordering::Release);
        seat.waits_for_request();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const LOCAL: &str = "127.0.0.1";

    fn seat(room: &Arc<Room>, peer: &str) -> Option<Arc<Seat>> {
        room.seat(Peer(peer.parse().unwrap())).now_or_never().unwrap().map(Arc::new)
    }

    fn is_taken(seat: &Seat) -> bool {
        seat.taken().now_or_never().is_some()
    }

    #[test]
    fn longest_waiting_connection_makes_room() {
        let room = Room::new(3, 3);
        let [first, second, third] = [(); 3].map(|()| seat(&room, LOCAL).unwrap());
        let answering = Answering::new(first.clone());
        let fourth = seat(&room, LOCAL).unwrap();
        assert!(!is_taken(&first) && is_taken(&second) && !is_taken(&third));
        drop(second);
        // A connection whose answer ended has waited since then, and not since it came.
        drop(answering);
        let fifth = seat(&room, LOCAL).unwrap();
        assert!(!is_taken(&first) && is_taken(&third) && !is_taken(&fourth));
        drop(third);
        let all = [&first, &fourth, &fifth].map(|seat| Answering::new(seat.clone()));
        let mut waiting = Box::pin(room.seat(Peer(LOCAL.parse().unwrap())));
        assert!(waiting.as_mut().now_or_never().is_none(), "all are being answered");
        drop(all);
        assert!(waiting.now_or_never().is_some());
        assert!(is_taken(&first));
    }

    #[test]
    fn connection_that_owes_a_body_makes_room() {
        let room = Room::new(2, 2);
        let [first, second] = [(); 2].map(|()| seat(&room, LOCAL).unwrap());
        let answering = [&first, &second].map(|seat| Answering::new(seat.clone()));
        second.waits_for_request();
        // Some of the body comes, and then nothing again: it has waited since it was opened.
        second.works();
        second.waits_for_request();
        first.waits();
        let _third = seat(&room, LOCAL).unwrap();
        assert!(!is_taken(&first) && is_taken(&second));
        drop(answering);
    }

    #[test]
    fn peer_at_its_bound_makes_room_for_itself() {
        let room = Room::new(5, 2);
        let [one, other] = ["192.0.2.1", "192.0.2.2"];
        let neighbour = seat(&room, other).unwrap();
        let [first, second] = [(); 2].map(|()| seat(&room, one).unwrap());
        let third = seat(&room, "::ffff:192.0.2.1").unwrap();
        assert!(is_taken(&first) && !is_taken(&neighbour), "the neighbour has waited longer, and is another peer");
        drop(first);
        let answering = [&second, &third].map(|seat| Answering::new(seat.clone()));
        assert!(seat(&room, one).is_none(), "all of its connections are being answered");
        assert!(seat(&room, other).is_some());
        drop(answering);
        assert!(seat(&room, one).is_some());
        assert!(is_taken(&second) && !is_taken(&neighbour));
    }

    #[test]
    fn loopback_has_no_bound_per_peer() {
        let room = Room::new(9, 1);
        let local: Vec<_> =
            ["127.0.0.1", "127.0.0.1", "::1", "::1", "::ffff:127.0.0.1"].map(|peer| seat(&room, peer).unwrap()).into();
        assert!(local.iter().all(|seat| !is_taken(seat)));
    }
}
