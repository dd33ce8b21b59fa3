//! The laws of removing ended turns.

use dispatch::ports::{
    AppendError, ChainEntry, Commit, DeliveryRow, DeliveryState, EndedTurn, Facts, Feed, Filter, Loaded, NewFacts,
    Page, Position, Recorded, Report, RowChange, Source, Tombstone, TurnToRemove, TurnsToRemove, Walk,
};
use domain::{
    PrincipalId, Span,
    retention::{Removal, RemovalRule, RemovedTurn},
};

use crate::given::{self, Subject, commit, conversation, events, large_fact, principal, row, suspension, time, turn};

pub(crate) const RULE: RemovalRule = RemovalRule::Age { kept: Span::from_secs(60) };

/// A row of an ended turn of the conversation `c`.
pub(crate) fn ended(number: u64, at: u64) -> EndedTurn {
    let (conversation, caller) = (conversation("c"), principal("ann"));
    EndedTurn { turn: turn(number), conversation, caller, tools: vec!["transfer".into()], at: time(at) }
}

/// Makes a turn of two commits that has ended. Returns its row.
pub(crate) async fn turn_that_ended(store: &Subject, number: u64, at: u64) -> TurnToRemove {
    let call = given::call_of(number, &format!("call-{number}"));
    store.append(&commit(number, 0, number).with([given::owner("ann"), call])).await.unwrap();
    store
        .append(&commit(number, 1, at).with([RowChange::Ended(ended(number, at), domain::event::TurnEnd::Settled)]))
        .await
        .unwrap();
    to_remove(store, number).await
}

/// An ended turn as it is now.
pub(crate) async fn to_remove(store: &Subject, number: u64) -> TurnToRemove {
    let rows = store.ended(None, usize::MAX).await.unwrap();
    let (ended, bytes) = rows.into_iter().find(|(row, _)| row.turn == turn(number)).unwrap();
    let commits = store.load(ended.turn).await.unwrap().found().unwrap().version;
    TurnToRemove { ended, bytes, commits, suspensions: Vec::new() }
}

pub(crate) fn removal(turns: impl IntoIterator<Item = TurnToRemove>) -> Commit {
    NewFacts::Removal(TurnsToRemove { at: time(1_000), rule: RULE, turns: turns.into_iter().collect() }).into()
}

fn tombstone() -> Tombstone {
    Tombstone { conversation: conversation("c"), at: time(1_000), rule: RULE }
}

async fn feed(store: &Subject) -> Vec<u64> {
    let commits = store.follow(&Feed::Conversation(conversation("c")), Position(0), 99, usize::MAX).await.unwrap();
    commits.into_iter().map(|committed| committed.position.0).collect()
}

pub(crate) async fn a_removed_turn_leaves_only_its_ids(store: Subject) {
    let mut removed = turn_that_ended(&store, 1, 10).await;
    let kept = turn_that_ended(&store, 2, 20).await;
    removed.suspensions = vec![suspension(1)];
    let delivered = DeliveryRow { state: DeliveryState::Delivered, ..given::delivery(1, "pager") };
    let settled = DeliveryRow { report: Report::TurnSettled(turn(1)), ..delivered.clone() };
    let of_other = DeliveryRow { report: Report::TurnSettled(turn(2)), ..delivered.clone() };
    let deliveries = [delivered, settled, of_other.clone()].map(RowChange::Delivery);
    let rows = [RowChange::Suspension(row(1, given::ENDED))].into_iter().chain(deliveries);
    store.append(&Commit::rows(rows.collect())).await.unwrap();
    assert_eq!(feed(&store).await, [1, 2, 3, 4]);

    assert_eq!(store.append(&removal([removed])).await.unwrap(), Position(5));
    for commits in [1, u32::MAX] {
        assert_eq!(store.load_until(turn(1), commits).await.unwrap(), Loaded::Removed(tombstone()), "{commits}");
    }
    assert_eq!(store.load(turn(2)).await.unwrap().found().unwrap().version, 2);
    assert_eq!(feed(&store).await, [3, 4]);
    let after = store.follow(&Feed::Conversation(conversation("c")), Position(1), 1, usize::MAX).await.unwrap();
    assert_eq!(after[0].position, Position(3), "a follower resumes across a removed turn");
    assert_eq!(store.suspension(suspension(1)).await.unwrap(), None);
    for open in [None, Some(true), Some(false)] {
        for of in [None, Some(conversation("c"))] {
            let filter = Filter { open, conversation: of, ..Filter::default() };
            assert_eq!(store.suspensions(&filter, None, 9).await.unwrap().rows, []);
            let filter = Filter { ended_by: Some(PrincipalId::system()), ..filter };
            assert_eq!(store.suspensions(&filter, None, 9).await.unwrap(), Page::default());
        }
    }
    assert_eq!(store.deliveries(suspension(1).into()).await.unwrap(), []);
    assert_eq!(store.deliveries(turn(1).into()).await.unwrap(), []);
    assert_eq!(store.deliveries(turn(2).into()).await.unwrap(), [of_other]);
    assert_eq!(store.ended(None, 9).await.unwrap(), [(kept.ended, kept.bytes)]);
    assert_eq!(store.find_call(&conversation("c"), &given::call("call-1")).await.unwrap(), Some(turn(1)));
    assert_eq!(store.owner(&conversation("c")).await.unwrap(), Some(principal("ann")));
}

pub(crate) async fn a_removed_log_is_never_continued(store: Subject) {
    let removed = turn_that_ended(&store, 1, 10).await;
    let (first, second) = (removed.clone(), removed);
    // In one batch, and after it.
    let (removal, continued) = (self::removal([first]), commit(1, 2, 3));
    let (removed, refused) = tokio::join!(store.append(&removal), store.append(&continued));
    assert!(removed.is_ok() != refused.is_ok(), "{removed:?} {refused:?}");
    if removed.is_err() {
        return;
    }
    for expected in 0..4 {
        assert!(matches!(store.append(&commit(1, expected, 3)).await, Err(AppendError::Conflict)), "{expected}");
    }
    let claimed = commit(2, 0, 1).with([given::call_of(2, "call-1")]);
    assert!(matches!(store.append(&claimed).await, Err(AppendError::CallExists(id)) if id == turn(1)));
    assert!(matches!(store.append(&self::removal([second])).await, Err(AppendError::Changed)), "it is removed once");
}

pub(crate) async fn only_an_ended_turn_as_it_was_read_is_removed(store: Subject) {
    let good = turn_that_ended(&store, 1, 10).await;
    let other = turn_that_ended(&store, 4, 40).await;
    store.append(&commit(2, 0, 2)).await.unwrap();
    let open = TurnToRemove { ended: ended(2, 5), bytes: 1, commits: 1, suspensions: Vec::new() };
    let owing = turn_that_ended(&store, 5, 50).await;
    let pending = given::delivery(3, "pager");
    let settled = DeliveryRow { report: Report::TurnSettled(turn(5)), ..pending.clone() };
    store.append(&Commit::rows([pending, settled].map(RowChange::Delivery).into())).await.unwrap();
    let head = store.head().await.unwrap();
    for (what, turn) in [
        ("it has not ended", open),
        ("another number of commits", TurnToRemove { commits: 1, ..good.clone() }),
        ("more commits than it has", TurnToRemove { commits: 3, ..good.clone() }),
        ("another size", TurnToRemove { bytes: 1, ..good.clone() }),
        ("another end", TurnToRemove { ended: ended(1, 11), ..good.clone() }),
        ("a delivery to come", TurnToRemove { suspensions: vec![suspension(3)], ..good.clone() }),
        ("a delivery about it to come", owing),
        ("the same turn twice", other.clone()),
    ] {
        let refused = store.append(&removal([other.clone(), turn])).await;
        assert!(matches!(refused, Err(AppendError::Changed)), "{what}: {refused:?}");
    }
    assert_eq!(store.head().await.unwrap(), head);
    assert_eq!(store.load(turn(4)).await.unwrap().found().unwrap().version, 2);
    assert_eq!(store.ended(None, 9).await.unwrap().len(), 3);
    store.append(&removal([good, other])).await.unwrap();
}

pub(crate) async fn the_chain_stays_as_it_is_after_a_removal(store: Subject) {
    let removed = turn_that_ended(&store, 1, 10).await;
    store.append(&events(1, 2, vec![large_fact(1, 300 << 10)])).await.unwrap();
    let removed = TurnToRemove { commits: 3, ..removed };
    store.append(&commit(2, 0, 2)).await.unwrap();
    let before = store.chain(Position(0), 99).await.unwrap();
    let bytes = removed.bytes;
    store.append(&removal([removed])).await.unwrap();

    let after = store.chain(Position(0), 99).await.unwrap();
    let same = |(before, after): (&ChainEntry, &ChainEntry)| {
        (before.head, before.source, before.record.digest()) == (after.head, after.source, after.record.digest())
    };
    assert!(before.len() == 4 && before.iter().zip(&after).all(same));
    let by = |entry: &ChainEntry| matches!(entry.record, Recorded::Removed { by: Some(Position(5)), .. });
    assert_eq!(after.iter().map(by).collect::<Vec<_>>(), [true, true, true, false, false]);
    let mut walk = Walk::new(Vec::new());
    after.iter().for_each(|entry| walk.step(entry).unwrap());
    assert_eq!(walk.last_removal(), None);
    assert_eq!(walk.end(store.head().await.unwrap()), Ok(after[4].head));

    let audited: Vec<_> =
        store.audit(Position(0), 99).await.unwrap().into_iter().map(|audited| audited.facts).collect();
    assert_eq!(audited[..3], vec![Facts::Removed { turn: turn(1) }; 3]);
    let turns = vec![RemovedTurn { turn: turn(1), commits: 3 }];
    assert_eq!(audited[4], Facts::Removal(Removal { at: time(1_000), rule: RULE, bytes, turns, lost: Vec::new() }));
    assert_eq!(after[4].source, Source::Removal);
}

pub(crate) async fn ended_turns_come_oldest_first_in_pages(store: Subject) {
    let mut sizes = Vec::new();
    for (number, at) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
        sizes.push((number, turn_that_ended(&store, number, at).await.bytes));
    }
    store.append(&commit(9, 0, 1)).await.unwrap();
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = store.ended(after, 3).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(last.key());
        read.extend(page);
    }
    let numbers: Vec<_> = read.iter().map(|(row, _)| row.turn).collect();
    assert_eq!(numbers, [2, 4, 3, 1].map(turn));
    assert!(sizes.iter().all(|(_, bytes)| *bytes == sizes[0].1 && *bytes > 50), "the records are equally long");
    let large = events(5, 0, vec![large_fact(1, 300 << 10)])
        .with([RowChange::Ended(ended(5, 40), domain::event::TurnEnd::Settled)]);
    store.append(&large).await.unwrap();
    assert!(to_remove(&store, 5).await.bytes > 300 << 10, "large records count");
}

pub(crate) async fn removals_are_read_alone_and_in_pages(store: Subject) {
    for number in [1, 2, 3] {
        let removed = turn_that_ended(&store, number, 10).await;
        store.append(&removal([removed])).await.unwrap();
    }
    let all = store.removals(Position(0), 9).await.unwrap();
    let positions = |page: &[(Position, Removal)]| page.iter().map(|(at, _)| at.0).collect::<Vec<_>>();
    assert_eq!(positions(&all), [3, 6, 9]);
    for (at, removal) in &all {
        let audited = store.audit(Position(at.0 - 1), 1).await.unwrap();
        assert_eq!(audited[0].facts, Facts::Removal(removal.clone()));
    }
    assert_eq!(store.removals(Position(3), 1).await.unwrap(), all[1..2]);
    assert_eq!(store.removals(Position(9), 9).await.unwrap(), []);
}
