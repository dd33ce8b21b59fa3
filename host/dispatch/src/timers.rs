//! The times when turns are next due. Each commit updates them.

use crate::alarm::Alarm;
use crate::committer::{Observer, TurnChange};
use crate::ports::Commit;
use crate::timeout_approvals::TimeoutApprovals;

#[derive(Default)]
pub(crate) struct Timers {
    pub(crate) alarm: Alarm,
    pub(crate) timeout_approvals: TimeoutApprovals,
}

impl Observer for Timers {
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        if let Some(at) = change.and_then(|change| self.timeout_approvals.committed(change.after)) {
            self.alarm.no_later_than(at);
        }
    }
}
