//! What each part of the host does after a commit. Nothing here can fail or wait: the commit has happened.

use std::sync::Arc;

use domain::{Event, Turn};

use super::Ephemeral;
use crate::alarm::Alarm;
use crate::feed::Feeds;
use crate::inbox::Inbox;
use crate::outbox;
use crate::ports::{Index, Subscribers};
use crate::standing::Standings;
use crate::timeout_approvals::TimeoutApprovals;
use crate::tracker::{QuotaTracker, Reservation};
use crate::turns::Entered;

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
    /// The list of observers of a commit. `index` is what changed with it.
    pub(super) fn committed(
        &self,
        entered: &Entered,
        before: Option<&Turn>,
        index: &[Index],
        after: &Turn,
        reservation: Option<&mut Reservation>,
    ) {
        if outbox::owes(index) {
            self.subscribers.owed();
        }
        self.standings.committed(index);
        self.tracker.committed(before, after, reservation);
        self.inbox.committed(before, after);
        self.feeds.committed(&after.conversation);
        if let Some(at) = self.timeout_approvals.committed(after) {
            self.alarm.no_later_than(at);
        }
        entered.count_commit();
    }

    /// The list of observers of an ephemeral turn. Nothing of it is stored, so only followers and the tracker see it.
    pub(super) fn ephemeral_committed(&self, log: &Ephemeral, events: &[Event], after: &Turn) {
        self.tracker.ephemeral_committed(after);
        if log.is_followed {
            self.feeds.ephemeral_committed(after, events);
        }
    }
}
