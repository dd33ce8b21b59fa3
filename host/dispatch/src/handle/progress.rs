//! Progress that a client reports about a call that it carries out, and the last progress of calls. Followers see it live. It
//! is not stored, and it does not extend the time of the call.

use std::sync::Arc;

use domain::{Json, Principal, Refusal, SuspensionId, TurnId, Violation, suspension::SuspensionKind};
use tokio::sync::watch;

use super::Handle;
use crate::error::{Error, RequestPart};
use crate::feed::{LatestProgress, Live, ProgressFollower};
use crate::ports::Progress;
use crate::request::Bounds;

impl Handle {
    /// Reports the progress of a streaming client tool to the followers of its conversation. Returns false if the report
    /// was dropped, because earlier reports used up the limits of the call.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] if this principal may not see the suspension, then other refusals: it asks for no client's
    /// result, its tool does not stream, the principal carries out no client tools, a fraction is out of range, or it has
    /// ended. [`Error::TooLarge`] for a report that is larger than all reports together may be.
    pub async fn report_progress(&self, by: &Principal, id: SuspensionId, progress: Progress) -> Result<bool, Error> {
        let (pipeline, shared) = (&self.inner.pipeline, &self.inner.shared);
        let row = self.inner.pending.row(by, id).await?;
        let entered = pipeline.turns.enter(row.turn);
        // Locked until the report is counted and sent, so that the call does not end in between.
        let slot = entered.renewed(pipeline.log.as_ref()).await?;
        let turn = slot.turn.as_ref().map(|(turn, _)| turn).ok_or(Refusal::Unknown)?;
        let (index, call, suspension, closed) = turn.suspension(id).ok_or(Refusal::Unknown)?;
        let pinned = call.pinned.as_ref().filter(|_| suspension.kind() == SuspensionKind::ClientExec);
        let pinned =
            pinned.ok_or_else(|| invalid("", "only a call that a client carries out has progress to report"))?;
        by.may_answer(suspension.kind(), &turn.caller, self.own_calls()).map_err(Refusal::from)?;
        if !pinned.streaming {
            return Err(invalid(
                "",
                "the tool of this call does not declare `streaming`, so nobody expects its progress",
            ));
        }
        if progress.fraction.is_some_and(|fraction| !(0.0..=1.0).contains(&fraction)) {
            return Err(invalid("/fraction", "a fraction is 0 to 1"));
        }
        suspension.is_open(closed, self.now())?;
        let (limits, bytes) = (shared.tools.limits(&pinned.plugin), size(&progress));
        Bounds::check(RequestPart::Progress, bytes, limits.progress_bytes)?;
        if !pipeline.feeds.reports.count(turn.id, id, bytes, &limits) {
            return Ok(false);
        }
        pipeline.feeds.latest.report(turn.id, &progress);
        let live = Live::Progress { turn: turn.id, call: call.id.clone(), index, progress };
        pipeline.feeds.live(&turn.conversation, &turn.caller, live);
        Ok(true)
    }

    /// The last progress of a turn that this process has seen. Nothing after the turn has ended. Only for those who may read
    /// the turn.
    #[must_use]
    pub fn latest_progress(&self, turn: TurnId) -> Option<Arc<LatestProgress>> {
        self.inner.pipeline.feeds.latest.read(turn)
    }

    /// Follows the progress of a turn that has not ended. A slow follower loses the oldest. Only for those who may read the turn.
    #[must_use]
    pub fn follow_progress(&self, turn: TurnId) -> ProgressFollower {
        self.inner.pipeline.feeds.latest.follow(turn)
    }

    /// Changes when tools become live, and when they are no longer live.
    #[must_use]
    pub fn tool_changes(&self) -> watch::Receiver<()> {
        self.inner.pipeline.feeds.tools.subscribe()
    }
}

fn size(progress: &Progress) -> usize {
    progress.message.len() + progress.data.as_ref().map_or(0, Json::size)
}

fn invalid(pointer: &str, message: &str) -> Error {
    Refusal::Invalid(vec![Violation { pointer: pointer.to_owned(), message: message.to_owned() }]).into()
}
