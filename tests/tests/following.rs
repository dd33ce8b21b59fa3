//! A follower that is cancelled at any point loses no event and repeats none. `select!` in an event stream cancels one
//! for each other event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::{End, Position, Run};
use dispatch::{CallRequest, Host, Item, Parts, Quotas, TurnRequest, Until};
use domain::{
    CallId, ConversationId, Json, Outcome, OwnerId, Principal, PrincipalId, Span, event::Rejection, principal::Role,
    turn::Rules,
};
use futures::FutureExt as _;
use store::MemoryStore;
use toolgate_tests::clock::SimClock;
use toolgate_tests::faults::MortalStore;
use toolgate_tests::tools::WordTools;

fn host(store: Arc<MortalStore>) -> Host {
    let minted = AtomicU64::new(1);
    let run = |_: Run| async {
        End { outcome: Outcome::Ok { value: Json::new("{}"), trusted: true }, wrote: false, receipt: None }
    };
    Host::start(Parts {
        store,
        tools: Arc::new(WordTools::new(&["server"], run)),
        policy: Arc::new(dispatch::ports::AsDeclared),
        clock: Arc::new(SimClock::default()),
        guests: tokio::runtime::Handle::current(),
        owner: OwnerId::from_bits(7),
        mint: Arc::new(move || u128::from(minted.fetch_add(1, Ordering::Relaxed))),
        rules: Rules::default(),
        bounds: dispatch::Bounds::default(),
        quotas: Quotas::default(),
        subscribers: Arc::new(()),
    })
}

#[tokio::test]
async fn cancelled_follower_reads_every_event_once() {
    let store = Arc::new(MortalStore::new(Arc::new(MemoryStore::default())));
    let host = host(store.clone());
    let caller = Principal::new(PrincipalId::new("caller").unwrap(), [Role::Caller]);
    let conversation = ConversationId::new("conversation").unwrap();
    for n in 0..3 {
        let call = CallRequest {
            id: CallId::new(&format!("call-{n}")).unwrap(),
            tool: "server".into(),
            arguments: Json::new("{}"),
            result: None,
            origin: None,
        };
        let turn = TurnRequest {
            conversation: conversation.clone(),
            calls: vec![call],
            context: None,
            rejection: Rejection::default(),
            ephemeral: false,
        };
        let submitted = host.handle().submit(&caller, turn).await.unwrap();
        let (turn, long) = (submitted.turn.id, Span::from_secs(60));
        host.handle().wait(&caller, &conversation, turn, Until::Settled, long).await.unwrap();
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
