//! Laws of the indexes: turns that are due, turns that have not ended, open suspensions.

use dispatch::ports::{Filter, Order, RowChange, SuspensionRow};
use domain::suspension::{Decision, SuspensionEnd, SuspensionKind, SuspensionState};
use domain::{PrincipalId, SuspensionId, TurnId, effect::Due, event::TurnEnd, turn::TurnState};

use crate::given::{
    ENDED, OPEN, Subject, call, call_of, commit, conversation, due, due_of, owner, principal, row, suspension, time,
    turn, with, within,
};
use crate::removing::ended;

pub(crate) async fn a_submission_is_found_with_what_its_caller_keeps(store: Subject) {
    let (ann, bob) = (principal("ann"), principal("bob"));
    let find = async |name: &str, calls: &[&str], keeper| {
        let calls = calls.iter().map(|id| call(id)).collect();
        let found = store.find_submission(&conversation(name), calls, keeper).await.unwrap();
        (found.owner, found.call, found.kept_bytes)
    };
    let rows = [owner("ann"), call_of(1, "b"), call_of(1, "c"), RowChange::Kept(ann.clone())];
    store.append(&with(commit(1, 0, 1), rows)).await.unwrap();
    let kept = store.kept_bytes(&ann).await.unwrap();
    assert!(kept > 0);
    assert_eq!(find("c", &["a", "c", "b"], Some(&ann)).await, (Some(ann.clone()), Some((call("c"), turn(1))), None));
    assert_eq!(find("c", &["a"], Some(&ann)).await, (Some(ann.clone()), None, Some(kept)));
    assert_eq!(find("c", &["a"], Some(&bob)).await, (Some(ann.clone()), None, Some(0)));
    assert_eq!(find("c", &["a"], None).await, (Some(ann.clone()), None, None));
    assert_eq!(find("d", &["b"], Some(&ann)).await, (None, None, Some(kept)));
}

async fn move_due(store: &Subject, number: u64, expected: u32, before: Option<Due>, after: Option<Due>) {
    store.append(&with(commit(number, expected, 0), [due_of(number, before, after)])).await.unwrap();
}

pub(crate) async fn due_turns_come_soonest_first_and_move(store: Subject) {
    for (number, at) in [(1, 30), (2, 10), (3, 20), (4, 20)] {
        move_due(&store, number, 0, None, Some(due(at, number == 3))).await;
    }
    let all =
        [(turn(2), due(10, false)), (turn(3), due(20, true)), (turn(4), due(20, false)), (turn(1), due(30, false))];
    assert_eq!(store.due(None, time(30), 9).await.unwrap(), all);
    assert_eq!(store.due(None, time(29), 9).await.unwrap(), all[..3]);
    assert_eq!(store.due(None, time(u64::MAX), 2).await.unwrap(), all[..2]);
    assert_eq!(store.due(None, time(9), 9).await.unwrap(), []);
    let (mut after, mut paged) = (None, Vec::new());
    while let [(id, at)] = store.due(after, time(30), 1).await.unwrap()[..] {
        after = Some((at.at, id));
        paged.push((id, at));
    }
    assert_eq!(paged, all);
    assert_eq!(store.due(Some((time(20), turn(3))), time(20), 9).await.unwrap(), all[2..3]);
    assert_eq!(store.due(Some((time(25), turn(0))), time(20), 9).await.unwrap(), [], "a time before the place");

    move_due(&store, 2, 1, Some(due(10, false)), Some(due(40, true))).await;
    move_due(&store, 3, 1, Some(due(20, true)), Some(due(20, false))).await;
    move_due(&store, 4, 1, Some(due(20, false)), Some(due(20, false))).await;
    move_due(&store, 1, 1, Some(due(30, false)), None).await;
    let all = [(turn(3), due(20, false)), (turn(4), due(20, false)), (turn(2), due(40, true))];
    assert_eq!(store.due(None, time(u64::MAX), 9).await.unwrap(), all);
}

pub(crate) async fn unfinished_turns_come_in_pages_until_they_end(store: Subject) {
    for number in 1..=25 {
        move_due(&store, number, 0, None, Some(due(100 - number, false))).await;
    }
    for number in (5..=25).step_by(5) {
        move_due(&store, number, 1, Some(due(100 - number, false)), None).await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.unfinished(after, 3).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        seen.extend(page);
    }
    let left: Vec<_> = (1..=25).filter(|n| n % 5 != 0).map(|n| (turn(n), due(100 - n, false))).collect();
    assert_eq!(seen, left);
}

/// Rows 1 to 12, a third of which ended, in two conversations, of two callers, tools and kinds.
async fn rows(store: &Subject) -> Vec<SuspensionRow> {
    let mut rows = Vec::new();
    for number in 1..=12 {
        let name = if number <= 6 { "c" } else { "d" };
        let mut row = SuspensionRow {
            conversation: conversation(name),
            caller: principal(if number % 2 == 0 { "ann" } else { "bob" }),
            tool: if number % 4 < 2 { "transfer" } else { "ask" }.into(),
            kind: if number % 4 < 2 { SuspensionKind::Approval } else { SuspensionKind::Elicitation },
            ..row(number, OPEN)
        };
        let opened = with(within(name, commit(number, 0, 0)), [RowChange::Suspension(row.clone())]);
        store.append(&opened).await.unwrap();
        if number % 3 == 0 {
            let decided = |decision| SuspensionState::Ended(SuspensionEnd::Decided(decision));
            (row.state, row.ended_by) = match number {
                3 => (decided(Decision::Answer("approve".into())), vec![principal("eve")]),
                9 => (decided(Decision::Approve), vec![principal("fay"), principal("eve")]),
                12 => (decided(Decision::Deny), vec![principal("fay")]),
                _ => (ENDED, vec![PrincipalId::system()]),
            };
            let closed = with(within(name, commit(number, 1, 0)), [RowChange::Suspension(row.clone())]);
            store.append(&closed).await.unwrap();
        }
        rows.push(row);
    }
    rows
}

/// Every page of a filter, one after the other.
async fn all_pages(store: &Subject, filter: &Filter, limit: usize) -> Vec<SuspensionRow> {
    let (mut rows, mut after) = (Vec::new(), None::<SuspensionId>);
    loop {
        let page = store.suspensions(filter, after, limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        let is_further = |next| after.is_none_or(|after| filter.order.is_after(next, after));
        assert!(page.next.is_none_or(is_further), "a next page is further on");
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

pub(crate) async fn suspensions_are_filtered(store: Subject) {
    let rows = rows(&store).await;
    let or_any = |filters: Vec<Filter>| [vec![Filter::default()], filters].concat();
    for open in [None, Some(true), Some(false)] {
        for of in or_any(vec![
            Filter { conversation: Some(conversation("d")), ..Filter::default() },
            Filter { caller: Some(principal("ann")), ..Filter::default() },
            Filter { tool: Some("ask".into()), ..Filter::default() },
            Filter { kind: Some(SuspensionKind::Approval), ..Filter::default() },
            Filter { ended: Some(SuspensionEnd::Expired), ..Filter::default() },
            Filter { ended: Some("approve".into()), ..Filter::default() },
            Filter { ended: Some("later".into()), ..Filter::default() },
            Filter { ended_by: Some(principal("eve")), ..Filter::default() },
            Filter { ended_by: Some(principal("fay")), ended: Some("deny".into()), ..Filter::default() },
            Filter { ended_by: Some(principal("eve")), conversation: Some(conversation("c")), ..Filter::default() },
            Filter { ended_by: Some(principal("fay")), tool: Some("ask".into()), ..Filter::default() },
            Filter { ended_by: Some(principal("gus")), ..Filter::default() },
            Filter { conversation: Some(conversation("c")), caller: Some(principal("bob")), ..Filter::default() },
            Filter { conversation: Some(conversation("none")), ..Filter::default() },
        ]) {
            let mut filter = Filter { open, ..of };
            let mut wanted: Vec<_> = rows.iter().filter(|row| filter.matches(row)).cloned().collect();
            for order in [Order::OldestFirst, Order::NewestFirst] {
                filter.order = order;
                assert_eq!(all_pages(&store, &filter, 100).await, wanted, "{filter:?}");
                assert_eq!(all_pages(&store, &filter, 1).await, wanted, "{filter:?}, one by one");
                wanted.reverse();
            }
        }
    }
    assert_eq!(store.suspension(suspension(3)).await.unwrap(), Some(rows[2].clone()));
    assert_eq!(store.suspension(suspension(99)).await.unwrap(), None);
}

pub(crate) async fn suspensions_come_in_pages(store: Subject) {
    let rows = rows(&store).await;
    let page = store.suspensions(&Filter::default(), Some(suspension(4)), 3).await.unwrap();
    assert_eq!((page.rows.as_slice(), page.next), (&rows[4..7], Some(suspension(7))));
    let page = store.suspensions(&Filter::default(), Some(suspension(7)), 100).await.unwrap();
    assert_eq!((page.rows.as_slice(), page.next), (&rows[7..], None));
    let newest = Filter { order: Order::NewestFirst, ..Filter::default() };
    let page = store.suspensions(&newest, Some(suspension(4)), 2).await.unwrap();
    assert_eq!((page.rows, page.next), (vec![rows[2].clone(), rows[1].clone()], Some(suspension(2))));
}

pub(crate) async fn rare_suspensions_are_on_the_first_page(store: Subject) {
    for first in (1..=3_000).step_by(500) {
        let opened = (first..first + 500).map(|number| RowChange::Suspension(row(number, OPEN)));
        store.append(&with(commit(first, 0, 0), opened)).await.unwrap();
    }
    let last = SuspensionRow { tool: "ask".into(), ..row(3_001, OPEN) };
    store.append(&with(commit(9_999, 0, 0), [RowChange::Suspension(last.clone())])).await.unwrap();
    let filter = Filter { tool: Some("ask".into()), ..Filter::default() };
    let page = store.suspensions(&filter, None, 10).await.unwrap();
    assert_eq!((page.rows.as_slice(), page.next), (&[last][..], None));
}

pub(crate) async fn open_suspensions_of_a_long_conversation_are_found(store: Subject) {
    for first in (1..=3_000).step_by(500) {
        let opened = (first..first + 500).map(|number| RowChange::Suspension(row(number, OPEN)));
        store.append(&with(commit(first, 0, 0), opened)).await.unwrap();
        let ended = (first..first + 500).map(|number| RowChange::Suspension(row(number, ENDED)));
        store.append(&with(commit(first, 1, 0), ended)).await.unwrap();
    }
    let elsewhere = SuspensionRow { conversation: conversation("d"), ..row(3_001, OPEN) };
    store.append(&within("d", with(commit(3_001, 0, 0), [RowChange::Suspension(elsewhere)]))).await.unwrap();
    let open: Vec<_> = (3_002..=3_004).map(|number| row(number, OPEN)).collect();
    store.append(&with(commit(3_002, 0, 0), open.iter().cloned().map(RowChange::Suspension))).await.unwrap();

    let filter = Filter { conversation: Some(conversation("c")), open: Some(true), ..Filter::default() };
    let page = store.suspensions(&filter, None, 10).await.unwrap();
    assert_eq!((page.rows.as_slice(), page.next), (&open[..], None), "the ended ones are not even looked at");
    assert_eq!(all_pages(&store, &filter, 1).await, open);
}

pub(crate) async fn conversations_are_sorted_and_name_their_owners(store: Subject) {
    let names = ["b", "a", "c:1", "aa", "c.1", "Z"];
    for (number, name) in (1..).zip(names) {
        let owner = if name.len() == 1 { "ann" } else { "bob" };
        let begun = with(
            within(name, commit(number, 0, 0)),
            [RowChange::Owner { conversation: conversation(name), owner: principal(owner) }],
        );
        store.append(&begun).await.unwrap();
    }
    // One more turn makes no second conversation of it.
    let again = RowChange::Owner { conversation: conversation("a"), owner: principal("ann") };
    store.append(&with(within("a", commit(9, 0, 0)), [again])).await.unwrap();
    let all: Vec<_> = [("Z", "ann"), ("a", "ann"), ("aa", "bob"), ("b", "ann"), ("c.1", "bob"), ("c:1", "bob")]
        .map(|(name, owner)| (conversation(name), principal(owner)))
        .into();
    assert_eq!(store.conversations(None, 100).await.unwrap(), all);
    assert_eq!(store.conversations(None, 2).await.unwrap(), all[..2]);
    for (at, (name, _)) in all.iter().enumerate() {
        assert_eq!(store.conversations(Some(name), 100).await.unwrap(), all[at + 1..], "after {name}");
    }
    assert_eq!(
        store.conversations(Some(&conversation("a0")), 1).await.unwrap(),
        all[2..3],
        "after one that is not there"
    );
}

/// Every page of the turns of a conversation, one after the other.
async fn all_turns(store: &Subject, name: &str, limit: usize) -> Vec<TurnId> {
    let (mut turns, mut before) = (Vec::new(), None);
    loop {
        let page = store.turns(&conversation(name), before, limit).await.unwrap();
        assert!(page.turns.len() <= limit);
        assert!(before.is_none_or(|before| page.next.is_none_or(|next| next < before)), "a next page is further on");
        turns.extend(page.turns.iter().map(|(_, turn)| *turn));
        before = page.next;
        if before.is_none() {
            return turns;
        }
    }
}

pub(crate) async fn turns_of_a_conversation_come_newest_first(store: Subject) {
    for number in [4, 1, 3] {
        store.append(&commit(number, 0, 0)).await.unwrap();
        store.append(&within("d", commit(number + 10, 0, 0))).await.unwrap();
    }
    // A turn keeps its place, however it goes on.
    store.append(&commit(4, 1, 0)).await.unwrap();
    for limit in [1, 2, 3, 500] {
        assert_eq!(all_turns(&store, "c", limit).await, [turn(3), turn(1), turn(4)], "{limit}");
        assert_eq!(all_turns(&store, "d", limit).await, [turn(13), turn(11), turn(14)], "{limit}");
        assert_eq!(all_turns(&store, "none", limit).await, []);
    }
}

pub(crate) async fn states_of_turns_are_in_the_indexes(store: Subject) {
    move_due(&store, 1, 0, None, Some(due(10, false))).await;
    let ends = [(2, TurnEnd::Settled), (3, TurnEnd::Aborted), (4, TurnEnd::Cancelled)];
    for (number, end) in ends {
        move_due(&store, number, 0, None, Some(due(10, false))).await;
        let rows = [due_of(number, Some(due(10, false)), None), RowChange::Ended(ended(number, 7), end)];
        store.append(&with(commit(number, 1, 1), rows)).await.unwrap();
    }
    let ended = ends.map(|(_, end)| Some(TurnState::Ended(end, time(7))));
    let states = store.states(&[1, 2, 3, 4, 9].map(turn)).await.unwrap();
    assert_eq!(states, [&[Some(TurnState::Open)], &ended[..], &[None]].concat());
}

pub(crate) async fn a_page_of_turns_looks_at_a_bounded_number_of_commits(store: Subject) {
    store.append(&commit(1, 0, 0)).await.unwrap();
    store.append(&commit(2, 0, 0)).await.unwrap();
    for expected in 1..=1_000 {
        store.append(&commit(1, expected, 0)).await.unwrap();
    }
    let page = store.turns(&conversation("c"), None, 10).await.unwrap();
    assert_eq!(page.turns, []);
    assert!(page.next.is_some(), "more than is looked at for one page");
    assert_eq!(all_turns(&store, "c", 10).await, [turn(2), turn(1)]);
}
