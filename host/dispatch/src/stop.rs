//! Stopping calls. A running guest is asked to stop and has a grace period. A call whose guest has not begun
//! ends at once, and the guest never begins.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use domain::Span;
use futures::future::{AbortHandle, Abortable};

use crate::shared::Shared;

/// Whether a call should stop.
#[derive(Default)]
pub(crate) struct StopSignal(Mutex<State>);

#[derive(Clone, Copy, Default)]
enum State {
    /// No guest runs yet: the call waits for a permit, or its component is being prepared.
    #[default]
    Waiting,
    /// A guest runs, and has this grace period once it should stop.
    Begun(Span),
    Requested,
}

impl StopSignal {
    /// A guest is about to run, with this grace period. Returns false if it must not begin any more.
    pub(crate) fn try_start(&self, grace: Span) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Requested) {
            return false;
        }
        *state = State::Begun(grace);
        true
    }

    /// The guest has ended, and the call runs again later. Until then a stop ends the call at once.
    pub(crate) fn pause(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Begun(_)) {
            *state = State::Waiting;
        }
    }

    pub(crate) fn is_requested(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Requested)
    }

    /// Asks the call to stop, and returns its grace period, which is zero if no guest has begun. `None`: it was asked
    /// before.
    fn request(&self) -> Option<Span> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Requested) {
            State::Waiting => Some(Span::ZERO),
            State::Begun(grace) => Some(grace),
            State::Requested => None,
        }
    }
}

/// A call that runs, and the way to stop it.
#[derive(Clone)]
pub(crate) struct RunningCall {
    run: AbortHandle,
    stop: Arc<StopSignal>,
}

impl RunningCall {
    /// Wraps `run` so that it can be stopped. The guest of the call asks `stop`.
    pub(crate) fn new<F: Future>(stop: Arc<StopSignal>, run: F) -> (Self, Abortable<F>) {
        let (handle, registration) = AbortHandle::new_pair();
        (Self { run: handle, stop }, Abortable::new(run, registration))
    }

    /// Tells the call to stop. It ends at once if its guest has not begun, and at the end of its grace period at the
    /// latest. Until then it keeps its permit and its instance; after that nothing of the guest runs.
    pub(crate) fn stop(&self, shared: &Shared) {
        match self.stop.request() {
            None => {}
            Some(Span::ZERO) => self.run.abort(),
            Some(grace) => {
                // The task holds nothing else of the host.
                let (clock, run) = (shared.clock.clone(), self.run.clone());
                let until = clock.now() + grace;
                shared.guest_runtime.spawn(async move {
                    clock.sleep_until(until).await;
                    run.abort();
                });
            }
        }
    }
}

/// The calls of an ephemeral turn. When its caller leaves they are stopped, each with its own grace period.
#[derive(Default)]
pub(crate) struct Calls(Mutex<Stage>);

#[derive(Default)]
enum Stage {
    /// None of them runs yet.
    #[default]
    Planned,
    Running(Vec<RunningCall>),
    /// The caller has left.
    Left,
}

impl Calls {
    /// Adds a call that is about to run. Returns false if the caller has left, and then it must not run.
    pub(crate) fn add(&self, call: RunningCall) -> bool {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Stage::Left => return false,
            Stage::Running(calls) => calls.push(call),
            stage @ Stage::Planned => *stage = Stage::Running(vec![call]),
        }
        true
    }

    /// Stops all of them. Returns false if none runs yet, and then none ever will.
    pub(crate) fn leave(&self, shared: &Shared) -> bool {
        let stage = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Stage::Left);
        let Stage::Running(calls) = stage else { return false };
        calls.iter().for_each(|call| call.stop(shared));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_guest_that_runs_has_a_grace_period() {
        let second = Span::from_secs(1);
        let waiting = StopSignal::default();
        assert_eq!((waiting.request(), waiting.try_start(second)), (Some(Span::ZERO), false));
        assert!(waiting.is_requested());
        let begun = StopSignal::default();
        assert!(begun.try_start(second) && !begun.is_requested());
        assert_eq!(begun.request(), Some(second));
        assert_eq!((begun.request(), begun.try_start(second)), (None, false), "a grace period starts once");
        begun.pause();
        assert!(begun.is_requested(), "a stop is not forgotten");
        let paused = StopSignal::default();
        paused.try_start(second);
        paused.pause();
        assert_eq!(paused.request(), Some(Span::ZERO));
    }
}
