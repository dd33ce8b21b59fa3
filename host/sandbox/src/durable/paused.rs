//! A wait during which the instance is kept. The guest is in the host call that waits, until the next run continues it.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use domain::step::{Step, StepRequest};

use crate::job::RunUsage;

/// Passes the wait from the guest to its run, and the end of the wait from the next run to the guest.
#[derive(Default)]
pub(crate) struct PausedGuest(Mutex<State>);

#[derive(Default)]
struct State {
    waits: Option<Waits>,
    /// The steps of the next run.
    steps: Option<Arc<[Step]>>,
}

/// A run whose guest waits.
pub(crate) struct Waits {
    pub(crate) request: StepRequest,
    pub(crate) spent: RunUsage,
    pub(crate) wrote: bool,
}

impl PausedGuest {
    /// Waits in the guest, and returns the steps of the next run. That run sets them before it polls the guest, so this needs no
    /// waker.
    pub(super) async fn until_continued(&self, waits: Waits) -> Arc<[Step]> {
        self.state().waits = Some(waits);
        poll_fn(|_| self.state().steps.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// The wait that the guest has come to since this was last called.
    pub(crate) fn waits(&self) -> Option<Waits> {
        self.state().waits.take()
    }

    /// Lets the guest continue when it is next polled.
    pub(crate) fn continues(&self, steps: Arc<[Step]>) {
        self.state().steps = Some(steps);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
