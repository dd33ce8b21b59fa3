//! What each part of the host does after a commit. Nothing here can fail or wait: the commit has happened.

use std::sync::Arc;

use domain::Turn;

use super::Log;
use crate::alarm::Alarm;
use crate::feed::Feeds;
use crate::inbox::Inbox;
use crate::outbox;
use crate::ports::{Commit, Subscribers};
use crate::standing::Standings;
use crate::timeout_approvals::TimeoutApprovals;
use crate::tracker::{QuotaTracker, Reservation};

pub(crate) struct Observers {
    pub(crate) subscribers: Arc<dyn Subscribers>,
    pub(crate) standings: Arc<Standings>,
    pub(crate) tracker: Arc<QuotaTracker>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) timeout_approvals: Arc<TimeoutApprovals>,
    pub(crate) alarm: Arc<Alarm>,
}

impl Observers {
    /// The list of observers. Of an ephemeral turn nothing is stored, so only followers and the tracker see it.
    pub(super) fn committed(
        &self,
        log: &Log<'_>,
        before: Option<&Turn>,
        commit: &Commit,
        after: &Turn,
        reservation: Option<&mut Reservation>,
    ) {
        let entered = match log {
            Log::Store(entered) => entered,
            Log::Memory(ephemeral) => {
                self.tracker.ephemeral_committed(after);
                if ephemeral.is_followed {
                    self.feeds.ephemeral_committed(after, &commit.events);
                }
                return;
            }
        };
        if outbox::owes(&commit.index) {
            self.subscribers.owed();
        }
        self.standings.committed(&commit.index);
        self.tracker.committed(before, after, reservation);
        self.inbox.committed(before, after);
        self.feeds.committed(&after.conversation);
        if let Some(at) = self.timeout_approvals.committed(after) {
            self.alarm.no_later_than(at);
        }
        entered.count_commit();
    }
}
