//! The gate that lets the drivers begin turns. While it is closed, everything that was begun is finished, so that the laws
//! can be checked on a quiet host.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::PATIENCE;

#[derive(Default)]
struct State {
    is_closed: bool,
    is_over: bool,
    /// Begun turns, and questions that no approver has answered yet.
    unfinished: usize,
}

/// The gate.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    /// Begins a turn, once the gate is open. Returns false when all is over.
    pub(super) fn enter(&self) -> bool {
        let waited = self.changed.wait_while(self.state(), |state| state.is_closed && !state.is_over);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.unfinished += usize::from(!state.is_over);
        !state.is_over
    }

    /// Adds something that must be finished before the gate is closed.
    pub(super) fn begin(&self) {
        self.state().unfinished += 1;
    }

    /// The end of a turn or of a question.
    pub(super) fn finish(&self) {
        self.state().unfinished -= 1;
        self.changed.notify_all();
    }

    /// Closes it, and returns when nothing is unfinished.
    ///
    /// # Panics
    /// When the drivers do not come to an end.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        let waited = self.changed.wait_timeout_while(self.state(), PATIENCE, |state| state.unfinished > 0);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert_eq!(state.unfinished, 0, "the drivers finish their requests");
    }

    /// Opens it.
    pub(super) fn open(&self) {
        self.state().is_closed = false;
        self.changed.notify_all();
    }

    /// Ends all drivers.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
