//! Kills of a call without steps. A run that records a result is progress.

use std::sync::Arc;

use dispatch::Dispatcher;
use dispatch::ports::{End, Run};
use domain::{
    Digest, Outcome, Timestamp,
    journal::{Entry, Record},
    principal::Role,
};
use toolgate_tests::requests::{call, conversation, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// The results that the guest records, one in each run.
const RESULTS: usize = 7;

/// Records a result, if there is another one, and never ends.
async fn record(run: Run) -> End {
    let recorded = run.durable.unwrap().journal.len();
    let entry = Entry {
        number: u32::try_from(recorded).unwrap(),
        step: 0,
        run: None,
        function: None,
        digest: Digest::of("get"),
        at: Timestamp::from_millis(0),
        salt: None,
        transferred: None,
        record: Record::Result("1".into()),
    };
    if recorded < RESULTS {
        let (journal, _) = run.journal.unwrap();
        journal.append(vec![entry], Vec::new()).await.unwrap();
    }
    std::future::pending().await
}

#[tokio::test]
async fn kills_do_not_end_a_call_that_records_results() {
    let world = World::default();
    let start = || Dispatcher::start(world.parts(Arc::new(WordTools::new(&["server:durable=yes"], record))));
    let (mut host, agent) = (start(), principal("agent", Role::Caller));
    let id = host.handle().submit(&agent, turn("c", [call("a", "tool_0", "{}")])).await.unwrap().turn.id;
    settle().await;
    let mut outcomes = Vec::new();
    // After the last result, four runs record nothing.
    for _ in 0..RESULTS + 4 {
        drop(host);
        host = start();
        settle().await;
        let turn = host.handle().turn(&agent, &conversation("c"), id).await.unwrap();
        outcomes.push(turn.calls[0].outcome().cloned());
    }
    let last = outcomes.pop().unwrap();
    assert!(outcomes.iter().all(Option::is_none), "{outcomes:?}");
    assert_eq!(last, Some(Outcome::InDoubt));
}
