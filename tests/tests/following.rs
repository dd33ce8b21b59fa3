//! A follower that is cancelled at any point loses no event and repeats none. `select!` in an event stream cancels one
//! for each other event.

use std::sync::Arc;

use dispatch::ports::Position;
use dispatch::{Dispatcher, Item, Parts, Until};
use domain::{Span, principal::Role};
use futures::FutureExt as _;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::requests::{call, conversation, done, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::World;

#[tokio::test]
async fn cancelled_follower_reads_every_event_once() {
    let world = World::default();
    let store = Arc::new(MortalStore::new(world.store.clone()));
    let tools = Arc::new(WordTools::new(&["server"], |_| async { done() }));
    let host = Dispatcher::start(Parts { store: store.clone(), ..world.parts(tools) });
    let (caller, conversation) = (principal("caller", Role::Caller), conversation("conversation"));
    for n in 0..3 {
        let turn = turn("conversation", [call(&format!("call-{n}"), "server", "{}")]);
        let submitted = host.handle().submit(&caller, turn).await.unwrap();
        let (turn, long) = (submitted.turn.id, Span::from_secs(60));
        host.handle().wait(&caller, &conversation, turn, Until::Ended, long).await.unwrap();
    }
    let handle = host.handle();
    let follow = || handle.follow(&caller, &conversation, Position(0)).map(Result::unwrap);

    let mut undisturbed = follow().await;
    let mut all = Vec::new();
    while let Some(Item::Committed(committed)) = undisturbed.next().now_or_never().transpose().unwrap() {
        all.push(committed.position);
    }
    assert!(all.len() >= 3, "{all:?}");

    let (mut live, mut by_live) = (follow().await, Vec::new());
    for _ in &all {
        store.hesitate();
        // It is cancelled after it has read a page and before it knows whether the principal may see it.
        let cancelled = live.next().now_or_never();
        let next = cancelled.or_else(|| live.next().now_or_never()).expect("the event comes next");
        if let Item::Committed(next) = next.unwrap() {
            by_live.push(next.position);
        }
    }
    assert_eq!(by_live, all);
}
