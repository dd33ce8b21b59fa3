//! Stopping what runs. A guest that has begun is told that it should stop and has a grace to do so; whatever has not begun
//! ends at once, and never begins.

use std::sync::{Arc, Mutex, PoisonError};

use domain::Span;
use tokio::task::AbortHandle;

use crate::dispatcher::Parts;

/// Whether something that runs should stop. One for each call, and one for all calls of an ephemeral turn.
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
        *state = match *state {
            State::Waiting => State::Begun(grace),
            // A sibling of the same ephemeral turn.
            State::Begun(before) => State::Begun(before.max(grace)),
            State::Requested => return false,
        };
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

/// A task that runs guests, and the way to stop it.
pub(crate) struct Running {
    pub(crate) task: AbortHandle,
    pub(crate) stop: Arc<Stop>,
}

impl Running {
    /// Tells the task to stop. It ends at once if no guest of it has begun, and at the end of the grace at the latest:
    /// until then it keeps its place and its instance, and after that nothing of the guest runs.
    pub(crate) fn stop(&self, parts: &Parts) {
        match self.stop.request() {
            None => {}
            Some(Span::ZERO) => self.task.abort(),
            Some(grace) => {
                // Nothing else of the host is kept alive for it.
                let (clock, task) = (parts.clock.clone(), self.task.clone());
                let until = clock.now() + grace;
                parts.guests.spawn(async move {
                    clock.sleep_until(until).await;
                    task.abort();
                });
            }
        }
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
        assert!(begun.begins(second) && begun.begins(Span::from_millis(1)) && !begun.is_requested());
        assert_eq!(begun.request(), Some(second), "the longest of all that run");
        assert_eq!((begun.request(), begun.begins(second)), (None, false), "a grace begins once");
    }
}
