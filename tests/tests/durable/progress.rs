//! Kills of a call without steps. A run that records a result is progress.

use std::sync::Arc;

use dispatch::Dispatcher;
use dispatch::ports::{End, Run};
use domain::{
    Digest, Json, Outcome, Span, Timestamp,
    journal::{Entry, Record},
    outcome::{Failure, FailureCode},
    principal::Role,
    step::RunEnd,
};
use toolgate_tests::requests::{call, conversation, principal, turn};
use toolgate_tests::tools::WordTools;
use toolgate_tests::world::{World, settle};

/// The results that the guest records, one in each run.
const RESULTS: usize = 7;

/// Records a result, if there is another one, and never ends.
async fn record(run: Run) -> End {
    let recorded = run.durable.unwrap().journal.len();
    if recorded < RESULTS {
        let (journal, _) = run.journal.unwrap();
        journal.append(vec![entry(recorded)], Vec::new()).await.unwrap();
    }
    std::future::pending().await
}

fn entry(number: usize) -> Entry {
    Entry {
        number: u32::try_from(number).unwrap(),
        step: 0,
        run: None,
        function: None,
        digest: Digest::of("get"),
        at: Timestamp::from_millis(0),
        salt: None,
        transferred: None,
        record: Record::Result("1".into()),
    }
}

/// Records nothing and never ends in the first four attempts. The fifth records a result and cannot go on, and the sixth ends.
async fn record_late(run: Run) -> End {
    match run.attempt {
        ..5 => std::future::pending().await,
        5 => {
            let (journal, _) = run.journal.unwrap();
            journal.append(vec![entry(0)], Vec::new()).await.unwrap();
            End::unrun(RunEnd::Repeating(Failure::new(FailureCode::Busy, "no memory")))
        }
        _ => End::unrun(Outcome::Ok { value: Json::unchecked("1"), trusted: true }.into()),
    }
}

#[tokio::test]
async fn result_of_a_run_that_cannot_go_on_is_progress() {
    let world = World::default();
    let start = || Dispatcher::start(world.parts(Arc::new(WordTools::new(&["server:durable=yes"], record_late))));
    let (mut host, agent) = (start(), principal("agent", Role::Caller));
    let id = host.handle().submit(&agent, turn("c", [call("a", "tool_0", "{}")])).await.unwrap().turn.id;
    settle().await;
    for _ in 0..4 {
        drop(host);
        host = start();
        settle().await;
    }
    let outcome =
        async || host.handle().turn(&agent, &conversation("c"), id).await.unwrap().calls[0].outcome().cloned();
    assert_eq!(outcome().await, None, "it pauses before the next attempt");
    world.clock.advance(Span::from_secs(1));
    settle().await;
    assert!(matches!(outcome().await, Some(Outcome::Ok { .. })));
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
