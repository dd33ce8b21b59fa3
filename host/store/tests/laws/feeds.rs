//! Laws of the feeds and of the audit: everything once, in order, from anywhere.

use std::collections::BTreeMap;

use dispatch::ports::{
    Audited, Committed, EndedTurn, Facts, Feed, Head, Log, Position, RowChange, Source, TurnEnding, Walk,
};
use domain::event::TurnEnd;

use crate::given::{self, Subject, commit, conversation, principal, turn, within};
use crate::removing::{removal, to_remove};

fn feed(name: &str) -> Feed {
    Feed::Conversation(conversation(name))
}

/// The facts of a turn that a commit in a feed holds, by their numbers.
fn numbers(committed: &Committed) -> (domain::TurnId, Vec<u64>) {
    match &committed.facts {
        Facts::Turn { turn, events } => (*turn, events.iter().map(given::number).collect()),
        other => panic!("no fact of a turn in a conversation: {other:?}"),
    }
}

/// Appends to four turns of `c` at once, each a log of 50 commits.
async fn fill(store: &Subject) {
    let writers: Vec<_> = (1..=4)
        .map(|turn| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    store.append(&commit(turn, number, u64::from(number))).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn everything(log: &dyn Log) -> Vec<Committed> {
    log.follow(&feed("c"), Position(0), usize::MAX, usize::MAX).await.unwrap()
}

pub(crate) async fn a_feed_is_ordered_and_resumes_from_any_position(store: Subject) {
    fill(&store).await;
    let all = everything(&*store).await;
    assert_eq!(all.len(), 200);
    assert!(all.is_sorted_by(|a, b| a.position < b.position));
    assert!(all[0].position >= Position(1));
    for start in 0..all.len() {
        let after = all[start].position;
        let page = store.follow(&feed("c"), after, 7, usize::MAX).await.unwrap();
        assert_eq!(page, all[start + 1..].iter().take(7).cloned().collect::<Vec<_>>());
    }
    assert_eq!(store.follow(&feed("c"), Position(u64::MAX), 7, usize::MAX).await.unwrap(), []);
}

pub(crate) async fn a_page_of_a_feed_is_bounded_in_bytes(store: Subject) {
    let small = 400;
    for (number, size) in (0..).zip([small, small, 300 << 10, small, small, small]) {
        store.append(&given::events(1, number, vec![given::large_fact(number.into(), size)])).await.unwrap();
    }
    let page = async |after, bytes| {
        let page = store.follow(&feed("c"), Position(after), 9, bytes).await.unwrap();
        page.into_iter().map(|committed| committed.position.0).collect::<Vec<_>>()
    };
    assert_eq!(page(0, usize::MAX).await, [1, 2, 3, 4, 5, 6]);
    assert_eq!(page(0, 299 << 10).await, [1, 2]);
    assert_eq!(page(2, 299 << 10).await, [3], "a page has at least one commit");
    assert_eq!(page(2, 301 << 10).await, [3, 4]);
    assert_eq!(page(3, 0).await, [4]);
}

pub(crate) async fn a_feed_has_exactly_what_the_logs_have(store: Subject) {
    fill(&store).await;
    let mut logs = BTreeMap::<_, Vec<u64>>::new();
    for committed in everything(&*store).await {
        let (turn, mut facts) = numbers(&committed);
        logs.entry(turn).or_default().append(&mut facts);
    }
    assert_eq!(logs.len(), 4);
    for (turn, facts) in logs {
        let loaded = store.load(turn).await.unwrap().found().unwrap();
        assert_eq!(facts, loaded.events.iter().map(given::number).collect::<Vec<_>>());
    }
}

pub(crate) async fn a_follower_misses_nothing_while_commits_go_on(store: Subject) {
    let writing = {
        let store = store.clone();
        tokio::spawn(async move { fill(&store).await })
    };
    let (mut seen, mut after) = (Vec::new(), Position(0));
    while seen.len() < 200 {
        let page = store.follow(&feed("c"), after, 3, usize::MAX).await.unwrap();
        after = page.last().map_or(after, |last| last.position);
        seen.extend(page);
        tokio::task::yield_now().await;
    }
    writing.await.unwrap();
    assert_eq!(seen, everything(&*store).await);
}

pub(crate) async fn feeds_do_not_mix(store: Subject) {
    let names = ["a", "ab", "a:b", "b"];
    for (number, name) in (1..).zip(names) {
        store.append(&within(name, commit(number, 0, number))).await.unwrap();
        store.append(&given::record(given::plugin(number))).await.unwrap();
    }
    for (number, name) in (1..).zip(names) {
        let commits = store.follow(&feed(name), Position(0), 9, usize::MAX).await.unwrap();
        assert_eq!(commits.iter().map(numbers).collect::<Vec<_>>(), [(turn(number), vec![number])], "{name}");
    }
    let plugins = store.follow(&Feed::Host, Position(0), 9, usize::MAX).await.unwrap();
    let facts: Vec<_> = plugins.into_iter().map(|committed| committed.facts).collect();
    assert_eq!(facts, (1..=4).map(|number| Facts::Plugin(given::plugin(number))).collect::<Vec<_>>());
}

/// The first commit of a turn of this caller, which ends it.
async fn end(store: &Subject, number: u64, caller: &str, end: TurnEnd) -> Committed {
    let conversation = conversation(&format!("of-{caller}"));
    let (turn, caller, at) = (turn(number), principal(caller), given::time(number));
    let row = EndedTurn { turn, conversation: conversation.clone(), caller, tools: vec!["t".into()], at };
    let facts = Facts::Ended(TurnEnding::of(&row, end));
    let commit = within(conversation.as_str(), commit(number, 0, number)).with([RowChange::Ended(row, end)]);
    Committed { position: store.append(&commit).await.unwrap(), facts }
}

pub(crate) async fn ends_of_turns_are_in_the_feeds_of_host_and_caller(store: Subject) {
    let follow = async |feed: &Feed, after, limit| store.follow(feed, after, limit, usize::MAX).await.unwrap();
    let mut all = Vec::new();
    for (number, caller) in (1..).zip(["ann", "an", "bob", "ann", "bob"]) {
        store.append(&within("other", commit(100 + number, 0, number))).await.unwrap();
        let how = [TurnEnd::Settled, TurnEnd::Aborted, TurnEnd::Cancelled][number as usize % 3];
        all.push(end(&store, number, caller, how).await);
        let position = store.append(&given::record(given::plugin(number))).await.unwrap();
        all.push(Committed { position, facts: Facts::Plugin(given::plugin(number)) });
    }
    for start in 0..all.len() {
        let page = follow(&Feed::Host, all[start].position, 3).await;
        assert_eq!(page, all[start + 1..].iter().take(3).cloned().collect::<Vec<_>>(), "after {start}");
    }
    assert_eq!(follow(&Feed::Host, Position(0), usize::MAX).await, all);
    for (caller, of) in [("ann", [0, 6].as_slice()), ("an", &[2]), ("bob", &[4, 8]), ("b", &[])] {
        let of: Vec<_> = of.iter().map(|index: &usize| all[*index].clone()).collect();
        assert_eq!(follow(&Feed::Caller(principal(caller)), Position(0), 9).await, of, "{caller}");
        let after = of.first().map_or(Position(0), |first| first.position);
        assert_eq!(follow(&Feed::Caller(principal(caller)), after, 9).await, of.get(1..).unwrap_or_default());
    }
}

pub(crate) async fn the_end_of_a_removed_turn_is_removed(store: Subject) {
    let first = end(&store, 1, "ann", TurnEnd::Settled).await;
    let second = end(&store, 2, "ann", TurnEnd::Settled).await;
    let turn = to_remove(&store, 1).await;
    store.append(&removal([turn])).await.unwrap();
    for feed in [Feed::Host, Feed::Caller(principal("ann"))] {
        assert_eq!(store.follow(&feed, Position(0), 9, usize::MAX).await.unwrap(), std::slice::from_ref(&second));
        assert_eq!(store.follow(&feed, first.position, 9, usize::MAX).await.unwrap(), std::slice::from_ref(&second));
    }
}

/// All kinds of facts: commits to two turns that alternate, facts about plugins, starts of hosts.
async fn something_of_everything(store: &Subject) -> Vec<Facts> {
    let mut expected = Vec::new();
    for round in 0..10 {
        let number = u64::from(round);
        for of in [1, 2] {
            let position = store.append(&commit(of, round, number)).await.unwrap();
            expected.push(Facts::Turn { turn: turn(of), events: vec![given::fact(number)] });
            assert_eq!(position.0, expected.len() as u64, "positions have no gaps");
        }
        assert_eq!(store.append(&given::record(given::plugin(number))).await.unwrap().0, expected.len() as u64 + 1);
        expected.push(Facts::Plugin(given::plugin(number)));
        assert_eq!(store.append(&given::started(given::start(number))).await.unwrap().0, expected.len() as u64 + 1);
        expected.push(Facts::Started(given::start(number)));
    }
    expected
}

pub(crate) async fn the_audit_has_every_commit_in_order_from_anywhere(store: Subject) {
    assert_eq!(store.audit(Position(0), 9).await.unwrap(), []);
    let expected = something_of_everything(&store).await;
    let all = store.audit(Position(0), usize::MAX).await.unwrap();
    assert_eq!(all.iter().map(|audited| audited.facts.clone()).collect::<Vec<_>>(), expected);
    assert!((1..).zip(&all).all(|(position, audited)| audited.head.position == Position(position)));
    let numbers = |of| {
        let source = |audited: &Audited| match audited.source {
            Source::Turn { turn, number } if turn == of => Some(number),
            _ => None,
        };
        all.iter().filter_map(source).collect::<Vec<_>>()
    };
    assert_eq!(numbers(turn(1)), (0..10).collect::<Vec<_>>());
    let (mut paged, mut after) = (Vec::new(), Position(0));
    loop {
        let page = store.audit(after, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.head.position;
        paged.extend(page);
    }
    assert_eq!(paged, all);
}

pub(crate) async fn the_same_commits_make_the_same_chain(store: Subject) {
    assert_eq!(store.head().await.unwrap(), Head::START);
    let commits = something_of_everything(&store).await.len();
    let large = given::events(3, 0, vec![given::large_fact(1, 300 << 10)]);
    store.append(&large).await.unwrap();
    let head = store.head().await.unwrap();
    let links = store.chain(Position(0), usize::MAX).await.unwrap();
    assert_eq!(links.len(), commits + 1);
    let mut walk = Walk::new(Vec::new());
    links.iter().for_each(|link| walk.step(link).unwrap());
    assert_eq!(walk.end(head), Ok(head));
    // On every backend. It is over what is stored, so only a new version of a record changes it.
    assert_eq!(head.to_string(), "41:sha256:813f227c62ba5c335816ddd38e4dad6f8caad919439b19a2c265c302c8ad4767");
    let audited = store.audit(Position(0), usize::MAX).await.unwrap();
    assert!(
        links.iter().zip(&audited).all(|(link, audited)| (link.head, link.source) == (audited.head, audited.source))
    );
    assert_eq!(store.chain(Position(39), 1).await.unwrap(), links[39..40]);
    assert_eq!(store.chain(head.position, 9).await.unwrap(), []);
}

pub(crate) async fn the_last_start_is_known(store: Subject) {
    assert_eq!(store.last_start().await.unwrap(), None);
    for number in 1..=3 {
        store.append(&given::started(given::start(number))).await.unwrap();
        assert_eq!(store.last_start().await.unwrap(), Some(given::start(number)));
    }
    assert_eq!(store.follow(&Feed::Host, Position(0), 9, usize::MAX).await.unwrap(), [], "it is in no feed");
}
