//! Stopping what runs. A guest that has begun is told that it should stop and has a grace to do so; whatever has not begun
//! ends at once, and never begins.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Span;
use futures::future::{AbortHandle, Abortable};

use crate::parts::Parts;

/// Whether a call should stop.
#[derive(Default)]
pub(crate) struct Stop(Mutex<State>);

#[derive(Clone, Copy, Default)]
enum State {
    /// No guest runs yet: the call waits for a place, or its component is being made ready.
    #[default]
    Waiting,
    /// A guest runs, and may go on for so long once it should stop.
    Begun(Span),
    /// It should stop.
    Requested,
}

impl Stop {
    /// A guest is about to run, which would have so long to stop. False: it must not begin any more.
    pub(crate) fn begins(&self, grace: Span) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Requested) {
            return false;
        }
        *state = State::Begun(grace);
        true
    }

    /// Whether it should stop.
    pub(crate) fn is_requested(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Requested)
    }

    /// Asks it to stop, and returns how long it may still take: no time where nothing has begun. `None`: it was asked before.
    fn request(&self) -> Option<Span> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Requested) {
            State::Waiting => Some(Span::ZERO),
            State::Begun(grace) => Some(grace),
            State::Requested => None,
        }
    }
}

/// A call that is carried out, and the way to stop it.
#[derive(Clone)]
pub(crate) struct Running {
    run: AbortHandle,
    stop: Arc<Stop>,
}

impl Running {
    /// What `run` does for the call whose guest asks `stop`, and the way to stop it.
    pub(crate) fn new<F: Future>(stop: Arc<Stop>, run: F) -> (Self, Abortable<F>) {
        let (handle, registration) = AbortHandle::new_pair();
        (Self { run: handle, stop }, Abortable::new(run, registration))
    }

    /// Tells the call to stop. It ends at once if its guest has not begun, and at the end of its grace at the latest: until
    /// then it keeps its place and its instance, and after that nothing of the guest runs.
    pub(crate) fn stop(&self, parts: &Parts) {
        match self.stop.request() {
            None => {}
            Some(Span::ZERO) => self.run.abort(),
            Some(grace) => {
                // Nothing else of the host is kept alive for it.
                let (clock, run) = (parts.clock.clone(), self.run.clone());
                let until = clock.now() + grace;
                parts.guests.spawn(async move {
                    clock.sleep_until(until).await;
                    run.abort();
                });
            }
        }
    }
}

/// The calls of an ephemeral turn, for whoever stops them when its caller leaves: each has a grace of its own.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Stage>);

#[derive(Default)]
enum Stage {
    /// None of them runs: the turn is looked at.
    #[default]
    Planned,
    /// All of them are carried out.
    Running(Vec<Running>),
    /// Nobody waits for them.
    Left,
}

impl Calls {
    /// One of them is about to be carried out. False: the caller has left, and it may not be.
    pub(crate) fn add(&self, call: Running) -> bool {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Left => return false,
            Stage::Running(calls) => calls.push(call),
            stage @ Stage::Planned => *stage = Stage::Running(vec![call]),
        }
        true
    }

    /// Stops all of them. False: none runs yet, and none ever will.
    pub(crate) fn leave(&self, parts: &Parts) -> bool {
        let stage = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Stage::Left);
        let Stage::Running(calls) = stage else { return false };
        calls.iter().for_each(|call| call.stop(parts));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_has_a_grace_and_what_has_not_never_begins() {
        let second = Span::from_secs(1);
        let waiting = Stop::default();
        assert_eq!((waiting.request(), waiting.begins(second)), (Some(Span::ZERO), false));
        assert!(waiting.is_requested());
        let begun = Stop::default();
        assert!(begun.begins(second) && !begun.is_requested());
        assert_eq!(begun.request(), Some(second));
        assert_eq!((begun.request(), begun.begins(second)), (None, false), "a grace begins once");
    }
}
