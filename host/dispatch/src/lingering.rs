//! Instances that the tools keep while durable calls wait, so that a quick answer need not repeat code. They hold memory, so they
//! are dropped when nothing will continue them.

use std::sync::Arc;

use domain::call::Pinned;

use crate::committer::{Observer, TurnChange};
use crate::idempotency;
use crate::ports::{Commit, Run, Tools};

/// Drops the instances of calls that end.
pub(crate) struct EndedCalls(pub(crate) Arc<dyn Tools>);

impl Observer for EndedCalls {
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        let Some(TurnChange { before: Some(before), after, .. }) = change else { return };
        for (call, was) in after.calls.iter().zip(&before.calls) {
            let Some(pinned) = call.pinned.as_ref().filter(|pinned| pinned.durable) else { continue };
            if was.outcome().is_none() && call.outcome().is_some() {
                self.0.release(pinned, &idempotency::key(after, call));
            }
        }
    }
}

/// The instance that the run of a durable call may leave behind. It is dropped unless the wait of the call is recorded.
pub(crate) struct LeftBehind {
    tools: Arc<dyn Tools>,
    /// `None` once the wait is recorded.
    run: Option<(Arc<Pinned>, String)>,
}

impl LeftBehind {
    pub(crate) fn by(run: &Run, tools: &Arc<dyn Tools>) -> Self {
        let run = run.durable.is_some().then(|| (Arc::clone(&run.pinned), run.idempotency_key.clone()));
        Self { tools: Arc::clone(tools), run }
    }

    /// The wait is recorded.
    pub(crate) fn keep(mut self) {
        self.run = None;
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        if let Some((pinned, idempotency_key)) = &self.run {
            self.tools.release(pinned, idempotency_key);
        }
    }
}
