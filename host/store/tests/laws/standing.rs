//! Laws of standing approvals: a use counts exactly once, even if two hosts commit it. No use counts
//! after the last use or the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use dispatch::forget;
use dispatch::ports::{AppendError, Commit, Denial, Facts, Position, RowChange, StandingApprovals, StoreFault};
use domain::{
    ConversationId, Digest, Json, PluginName, Standing, StandingId, Timestamp,
    standing::{Pin, StandingRevoked, StandingRow},
};

use crate::given::{Subject, commit, conversation, denial, principal, revoke, suspension, time, with, within};

fn id(number: u128) -> StandingId {
    StandingId::from_bits(number)
}

pub(crate) fn row(number: u128, uses: u32) -> StandingRow {
    StandingRow {
        standing: Standing { id: id(number), expires_at: time(99), uses, pin: Pin::All },
        by: principal("ann"),
        created_at: time(1),
        suspension: suspension(1),
        conversation: conversation("c"),
        caller: principal("agent"),
        tool: "transfer".into(),
        plugin: PluginName::new("ledger").unwrap(),
        component: Digest::of("component"),
        declaration: Digest::of("declaration"),
        fingerprint: Digest::of("ground"),
        arguments: Json::unchecked("{}"),
        used: 0,
        revoked: None,
    }
}

async fn give(store: &Subject, number: u128, uses: u32) {
    let given = RowChange::Standing(Box::new(row(number, uses)));
    let turn = 1_000 + u64::try_from(number).unwrap();
    store.append(&with(commit(turn, 0, turn), [given])).await.unwrap();
}

async fn used(store: &Subject, number: u128) -> u32 {
    store.standing(id(number)).await.unwrap().unwrap().used
}

fn spent(result: Result<Position, AppendError>) -> bool {
    matches!(result, Err(AppendError::StandingSpent(standing)) if standing == id(1))
}

pub(crate) async fn a_standing_approval_has_a_limited_number_of_uses(store: Subject) {
    assert_eq!(store.standing(id(1)).await.unwrap(), None);
    assert!(
        spent(store.append(&with(commit(1, 0, 1), [RowChange::StandingUse(id(1))])).await),
        "it does not exist yet"
    );
    give(&store, 1, 3).await;
    assert_eq!(store.standing(id(1)).await.unwrap(), Some(row(1, 3)));
    // A commit that needs more than is left is refused as a whole.
    let head = store.head().await.unwrap();
    let uses = |n| vec![RowChange::StandingUse(id(1)); n];
    assert!(spent(store.append(&with(commit(1, 0, 1), uses(4))).await));
    assert_eq!((store.load(crate::given::turn(1)).await.unwrap().found(), used(&store, 1).await), (None, 0));
    assert_eq!(store.head().await.unwrap(), head);
    store.append(&with(commit(1, 0, 1), uses(2))).await.unwrap();
    assert_eq!(used(&store, 1).await, 2);
    store.append(&with(commit(2, 0, 2), [RowChange::StandingUse(id(1))])).await.unwrap();
    assert!(spent(store.append(&with(commit(3, 0, 3), [RowChange::StandingUse(id(1))])).await));
    assert_eq!(used(&store, 1).await, 3);
}

pub(crate) async fn concurrent_uses_never_exceed_the_limit(store: Subject) {
    give(&store, 1, 10).await;
    let uses = (1..=40).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            store.append(&with(commit(number, 0, number), [RowChange::StandingUse(id(1))])).await.is_ok()
        })
    });
    let mut counted = 0;
    for task in uses.collect::<Vec<_>>() {
        counted += u32::from(task.await.unwrap());
    }
    assert_eq!((counted, used(&store, 1).await), (10, 10));
}

pub(crate) async fn a_revoked_standing_approval_is_unusable_and_audited(store: Subject) {
    let revoked = StandingRevoked { id: id(1), by: principal("ann"), at: time(7) };
    let refused = async |revoked: &StandingRevoked| match store.append(&revoke(revoked.clone())).await {
        Err(AppendError::NotRevocable(standing)) => standing == id(1),
        other => panic!("{other:?}"),
    };
    assert!(refused(&revoked).await, "it does not exist yet");
    give(&store, 1, 3).await;
    store.append(&with(commit(1, 0, 1), [RowChange::StandingUse(id(1))])).await.unwrap();
    let position = store.append(&revoke(revoked.clone())).await.unwrap();
    assert!(refused(&StandingRevoked { by: principal("bob"), ..revoked.clone() }).await);
    assert_eq!(store.head().await.unwrap().position, position, "a refused commit gets no position");
    assert!(spent(store.append(&with(commit(2, 0, 2), [RowChange::StandingUse(id(1))])).await));
    let row = store.standing(id(1)).await.unwrap().unwrap();
    assert_eq!((row.used, row.revoked), (1, Some((principal("ann"), time(7)))));
    let audited = store.audit(Position(position.0 - 1), 9).await.unwrap();
    assert_eq!(audited.iter().map(|audited| &audited.facts).collect::<Vec<_>>(), [&Facts::Revoked(revoked)]);
}

pub(crate) async fn standing_approvals_come_in_pages(store: Subject) {
    for number in 1..=7 {
        give(&store, number, 1).await;
    }
    store.append(&with(commit(1, 0, 1), [RowChange::StandingUse(id(4))])).await.unwrap();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.standings(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.standing.id);
        seen.extend(page.into_iter().map(|row| (row.standing.id, row.used)));
    }
    assert_eq!(seen, (1..=7).map(|number| (id(number), u32::from(number == 4))).collect::<Vec<_>>());
}

pub(crate) async fn a_denial_is_remembered_for_its_conversation(store: Subject) {
    let alike = Digest::of("call");
    assert_eq!(store.denied(&conversation("c"), alike).await.unwrap(), None);
    store.append(&with(commit(1, 0, 1), [RowChange::Denied(denial(alike, 5))])).await.unwrap();
    store.append(&with(commit(2, 0, 2), [RowChange::Denied(denial(alike, 9))])).await.unwrap();
    assert_eq!(store.denied(&conversation("c"), alike).await.unwrap(), Some(time(9)));
    assert_eq!(store.denied(&conversation("d"), alike).await.unwrap(), None);
    assert_eq!(store.denied(&conversation("c"), Digest::of("other")).await.unwrap(), None);
}

pub(crate) async fn denials_come_in_pages(store: Subject) {
    assert_eq!(store.denials(None, 3).await.unwrap(), []);
    let denials: Vec<_> = ["c", "a", "ab", "c", "b", "c", "d"]
        .into_iter()
        .zip(1..)
        .map(|(name, at)| Denial { conversation: conversation(name), ..denial(Digest::of(format!("{at}")), at) })
        .collect();
    for (denial, number) in denials.iter().zip(1..) {
        let name = denial.conversation.as_str();
        store.append(&with(within(name, commit(number, 0, 0)), [RowChange::Denied(denial.clone())])).await.unwrap();
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.denials(after.as_ref(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.clone());
        seen.extend(page);
    }
    seen.sort_by_key(|denial| denial.at);
    assert_eq!(seen, denials, "each once, in any order");
}

pub(crate) async fn a_changed_row_refuses_its_removal(store: Subject) {
    let (alike, other) = (Digest::of("call"), Digest::of("other"));
    give(&store, 1, 3).await;
    let denials = [RowChange::Denied(denial(alike, 5)), RowChange::Denied(denial(other, 5))];
    store.append(&with(commit(1, 0, 1), denials)).await.unwrap();
    let head = store.head().await.unwrap();
    let unused = Box::new(row(1, 3));
    let refused = async |row: RowChange| {
        // One row refuses all of them.
        let commit = Commit::rows(vec![RowChange::ForgetDenial(denial(other, 5)), row]);
        matches!(store.append(&commit).await, Err(AppendError::Changed))
    };
    assert!(refused(RowChange::ForgetDenial(denial(alike, 4))).await);
    assert!(refused(RowChange::ForgetDenial(denial(Digest::of("none"), 5))).await);
    assert!(refused(RowChange::ForgetStanding(Box::new(row(2, 3)))).await);
    assert_eq!(store.denials(None, 9).await.unwrap().len(), 2);

    let gone = Commit::rows(vec![RowChange::ForgetDenial(denial(alike, 5))]);
    assert_eq!(store.append(&gone).await.unwrap(), head.position, "it gets no position of its own");
    assert_eq!((store.head().await.unwrap(), store.denials(None, 9).await.unwrap().len()), (head, 1));
    store.append(&with(commit(2, 0, 2), [RowChange::StandingUse(id(1))])).await.unwrap();
    assert!(refused(RowChange::ForgetStanding(unused)).await, "it was used since");
    assert_eq!(used(&store, 1).await, 1);
    let row = Box::new(store.standing(id(1)).await.unwrap().unwrap());
    store.append(&Commit::rows(vec![RowChange::ForgetStanding(row)])).await.unwrap();
    assert_eq!(store.standing(id(1)).await.unwrap(), None);
}

pub(crate) async fn only_old_rows_are_removed(store: Subject) {
    let alike = |name: &str| Digest::of(name);
    for number in 1..=3 {
        let mut given = row(number, 5);
        given.standing.expires_at = time(10 * u64::try_from(number).unwrap());
        if number == 1 {
            // So large that it does not lie where the others do.
            given.arguments = Json::unchecked(format!("\"{}\"", "x".repeat(200_000)));
        }
        let commit = commit(1_000 + u64::try_from(number).unwrap(), 0, 1);
        store.append(&with(commit, [RowChange::Standing(Box::new(given))])).await.unwrap();
    }
    store.append(&with(commit(1, 0, 1), [RowChange::Denied(denial(alike("early"), 5))])).await.unwrap();
    store.append(&with(commit(2, 0, 2), [RowChange::Denied(denial(alike("again"), 5))])).await.unwrap();
    store.append(&with(commit(3, 0, 3), [RowChange::Denied(denial(alike("again"), 9))])).await.unwrap();
    store.append(&with(commit(4, 0, 4), [RowChange::Denied(denial(alike("late"), 7))])).await.unwrap();
    let (head, audit) = (store.head().await.unwrap(), store.audit(Position(0), 99).await.unwrap());

    assert_eq!(forget(store.clone(), store.clone(), time(0), usize::MAX, time(0)).await.unwrap(), 0);
    assert_eq!(forget(store.clone(), store.clone(), time(7), usize::MAX, time(20)).await.unwrap(), 2);
    let c = conversation("c");
    let denied = async |name: &str| store.denied(&c, alike(name)).await.unwrap();
    assert_eq!(
        (denied("early").await, denied("again").await, denied("late").await),
        (None, Some(time(9)), Some(time(7)))
    );
    assert_eq!(store.standing(id(1)).await.unwrap(), None);
    let left = store.standings(None, 9).await.unwrap();
    assert_eq!(left.iter().map(|row| row.standing.id).collect::<Vec<_>>(), [id(2), id(3)]);
    assert_eq!(forget(store.clone(), store.clone(), time(7), usize::MAX, time(20)).await.unwrap(), 0, "once");
    // Removed rows cannot be used and can be written again. The other rows can be used.
    assert!(spent(store.append(&with(commit(5, 0, 5), [RowChange::StandingUse(id(1))])).await));
    store
        .append(&with(commit(5, 0, 5), [RowChange::StandingUse(id(2)), RowChange::Denied(denial(alike("early"), 30))]))
        .await
        .unwrap();
    assert_eq!((used(&store, 2).await, denied("early").await), (1, Some(time(30))));
    let after = store.audit(Position(0), 99).await.unwrap();
    assert_eq!(
        (&after[..audit.len()], audit.last().unwrap().head),
        (&audit[..], head),
        "what happened is not forgotten"
    );
}

/// Counts the pages that are read, and how many rows each may have.
struct Paged {
    store: Subject,
    pages: AtomicUsize,
    max_standings: AtomicUsize,
    max_denials: AtomicUsize,
}

#[async_trait]
impl StandingApprovals for Paged {
    async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        self.store.standing(id).await
    }

    async fn standings(&self, after: Option<StandingId>, limit: usize) -> Result<Vec<StandingRow>, StoreFault> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.max_standings.fetch_max(limit, Ordering::Relaxed);
        self.store.standings(after, limit).await
    }

    async fn denied(&self, conversation: &ConversationId, alike: Digest) -> Result<Option<Timestamp>, StoreFault> {
        self.store.denied(conversation, alike).await
    }

    async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.max_denials.fetch_max(limit, Ordering::Relaxed);
        self.store.denials(after, limit).await
    }
}

pub(crate) async fn every_old_row_of_many_pages_is_removed(store: Subject) {
    // Every second row is old, the first and the last of a page too.
    let standings = (1..=41).map(|number| {
        let mut given = row(number, 1);
        given.standing.expires_at = time(if number % 2 == 1 { 10 } else { 20 });
        RowChange::Standing(Box::new(given))
    });
    let denials = (1..=2_101_u64).map(|number| {
        let at = if number % 2 == 1 { 5 } else { 7 };
        RowChange::Denied(denial(Digest::of(number.to_string()), at))
    });
    store.append(&with(commit(1, 0, 1), standings)).await.unwrap();
    store.append(&with(commit(2, 0, 2), denials)).await.unwrap();
    let paged = Arc::new(Paged {
        store: store.clone(),
        pages: AtomicUsize::new(0),
        max_standings: AtomicUsize::new(0),
        max_denials: AtomicUsize::new(0),
    });
    let removed = forget(store.clone(), paged.clone(), time(7), usize::MAX, time(20)).await.unwrap();
    assert_eq!(removed, 21 + 1_051);
    let left = store.standings(None, 99).await.unwrap();
    assert!(left.iter().map(|row| row.standing.id).eq((1..=20).map(|number| id(2 * number))));
    let left = store.denials(None, 9_999).await.unwrap();
    assert!(left.len() == 1_050 && left.iter().all(|denial| denial.at == time(7)), "{}", left.len());
    let [pages, standings, denials] =
        [&paged.pages, &paged.max_standings, &paged.max_denials].map(|count| count.load(Ordering::Relaxed));
    assert!(standings <= 16 && denials <= 1_000 && pages >= 3 + 2 * 3, "{standings} {denials} {pages}");
}

pub(crate) async fn a_row_that_is_written_again_is_not_removed(store: Subject) {
    for round in 1..=30 {
        let (alike, turn) = (Digest::of(format!("{round}")), 100 * round);
        store.append(&with(commit(turn, 0, 1), [RowChange::Denied(denial(alike, 5))])).await.unwrap();
        let again = with(commit(turn + 1, 0, 2), [RowChange::Denied(denial(alike, 9))]);
        let forget = || forget(store.clone(), store.clone(), time(7), usize::MAX, time(0));
        let (again, one, two) = tokio::join!(store.append(&again), forget(), forget());
        again.unwrap();
        assert!(one.unwrap() + two.unwrap() <= 1);
        assert_eq!(store.denied(&conversation("c"), alike).await.unwrap(), Some(time(9)), "round {round}");
    }
}

pub(crate) async fn oldest_denials_go_beyond_the_bytes(store: Subject) {
    let at = |number: u64| denial(Digest::of(number.to_string()), number);
    // The same time as that of the last one, in a conversation with a longer name.
    let long = Denial { conversation: conversation(&"l".repeat(100)), ..denial(Digest::of("long"), 10) };
    let denials: Vec<_> = (1..=10).map(at).chain([long.clone()]).collect();
    for (denial, number) in denials.iter().zip(1..) {
        let name = denial.conversation.as_str();
        store.append(&with(within(name, commit(number, 0, 0)), [RowChange::Denied(denial.clone())])).await.unwrap();
    }
    let (small, large) = (at(1).size(), long.size());
    assert_eq!((small, large), (65, 164));
    let forget = async |since: u64, bytes: usize| {
        let removed = forget(store.clone(), store.clone(), time(since), bytes, time(0)).await.unwrap();
        let mut left = store.denials(None, 99).await.unwrap();
        left.sort_by_key(|denial| (denial.at, denial.size()));
        (removed, left)
    };
    let newest = |count: usize| denials[denials.len() - count..].to_vec();
    assert_eq!(forget(0, 10 * small + large).await, (0, newest(11)));
    assert_eq!(forget(0, 10 * small + large - 1).await, (1, newest(10)));
    assert_eq!(forget(4, 9 * small + large).await, (2, newest(8)), "the age counts too");
    assert_eq!(forget(0, 3 * small + large).await, (4, newest(4)));
    assert_eq!(forget(9, small + large).await, (2, newest(2)));
    assert_eq!(forget(0, large).await, (2, vec![]), "denials of one time go together");
}
