//! The webhook deliveries that a commit causes. Like the indexes they are derived from the turn. Unlike them they
//! cannot be rebuilt from the logs, which do not say what was delivered.

use std::sync::Arc;

use domain::{Event, Timestamp, Turn};

use crate::committer::{Contributor, Observer, TurnChange};
use crate::ports::{Commit, DeliveryRow, DeliveryState, Occasion, Report, RowChange, Subscribers, SuspensionRow};

/// The webhooks, which contribute deliveries and wake the delivery workers.
pub(crate) struct Webhooks(pub(crate) Arc<dyn Subscribers>);

impl Contributor for Webhooks {
    fn contribute(&self, change: &TurnChange<'_>, commit: &Commit) -> Vec<RowChange> {
        let rows = commit.rows.iter().filter_map(RowChange::suspension);
        let about_suspensions = rows.flat_map(|row| deliveries_of(row, self.0.as_ref(), change.before, change.after));
        about_suspensions.chain(deliveries_of_turn(commit.events(), self.0.as_ref(), change.after)).collect()
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
    // Nobody was asked: the policy denied the step at once.
    if known.is_none() && closed.is_some() {
        return Vec::new();
    }
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
        subscribed_to.map(move |webhook| delivery(Report::Suspension(row.id, occasion), webhook, at))
    });
    rows.collect()
}

/// The deliveries about the end of a turn, with the commit that ends it. A turn ends once.
fn deliveries_of_turn(events: &[Event], subscribers: &dyn Subscribers, turn: &Turn) -> Vec<RowChange> {
    let ended = |event: &Event| if let Event::TurnSettled { at, .. } = event { Some(*at) } else { None };
    let Some(at) = events.iter().find_map(ended) else { return Vec::new() };
    let webhooks = subscribers.subscribed_to_turn(turn).into_iter();
    webhooks.map(|webhook| delivery(Report::TurnSettled(turn.id), webhook, at)).collect()
}

/// A new delivery, due at once.
fn delivery(report: Report, webhook: String, at: Timestamp) -> RowChange {
    let state = DeliveryState::Pending { next: at };
    RowChange::Delivery(DeliveryRow { report, webhook, at, state, attempts: 0, last: None })
}
