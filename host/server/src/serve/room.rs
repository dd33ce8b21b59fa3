//! Room for so many connections. When there is none left, one that waits for its client is closed: the one that has waited
//! longest. So clients that open connections and send nothing, or read nothing, keep nobody out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Room for connections.
pub(super) struct Room {
    most: usize,
    /// Rises with everything that happens, so that what is lower was earlier.
    now: AtomicU64,
    seats: Mutex<HashMap<u64, Arc<State>>>,
    /// One has gone, or waits for its client by now.
    changed: Notify,
}

/// How a connection stands.
struct State {
    /// Since when it has waited for its client to send a request or to read its answer; zero while it has not.
    idle: AtomicU64,
    taken: Notify,
}

/// The room that one connection takes, for as long as this is held.
pub(super) struct Seat {
    room: Arc<Room>,
    number: u64,
    state: Arc<State>,
    /// Whether a request is being answered.
    answering: AtomicBool,
    /// Whether a request was answered before all of its body had arrived.
    pub(super) unread: AtomicBool,
}

/// A request is being answered for as long as this is held.
pub(super) struct Answering(Arc<Seat>);

impl Room {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let most = most.max(1);
        Arc::new(Self { most, now: AtomicU64::new(1), seats: Mutex::default(), changed: Notify::new() })
    }

    /// A seat, as soon as there is one.
    pub(super) async fn seat(self: &Arc<Self>) -> Seat {
        loop {
            let changed = self.changed.notified();
            if self.seats().len() < self.most || self.make() {
                return self.take();
            }
            // All of them are being answered, and each for no longer than its principal's quota and the clock allow.
            changed.await;
        }
    }

    fn take(self: &Arc<Self>) -> Seat {
        let number = self.tick();
        let state = Arc::new(State { idle: AtomicU64::new(number), taken: Notify::new() });
        self.seats().insert(number, state.clone());
        let (answering, unread) = (AtomicBool::new(false), AtomicBool::new(false));
        Seat { room: self.clone(), number, state, answering, unread }
    }

    /// Closes the connection that has waited longest for its client. Whether there was one.
    pub(super) fn make(&self) -> bool {
        let mut seats = self.seats();
        let waiting = seats.iter().map(|(number, state)| (state.idle.load(Ordering::Acquire), *number));
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

    /// From now on it waits for its client.
    pub(super) fn waits(&self) {
        let now = self.room.tick();
        if self.state.idle.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.room.changed.notify_waiters();
        }
    }

    /// Its client has done its part: from now on the host is at work for it, if it has anything to answer.
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
        self.0.answering.store(false, Ordering::Release);
        self.0.waits();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn whoever_has_waited_longest_for_its_client_makes_room_and_nobody_who_is_being_answered() {
        let room = Room::new(3);
        let seat = || room.seat().now_or_never().map(Arc::new);
        let is_taken = |seat: &Arc<Seat>| seat.taken().now_or_never().is_some();
        let [first, second, third] = [(); 3].map(|()| seat().unwrap());
        let answering = Answering::new(first.clone());
        let fourth = seat().unwrap();
        assert!(!is_taken(&first) && is_taken(&second) && !is_taken(&third));
        drop(second);
        // What ended its answer has waited since then, and not since it came.
        drop(answering);
        let fifth = seat().unwrap();
        assert!(!is_taken(&first) && is_taken(&third) && !is_taken(&fourth));
        drop(third);
        let all = [&first, &fourth, &fifth].map(|seat| Answering::new(seat.clone()));
        let mut waiting = Box::pin(room.seat());
        assert!(waiting.as_mut().now_or_never().is_none(), "all are being answered");
        drop(all);
        assert!(waiting.now_or_never().is_some());
        assert!(is_taken(&first));
    }
}
