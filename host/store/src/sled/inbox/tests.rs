//! The reads of a filter. They must not grow with the number of suspensions that wait.

use dispatch::ports::{AudienceChange, Commit, Log as _, RowChange};
use domain::{CallIndex, TurnId, suspension::SuspensionState};

use super::*;
use crate::sled::SledStore;
use crate::sled::tree::reads;

const WAITING: u128 = 3_000;

fn row(number: u128, tool: &str) -> SuspensionRow {
    SuspensionRow {
        id: SuspensionId::from_bits(number),
        turn: TurnId::from_bits(1),
        call: CallIndex(0),
        conversation: ConversationId::new("c").unwrap(),
        caller: PrincipalId::new("ann").unwrap(),
        tool: tool.into(),
        kind: SuspensionKind::Approval,
        state: SuspensionState::Open,
        ended_by: Vec::new(),
        signal: None,
    }
}

fn opened(row: SuspensionRow) -> [RowChange; 2] {
    let (needs, without, delegates) = (vec![Vec::new()], Vec::new(), Vec::new());
    let change = AudienceChange {
        suspension: row.id,
        conversation: row.conversation.clone(),
        caller: row.caller.clone(),
        tool: row.tool.clone(),
        before: None,
        after: Some(Audience { kind: row.kind, needs, without, delegates }),
    };
    [RowChange::Suspension(row), RowChange::Audience(Box::new(change))]
}

#[tokio::test]
async fn filters_and_counts_read_only_what_they_return() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    for first in (0..WAITING).step_by(500) {
        let rows = (first..first + 500).flat_map(|number| opened(row(number, "transfer")));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    let last = row(WAITING, "ask");
    store.append(&Commit::rows(opened(last.clone()).into())).await.unwrap();

    let of = |filter: Filter| Filter { open: Some(true), ..filter };
    let filters = [
        (Filter { tool: Some("ask".into()), ..Filter::default() }, 1),
        (Filter { tool: Some("none".into()), ..Filter::default() }, 0),
        (Filter { kind: Some(SuspensionKind::Elicitation), ..Filter::default() }, 0),
        (Filter { caller: Some(PrincipalId::new("bob").unwrap()), ..Filter::default() }, 0),
        (Filter { caller: Some(PrincipalId::new("ann").unwrap()), tool: Some("ask".into()), ..Filter::default() }, 1),
        (
            Filter {
                conversation: Some(ConversationId::new("c").unwrap()),
                tool: Some("x".into()),
                ..Filter::default()
            },
            0,
        ),
    ];
    for (filter, expected) in filters {
        for filter in [filter.clone(), of(filter)] {
            let before = reads();
            let page = store.reader.suspensions(&filter, None, 100).await.unwrap();
            assert_eq!((page.rows.len(), page.next), (expected, None), "{filter:?}");
            assert!(reads() - before < 20, "{} reads of {filter:?}", reads() - before);
        }
    }
    let before = reads();
    let page = store.reader.suspensions(&of(Filter::default()), None, 10).await.unwrap();
    assert_eq!((page.rows.len(), page.next.map(SuspensionId::bits)), (10, Some(9)));
    assert!(reads() - before < 40, "{} reads", reads() - before);

    let before = reads();
    let audiences = store.reader.audiences(&Filter::default()).await.unwrap();
    assert_eq!(audiences.counts.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [WAITING as u64 + 1]);
    assert!(audiences.complete && reads() - before < 5, "{} reads", reads() - before);
}

#[tokio::test]
async fn filters_by_end_read_only_what_they_return() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    let who = |name: &str| PrincipalId::new(name).unwrap();
    let ended = |number: u128, how: &str, by: &[&str]| {
        let (state, ended_by) = (SuspensionState::Ended(how.into()), by.iter().map(|name| who(name)).collect());
        RowChange::Suspension(SuspensionRow { state, ended_by, ..row(number, "transfer") })
    };
    for first in (0..WAITING).step_by(500) {
        let rows = (first..first + 500).map(|number| ended(number, "approve", &["ann", "bob"]));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    let choice = "a long choice ".repeat(2_000);
    let rows = [ended(WAITING, "deny", &["cid"]), ended(WAITING + 1, &choice, &["ann"])];
    store.append(&Commit::rows(rows.into())).await.unwrap();
    for (how, by, expected) in [
        (Some("deny"), None, 1),
        (Some(choice.as_str()), None, 1),
        (Some("expired"), None, 0),
        (Some("approve"), Some("dan"), 0),
        (None, Some("cid"), 1),
        (None, Some("dan"), 0),
        (Some("deny"), Some("ann"), 0),
        (Some("approve"), Some("cid"), 0),
        (Some(choice.as_str()), Some("ann"), 1),
    ] {
        let end = Filter { ended: how.map(Into::into), ended_by: by.map(who), ..Filter::default() };
        let caller = Some(who("ann"));
        for filter in [
            end.clone(),
            Filter { open: Some(false), ..end.clone() },
            Filter { tool: Some("transfer".into()), ..end.clone() },
            Filter { conversation: Some(ConversationId::new("c").unwrap()), ..end.clone() },
            Filter { caller, kind: Some(SuspensionKind::Approval), ..end.clone() },
        ] {
            let before = reads();
            let page = store.reader.suspensions(&filter, None, 100).await.unwrap();
            assert_eq!((page.rows.len(), page.next), (expected, None), "{filter:?}");
            assert!(reads() - before < 15, "{} reads of {filter:?}", reads() - before);
        }
        for filter in [Filter { open: Some(true), ..end.clone() }, Filter { tool: Some("none".into()), ..end }] {
            let before = reads();
            assert_eq!(store.reader.suspensions(&filter, None, 100).await.unwrap().rows, []);
            assert!(reads() - before < 8, "{} reads of {filter:?}", reads() - before);
        }
    }
    let by = Filter { ended_by: Some(who("bob")), ..Filter::default() };
    let both = Filter { ended: Some("approve".into()), ..by.clone() };
    for filter in [by.clone(), both.clone()] {
        let before = reads();
        let page = store.reader.suspensions(&filter, None, 10).await.unwrap();
        assert_eq!((page.rows.len(), page.next.map(SuspensionId::bits)), (10, Some(9)));
        assert!(reads() - before < 60, "{} reads", reads() - before);
    }
    for (order, after, expected) in
        [(Order::OldestFirst, 41, [42, 43]), (Order::NewestFirst, 41, [40, 39]), (Order::NewestFirst, 2, [1, 0])]
    {
        for filter in [Filter { order, ..by.clone() }, Filter { order, ..both.clone() }] {
            let page = store.reader.suspensions(&filter, Some(SuspensionId::from_bits(after)), 2).await.unwrap();
            assert_eq!(page.rows.iter().map(|row| row.id.bits()).collect::<Vec<_>>(), expected, "{filter:?}");
        }
    }
}

#[tokio::test]
async fn filters_by_end_skip_what_is_of_another_tool_or_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    let who = |name: &str| PrincipalId::new(name).unwrap();
    let state = SuspensionState::Ended("approve".into());
    let ended = (0..WAITING).map(|number| SuspensionRow {
        state: state.clone(),
        ended_by: vec![who("ann")],
        ..row(number, "transfer")
    });
    store.append(&Commit::rows(ended.map(RowChange::Suspension).collect())).await.unwrap();
    for (ended, ended_by) in [(Some("approve"), None), (None, Some("ann")), (Some("approve"), Some("ann"))] {
        let end = Filter { ended: ended.map(Into::into), ended_by: ended_by.map(who), ..Filter::default() };
        let other = Some(ConversationId::new("other").unwrap());
        let filters = [Filter { tool: Some("none".into()), ..end.clone() }, Filter { conversation: other, ..end }];
        for filter in filters {
            let before = reads();
            let page = store.reader.suspensions(&filter, None, 100).await.unwrap();
            assert_eq!((page.rows, page.next), (vec![], None), "{filter:?}");
            assert!(reads() - before < 15, "{} reads of {filter:?}", reads() - before);
        }
    }
}

#[tokio::test]
async fn filter_by_who_and_how_skips_a_limited_number() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    let ended = |number: u128, how: &str, by: &str| {
        let (state, ended_by) = (SuspensionState::Ended(how.into()), vec![PrincipalId::new(by).unwrap()]);
        RowChange::Suspension(SuspensionRow { state, ended_by, ..row(number, "transfer") })
    };
    let in_turn = |number: u128| if number.is_multiple_of(2) { ("approve", "ann") } else { ("deny", "bob") };
    for first in (1..=WAITING).step_by(500) {
        let rows = (first..first + 500).map(|number| {
            let (how, by) = in_turn(number);
            ended(number, how, by)
        });
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    let ends = [ended(0, "deny", "ann"), ended(WAITING + 1, "deny", "ann")];
    store.append(&Commit::rows(ends.into())).await.unwrap();
    let filter =
        Filter { ended: Some("deny".into()), ended_by: Some(PrincipalId::new("ann").unwrap()), ..Filter::default() };
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let filter = Filter { order, ..filter.clone() };
        let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let before = reads();
            let page = store.reader.suspensions(&filter, after, 100).await.unwrap();
            assert!(reads() - before < 5 * MAX_SKIPS, "{} reads", reads() - before);
            found.extend(page.rows.iter().map(|row| row.id.bits()));
            (after, pages) = (page.next, pages + 1);
            if after.is_none() {
                break;
            }
        }
        found.sort_unstable();
        assert_eq!((found, pages), (vec![0, WAITING + 1], 2), "{order:?}");
    }
}

#[tokio::test]
async fn own_suspension_among_many_is_found_without_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    for first in (0..WAITING).step_by(500) {
        let rows = (first..first + 500).flat_map(|number| opened(row(number, "transfer")));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    let who = |name: &str| vec![vec![format!("principal:{name}").parse().unwrap()]];
    let audience =
        |needs| Audience { kind: SuspensionKind::Approval, needs, without: Vec::new(), delegates: Vec::new() };
    let (own, any) = (audience(who("bob")), audience(vec![Vec::new()]));
    for number in [1_500, WAITING] {
        // One of them moves from the others' audience to this one.
        let before = (number != WAITING).then(|| any.clone());
        let change = opened(row(number, "transfer")).into_iter().map(|change| match change {
            RowChange::Audience(change) => RowChange::Audience(Box::new(AudienceChange {
                before: before.clone(),
                after: Some(own.clone()),
                ..*change
            })),
            other => other,
        });
        store.append(&Commit::rows(change.collect())).await.unwrap();
    }
    let tool = Filter { tool: Some("transfer".into()), ..Filter::default() };
    for filter in [Filter::default(), tool] {
        let before = reads();
        let page = store.reader.suspensions_of(&filter, std::slice::from_ref(&own), None, 100).await.unwrap();
        let found: Vec<_> = page.rows.iter().map(|row| row.id.bits()).collect();
        assert_eq!((found, page.next), (vec![1_500, WAITING], None));
        assert!(reads() - before < 20, "{} reads of {filter:?}", reads() - before);
    }
    let before = reads();
    let page = store.reader.suspensions_of(&Filter::default(), &[any, own], None, 10).await.unwrap();
    assert_eq!((page.rows.len(), page.next.map(SuspensionId::bits)), (10, Some(9)));
    assert!(reads() - before < 40, "{} reads", reads() - before);
}

#[tokio::test]
async fn counts_read_a_limited_number_of_audiences() {
    let folder = tempfile::tempdir().unwrap();
    let store = SledStore::open(folder.path(), &crate::StoreSettings::default()).unwrap();
    let audience = |number: usize| {
        let (kind, who) = (SuspensionKind::Approval, format!("principal:p{number}").parse().unwrap());
        Audience { kind, needs: vec![vec![who]], without: Vec::new(), delegates: Vec::new() }
    };
    for first in (0..=Audiences::MAX).step_by(500) {
        let changes = (first..first + 500).map(|number| {
            let change = opened(row(number as u128, "ask")).into_iter().find_map(|change| match change {
                RowChange::Audience(change) => Some(AudienceChange { after: Some(audience(number)), ..*change }),
                _ => None,
            });
            RowChange::Audience(Box::new(change.unwrap()))
        });
        store.append(&Commit::rows(changes.collect())).await.unwrap();
    }
    let audiences = store.reader.audiences(&Filter::default()).await.unwrap();
    assert_eq!((audiences.counts.len(), audiences.complete), (Audiences::MAX, false));
}
