//! The webhook deliveries that a commit causes. Like the indexes they are derived from the turn. Unlike them they
//! cannot be rebuilt from the logs, which do not say what was delivered.

use std::sync::Arc;

use domain::Turn;

use crate::committer::{Contributor, Observer, TurnChange};
use crate::ports::{Commit, DeliveryRow, DeliveryState, Occasion, RowChange, Subscribers, SuspensionRow};

/// The webhooks, which contribute deliveries and wake the delivery workers.
pub(crate) struct Webhooks(pub(crate) Arc<dyn Subscribers>);

impl Contributor for Webhooks {
    fn contribute(&self, change: &TurnChange<'_>, commit: &Commit) -> Vec<RowChange> {
        let rows = commit.rows.iter().filter_map(RowChange::suspension);
        rows.flat_map(|row| deliveries_of(row, self.0.as_ref(), change.before, change.after)).collect()
    }
}

impl Observer for Webhooks {
    /// Only turns cause deliveries. The other commits record the progress of deliveries.
    fn committed(&self, commit: &Commit, change: Option<&TurnChange<'_>>) {
        if change.is_some() && commit.rows.iter().any(|change| matches!(change, RowChange::Delivery(_))) {
            self.0.deliveries_committed();
        }
    }
}

fn deliveries_of(
    row: &SuspensionRow,
    subscribers: &dyn Subscribers,
    before: Option<&Turn>,
    after: &Turn,
) -> Vec<RowChange> {
    let Some((_, _, suspension, closed)) = after.suspension(row.id) else { return Vec::new() };
    let known = before.and_then(|before| before.suspension(row.id));
    let was_closed = known.is_some_and(|(.., closed)| closed.is_some());
    let opened = known.is_none().then_some((Occasion::Opened, suspension.created_at));
    let widened = |(need, of): (u16, &domain::approvers::Need)| {
        let before = known.is_some_and(|(_, _, known, _)| known.has_escalated(of));
        let at = suspension.escalated_at().filter(|_| !before && suspension.has_escalated(of))?;
        Some((Occasion::Escalated { need }, at))
    };
    let escalated: Vec<_> = (0..).zip(suspension.needs()).filter_map(widened).collect();
    let closed = closed.filter(|_| !was_closed).map(|closed| (Occasion::Closed, closed.at));
    let rows = opened.into_iter().chain(escalated).chain(closed).flat_map(|(occasion, at)| {
        let subscribed_to = subscribers.subscribed_to(occasion, row).into_iter();
        subscribed_to.map(move |webhook| DeliveryRow {
            suspension: row.id,
            occasion,
            webhook,
            at,
            state: DeliveryState::Pending { next: at },
            attempts: 0,
            last: None,
        })
    });
    rows.map(RowChange::Delivery).collect()
}
