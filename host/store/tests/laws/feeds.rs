//! Laws of the feeds and of the audit: everything once, in order, from anywhere.

use std::collections::BTreeMap;

use dispatch::ports::{Committed, Facts, Feed, Index, Position, Store};

use crate::given::{self, Subject, commit, conversation, turn, with, within};

fn feed(name: &str) -> Feed {
    Feed::Conversation(conversation(name))
}

/// The facts of a turn that a commit in a feed holds, by their numbers.
fn numbers(committed: &Committed) -> (domain::TurnId, Vec<u64>) {
    match &committed.facts {
        Facts::Turn { turn, events } => (*turn, events.iter().map(given::number).collect()),
        Facts::Plugin(event) => panic!("a plugin's fact in a conversation: {event:?}"),
    }
}

/// Appends to four turns of `c` at once, each a log of 50 commits.
async fn fill(store: &Subject) {
    let writers: Vec<_> = (1..=4)
        .map(|turn| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..50 {
                    store.append(commit(turn, number, u64::from(number))).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn everything(store: &dyn Store) -> Vec<Committed> {
    store.follow(&feed("c"), Position(0), usize::MAX).await.unwrap()
}

pub(crate) async fn a_feed_is_in_order_and_can_be_resumed_from_anywhere(store: Subject) {
    fill(&store).await;
    let all = everything(&*store).await;
    assert_eq!(all.len(), 200);
    assert!(all.is_sorted_by(|a, b| a.position < b.position));
    assert!(all[0].position >= Position(1));
    for start in 0..all.len() {
        let after = all[start].position;
        let page = store.follow(&feed("c"), after, 7).await.unwrap();
        assert_eq!(page, all[start + 1..].iter().take(7).cloned().collect::<Vec<_>>());
    }
    assert_eq!(store.follow(&feed("c"), Position(u64::MAX), 7).await.unwrap(), []);
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
        let loaded = store.load(turn).await.unwrap().unwrap();
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
        let page = store.follow(&feed("c"), after, 3).await.unwrap();
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
        store.append(within(name, commit(number, 0, number))).await.unwrap();
        store.record(given::plugin(number), None).await.unwrap();
    }
    for (number, name) in (1..).zip(names) {
        let commits = store.follow(&feed(name), Position(0), 9).await.unwrap();
        assert_eq!(commits.iter().map(numbers).collect::<Vec<_>>(), [(turn(number), vec![number])], "{name}");
    }
    let plugins = store.follow(&Feed::Host, Position(0), 9).await.unwrap();
    let facts: Vec<_> = plugins.into_iter().map(|committed| committed.facts).collect();
    assert_eq!(facts, (1..=4).map(|number| Facts::Plugin(given::plugin(number))).collect::<Vec<_>>());
}

pub(crate) async fn the_audit_is_in_order_and_can_be_resumed_from_anywhere(store: Subject) {
    for number in 0..10 {
        // Three entries of one commit, so that pages end between them; and one of a plugin.
        let entries = (0..3).map(|entry| Index::Audit(given::audit(number * 4 + entry)));
        let at = store.append(with(commit(number, 0, 1), entries)).await.unwrap();
        let next = store.record(given::plugin(1), Some(given::audit(number * 4 + 3))).await.unwrap();
        assert!(next > at);
    }
    let all = store.audit(Position(0), usize::MAX).await.unwrap();
    assert_eq!(all.iter().map(|(_, entry)| entry.at.millis()).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
    let (mut paged, mut after) = (Vec::new(), Position(0));
    loop {
        let page = store.audit(after, 2).await.unwrap();
        let Some((last, _)) = page.last() else { break };
        after = *last;
        paged.extend(page);
    }
    assert_eq!(paged, all);
}
