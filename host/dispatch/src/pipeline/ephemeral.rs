//! Ephemeral turns. They run in the task that submits them and take the same path as all others. Their log is in
//! memory.

use std::sync::Arc;

use domain::{
    CallIndex, Turn,
    turn::{Finished, Input},
};
use futures::future::{Aborted, BoxFuture};
use tokio::task::JoinSet;

use super::{CommitTo, Decided, Pipeline};
use crate::committer::Storage;
use crate::error::Error;
use crate::ports::{End, StoreFault};
use crate::stop::{Calls, RunningCall};
use crate::tracker::Reservation;
use crate::turns::Slot;

/// How the run of one call ended; `Aborted` if it was stopped.
type EndedRun = Result<(CallIndex, u32, End), Aborted>;

/// The log of an ephemeral turn, and the runs of its calls.
pub(crate) struct Ephemeral {
    /// The calls that run, for its caller to stop.
    calls: Arc<Calls>,
    /// Runs that have not begun.
    due: Vec<BoxFuture<'static, EndedRun>>,
    siblings: JoinSet<EndedRun>,
    /// Whether the last run that ended wrote key-value data that may not be on disk yet.
    wrote: bool,
    /// Whether a call was stopped because the caller left.
    left: bool,
    /// Whether somebody followed the conversation when the turn began.
    is_followed: bool,
}

impl Pipeline {
    /// Carries out an ephemeral turn in this task. Nothing of it is stored.
    pub(crate) async fn run_ephemeral(
        self: &Arc<Self>,
        decided: Decided,
        mut reservation: Reservation,
        calls: Arc<Calls>,
    ) -> Result<Turn, Error> {
        let is_followed = self.feeds.is_followed(&decided.after.conversation);
        let (due, siblings) = (Vec::new(), JoinSet::new());
        let mut log = Ephemeral { calls, due, siblings, wrote: false, left: false, is_followed };
        let mut slot = Slot::default();
        let mut change = Some((decided, Some(&mut reservation)));
        loop {
            if let Some((decided, reservation)) = change.take() {
                let advanced =
                    self.advance(&mut CommitTo::Memory(&mut log), &mut slot, decided, Vec::new(), reservation).await;
                advanced.map_err(|error| Error::from(error.into_fault("carry out an ephemeral turn")))?;
            }
            let Some((call, attempt, end)) = log.next_end(self).await? else { break };
            let End { ended, receipt, .. } = end;
            let decided = self.decide(&mut slot, |_, slot| {
                slot.running.remove(&(call, attempt));
                Some(Input::Finished(Finished { receipt, ..Finished::new(call, attempt, ended) }))
            })?;
            change = decided.map(|decided| (decided, None));
        }
        let turn = slot.turn.filter(|_| !log.left).map(|(turn, _)| turn);
        turn.ok_or_else(|| unfinished("its caller left"))
    }
}

impl Ephemeral {
    /// Nothing of the turn is stored. Key-value data that a guest wrote is on disk before its result is seen.
    pub(super) fn storage(&mut self) -> Storage {
        Storage::Ephemeral { wrote: std::mem::take(&mut self.wrote), is_followed: self.is_followed }
    }

    /// Adds a run, unless the caller has left.
    pub(super) fn add(&mut self, running: &RunningCall, run: BoxFuture<'static, EndedRun>) {
        if self.calls.add(running.clone()) {
            self.due.push(run);
        } else {
            self.left = true;
        }
    }

    /// The end of a run, as soon as there is one. `None` once there are no more runs.
    async fn next_end(&mut self, pipeline: &Pipeline) -> Result<Option<(CallIndex, u32, End)>, Error> {
        loop {
            // The last run is polled here. The others have tasks of their own.
            let here = self.due.pop();
            for run in self.due.drain(..) {
                self.siblings.spawn_on(run, &pipeline.shared.guest_runtime);
            }
            let ended = match here {
                Some(run) => run.await,
                None => match self.siblings.join_next().await {
                    None => return Ok(None),
                    Some(Ok(ended)) => ended,
                    Some(Err(error)) => return Err(unfinished(format!("a task ended: {error}"))),
                },
            };
            // A call that did not stop in its grace period is aborted. Its siblings keep what is left of theirs.
            match ended {
                Ok((call, attempt, end)) => {
                    self.wrote = end.wrote;
                    return Ok(Some((call, attempt, end)));
                }
                Err(Aborted) => self.left = true,
            }
        }
    }
}

/// The error for an ephemeral turn that did not end.
pub(crate) fn unfinished(reason: impl Into<String>) -> Error {
    StoreFault::of_program("carry out an ephemeral turn", reason).into()
}
