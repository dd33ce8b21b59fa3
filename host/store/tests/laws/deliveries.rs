//! Laws of the outbox: a delivery is pending from its commit until it is made, for each webhook.

use dispatch::ports::{Attempt, Commit, DeliveryRow, DeliveryState, Occasion, Report, RowChange};

use crate::given::{self, OPEN, Subject, commit, fact, row, suspension, time, with};

fn delivery(number: u64, occasion: Occasion, webhook: &str, next: u64) -> DeliveryRow {
    let (report, state) =
        (Report::Suspension(suspension(number), occasion), DeliveryState::Pending { next: time(next) });
    DeliveryRow { report, state, ..given::delivery(number, webhook) }
}

async fn owe(store: &Subject, number: u64, rows: &[DeliveryRow]) {
    let deliveries = rows.iter().cloned().map(RowChange::Delivery);
    store.append(&with(commit(number, 0, 0), deliveries)).await.unwrap();
}

async fn progress(store: &Subject, row: &DeliveryRow) {
    store.append(&Commit::rows(vec![RowChange::Delivery(row.clone())])).await.unwrap();
}

async fn due(store: &Subject, webhook: &str, until: u64, limit: usize) -> Vec<DeliveryRow> {
    store.deliveries_due(webhook, time(until), limit).await.unwrap()
}

async fn with_pending(store: &Subject) -> Vec<String> {
    let mut names = store.webhooks_with_pending().await.unwrap();
    names.sort();
    names
}

pub(crate) async fn deliveries_come_soonest_first_and_webhook_by_webhook(store: Subject) {
    let rows = [
        delivery(1, Occasion::Opened, "pager", 30),
        delivery(2, Occasion::Opened, "pager", 10),
        delivery(3, Occasion::Opened, "pager", 20),
        // Its name begins with the other's, and its rows are due before all of those.
        delivery(1, Occasion::Opened, "pager2", 5),
    ];
    owe(&store, 1, &rows).await;
    let [first, second, third, other] = rows;
    let all = [second, third, first];
    assert_eq!(due(&store, "pager", u64::MAX, 9).await, all);
    assert_eq!(due(&store, "pager", 29, 9).await, all[..2]);
    assert_eq!(due(&store, "pager", u64::MAX, 1).await, all[..1]);
    assert_eq!(due(&store, "pager", 9, 9).await, []);
    assert_eq!(due(&store, "pager2", 5, 9).await, [other]);
    assert_eq!(due(&store, "page", u64::MAX, 9).await, []);
    assert_eq!(with_pending(&store).await, ["pager", "pager2"]);
}

pub(crate) async fn a_delivery_moves_until_it_is_over_and_its_row_stays(store: Subject) {
    let mut row = delivery(1, Occasion::Opened, "pager", 10);
    let beside = delivery(1, Occasion::Opened, "other", 10);
    owe(&store, 1, &[row.clone(), beside.clone()]).await;
    let before = store.head().await.unwrap();

    row.state = DeliveryState::Pending { next: time(50) };
    row.attempts = 1;
    row.last = Some(Attempt { at: time(11), status: Some(503), error: Some("the answer was 503".into()) });
    progress(&store, &row).await;
    assert_eq!(due(&store, "pager", 49, 9).await, []);
    assert_eq!(due(&store, "pager", 50, 9).await, [row.clone()]);

    // The same time again: the entry is removed and put back at once.
    row.attempts = 2;
    progress(&store, &row).await;
    assert_eq!(due(&store, "pager", 50, 9).await, [row.clone()]);

    row.state = DeliveryState::Delivered;
    progress(&store, &row).await;
    assert_eq!(due(&store, "pager", u64::MAX, 9).await, []);
    assert_eq!(with_pending(&store).await, ["other"]);
    assert_eq!(store.deliveries(suspension(1).into()).await.unwrap(), [beside, row]);
    assert_eq!(store.head().await.unwrap(), before, "what becomes of deliveries is not in the audit");
}

pub(crate) async fn deliveries_about_a_suspension_come_in_the_order_of_occasions(store: Subject) {
    let rows = [
        delivery(2, Occasion::Closed, "a", 3),
        delivery(2, Occasion::Escalated { need: 1 }, "a", 2),
        delivery(2, Occasion::Escalated { need: 0 }, "a", 9),
        delivery(2, Occasion::Opened, "a", 4),
        delivery(1, Occasion::Opened, "a", 1),
        delivery(3, Occasion::Opened, "a", 1),
    ];
    owe(&store, 1, &rows).await;
    let [closed, second, first, opened, ..] = rows;
    assert_eq!(store.deliveries(suspension(2).into()).await.unwrap(), [opened, first, second, closed]);
    assert_eq!(store.deliveries(suspension(9).into()).await.unwrap(), []);
}

pub(crate) async fn deliveries_about_a_turn_are_apart_from_those_of_a_suspension(store: Subject) {
    // The ids have the same bits.
    let of_suspension = delivery(1, Occasion::Closed, "pager", 10);
    let mut of_turn = DeliveryRow { report: Report::TurnSettled(given::turn(1)), ..of_suspension.clone() };
    owe(&store, 1, &[of_suspension.clone(), of_turn.clone()]).await;
    assert_eq!(store.deliveries(suspension(1).into()).await.unwrap(), std::slice::from_ref(&of_suspension));
    assert_eq!(store.deliveries(given::turn(1).into()).await.unwrap(), [of_turn.clone()]);
    assert_eq!(due(&store, "pager", 10, 9).await.len(), 2);

    of_turn.state = DeliveryState::Delivered;
    progress(&store, &of_turn).await;
    assert_eq!(due(&store, "pager", 10, 9).await, [of_suspension]);
    assert_eq!(store.deliveries(given::turn(1).into()).await.unwrap(), [of_turn]);
}

pub(crate) async fn deliveries_are_committed_with_their_events(store: Subject) {
    owe(&store, 1, &[]).await;
    let lost = with(commit(1, 0, 7), [RowChange::Delivery(delivery(1, Occasion::Opened, "pager", 1))]);
    store.append(&lost).await.unwrap_err();
    assert_eq!((due(&store, "pager", u64::MAX, 9).await, with_pending(&store).await), (vec![], vec![]));

    let kept = delivery(1, Occasion::Opened, "pager", 1);
    let index = [RowChange::Suspension(row(1, OPEN)), RowChange::Delivery(kept.clone())];
    store.append(&with(commit(1, 1, 7), index)).await.unwrap();
    let loaded = store.load(given::turn(1)).await.unwrap().found().unwrap();
    assert_eq!(loaded.events.last(), Some(&fact(7)));
    assert_eq!(due(&store, "pager", u64::MAX, 9).await, [kept]);
}
