//! Runs of guests: their input, and the handling of their results.

use std::sync::Arc;
use std::task::Poll;

use dispatch::ports::{End, Run, Tools as _};
use domain::{
    CallId, Digest, Json, Outcome, Receipt, Span, Timestamp,
    call::Pinned,
    outcome::{Failure, FailureCode},
    step::{Durable, RunEnd, Step, StepEnd},
};
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::testing::{Notes, TestRegistry, component};

/// A run of a live tool.
pub(super) fn run(world: &TestRegistry, tool: &str, arguments: &str) -> Run {
    let live = world.registry.find(tool).unwrap_or_else(|_| panic!("{tool} is live"));
    run_of(&live.pinned, tool, arguments)
}

/// A run of a tool that may not be live any more.
pub(super) fn run_of(pinned: &Arc<Pinned>, tool: &str, arguments: &str) -> Run {
    Run {
        pinned: pinned.clone(),
        tool: tool.into(),
        call: CallId::new("call_1").expect("an id"),
        arguments: Json::unchecked(arguments),
        idempotency_key: "key".into(),
        attempt: 1,
        scope_json: Json::unchecked("{}"),
        durable: None,
        journal: None,
        monitor: Arc::new(Notes::default()),
    }
}

fn world(tools: &[Value]) -> TestRegistry {
    let world = TestRegistry::with(|settings| {
        settings.limits.concurrency = 1;
        settings.queue = Span::from_millis(20);
    });
    world.load("guest", &component(tools)).expect("loads");
    world
}

pub(super) fn ok(text: &str) -> End {
    End {
        ended: Outcome::Ok { value: Json::unchecked(text), trusted: true }.into(),
        wrote: false,
        receipt: Some(Receipt { host_calls: 1, ..Receipt::default() }),
    }
}

/// Runs it as the loop does, with a permit.
async fn carried_out(world: &TestRegistry, run: Run) -> End {
    let has_begun = run.durable.as_ref().is_some_and(Durable::has_begun);
    let permit = match world.registry.permit(&run.pinned, has_begun).await {
        Ok(permit) => permit,
        Err(outcome) => return End::unrun(RunEnd::unrun(has_begun, outcome)),
    };
    let end = world.registry.run(run).await;
    drop(permit);
    end
}

fn failure(end: End) -> Failure {
    match end.ended.last() {
        Outcome::Failed(failure) => failure,
        other => panic!("did not fail: {other:?}"),
    }
}

#[tokio::test]
async fn a_result_that_fits_its_schema_is_returned() {
    let world = world(&[json!({"name": "echo", "options": {"result": {"type": "integer"}}})]);
    assert_eq!(world.registry.run(run(&world, "echo", "1")).await, ok("1"));
    let failure = failure(world.registry.run(run(&world, "echo", "\"x\"")).await);
    assert_eq!(failure.code, FailureCode::InvalidResult);
    assert_eq!(
        failure.message,
        r#"the tool ran, and its result breaks the schema it declares: "x" is not of type "integer""#
    );
}

#[tokio::test]
async fn a_run_may_take_what_the_tool_and_the_operator_allow() {
    let world = world(&[json!({"name": "limits", "options": {"timeout_ms": 1234}})]);
    assert_eq!(world.registry.run(run(&world, "limits", "{}")).await, ok("1234"));
}

#[tokio::test]
async fn reports_of_a_guest_arrive() {
    let world = world(&[json!({"name": "echo"})]);
    let notes = Arc::new(Notes::default());
    let mut run = run(&world, "echo", "1");
    run.monitor = notes.clone();
    world.registry.run(run).await;
    assert_eq!(*notes.0.lock().expect("unpoisoned"), ["done"]);
}

#[tokio::test]
async fn a_text_of_several_lines_is_several_lines_of_the_log() {
    let world = world(&[json!({"name": "log"})]);
    for (text, expected) in [
        ("Traceback\n  File\r\nError\n", &["error: Traceback", "error:   File", "error: Error"][..]),
        ("", &["error: "]),
        ("\n\n", &["error: ", "error: "]),
    ] {
        let notes = Arc::new(Notes::default());
        let mut run = run(&world, "log", text);
        run.monitor = notes.clone();
        world.registry.run(run).await;
        assert_eq!(*notes.0.lock().expect("unpoisoned"), [expected, &["done"]].concat(), "{text:?}");
    }
}

#[tokio::test]
async fn without_a_permit_a_call_ends_busy() {
    let world = world(&[json!({"name": "wait"}), json!({"name": "echo"})]);
    let mut waiting = Box::pin(carried_out(&world, run(&world, "wait", "{}")));
    assert!(matches!(futures::poll!(waiting.as_mut()), Poll::Pending));
    let failure = failure(carried_out(&world, run(&world, "echo", "1")).await);
    assert_eq!(failure.code, FailureCode::Busy);
    assert_eq!(
        failure.message,
        "the plugin guest already runs 1 calls (`concurrency`), and none of them ended within 20 ms (`queue_ms`); nothing \
         was carried out, try again later"
    );
    drop(waiting);
    assert_eq!(carried_out(&world, run(&world, "echo", "1")).await, ok("1"));
}

#[tokio::test]
async fn call_that_has_begun_is_never_busy() {
    let world = TestRegistry::with(|settings| {
        settings.limits.concurrency = 1;
        settings.limits.queue = 0;
    });
    world.load("guest", &component(&[json!({"name": "wait"}), json!({"name": "echo"})])).expect("loads");
    let mut waiting = Box::pin(carried_out(&world, run(&world, "wait", "{}")));
    assert!(matches!(futures::poll!(waiting.as_mut()), Poll::Pending));
    let step = Step { digest: Digest::of("step"), ended_at: Timestamp::from_millis(1), end: StepEnd::Elapsed };
    let durable = |steps: &[Step]| {
        Some(Durable {
            started_at: Timestamp::from_millis(0),
            steps: steps.into(),
            journal: [].into(),
            decided: [].into(),
        })
    };
    let begins = Run { durable: durable(&[]), ..run(&world, "echo", "1") };
    assert_eq!(failure(carried_out(&world, begins).await).code, FailureCode::Busy);
    let mut continues = Box::pin(carried_out(&world, Run { durable: durable(&[step]), ..run(&world, "echo", "1") }));
    assert!(matches!(futures::poll!(continues.as_mut()), Poll::Pending));
    drop(waiting);
    assert_eq!(continues.await, ok("1"));
}

#[tokio::test]
async fn a_full_queue_refuses_calls_of_this_plugin_only() {
    let world = TestRegistry::with(|settings| {
        settings.limits.concurrency = 1;
        settings.limits.queue = 2;
        // The queue's time limit never ends a wait in this test.
        settings.queue = Span::from_secs(3600);
    });
    world.load("guest", &component(&[json!({"name": "wait"}), json!({"name": "echo"})])).expect("loads");
    world.load("other", &component(&[json!({"name": "who"})])).expect("loads");
    let mut running = Box::pin(carried_out(&world, run(&world, "wait", "{}")));
    assert!(matches!(futures::poll!(running.as_mut()), Poll::Pending));
    let mut first = Box::pin(carried_out(&world, run(&world, "echo", "1")));
    let mut second = Box::pin(carried_out(&world, run(&world, "echo", "2")));
    assert!(matches!(futures::poll!(first.as_mut()), Poll::Pending));
    assert!(matches!(futures::poll!(second.as_mut()), Poll::Pending));
    let refused = carried_out(&world, run(&world, "echo", "3")).now_or_never().expect("is turned away at once");
    let refused = failure(refused);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (
            FailureCode::Busy,
            "the plugin guest already runs 1 calls (`concurrency`) and 2 more wait (`queue`); nothing was carried out, \
             try again later"
        )
    );
    assert_eq!(carried_out(&world, run(&world, "who", "{}")).now_or_never(), Some(ok("\"\"")));
    // A call that gives up frees its position in the queue. A call that ends gives its permit to the first in the
    // queue.
    drop(second);
    let mut third = Box::pin(carried_out(&world, run(&world, "echo", "3")));
    assert!(matches!(futures::poll!(third.as_mut()), Poll::Pending));
    drop(running);
    assert_eq!((first.await, third.await), (ok("1"), ok("3")));
}

#[tokio::test]
async fn a_call_runs_the_component_that_it_is_pinned_to() {
    let world = world(&[]);
    let version = |who: &str| json!({"who": who, "tools": [{"name": "who"}]}).to_string();
    world.load("guest", version("old").as_bytes()).expect("loads");
    let old = run(&world, "who", "{}");
    world.load("guest", version("new").as_bytes()).expect("loads");
    assert_eq!(world.registry.run(old).await, ok("\"old\""));
    assert_eq!(world.registry.run(run(&world, "who", "{}")).await, ok("\"new\""));
}

#[tokio::test]
async fn removed_or_changed_component_runs_nothing() {
    let world = world(&[json!({"name": "echo"})]);
    let pinned = run(&world, "echo", "1");
    let digest = pinned.pinned.component;
    let file = world.data.path().join(format!("components/{}.wasm", digest.hex()));

    // After a restart nothing is compiled, so the first call reads the bytes.
    let again = TestRegistry::on(world.data, |_| {});
    std::fs::write(&file, "other bytes").expect("writes");
    let invalidated = End::unrun(Outcome::Invalidated.into());
    assert_eq!(again.registry.run(pinned).await, invalidated);

    let other = world_with_unknown_component(&again);
    assert_eq!(again.registry.run(other).await, invalidated);
}

#[tokio::test]
async fn a_component_whose_record_is_lost_is_asked_again() {
    let world = world(&[json!({"name": "echo", "options": {"result": {"type": "integer"}}})]);
    let pinned = || run(&world, "echo", "1");
    let (first, second) = (pinned(), Run { arguments: Json::unchecked("\"x\""), ..pinned() });
    let record = world.data.path().join(format!("components/{}.json", first.pinned.component.hex()));
    std::fs::write(&record, "{}").expect("writes");

    let again = TestRegistry::on(world.data, |_| {});
    assert_eq!(again.registry.run(first).await, ok("1"));
    assert_eq!(failure(again.registry.run(second).await).code, FailureCode::InvalidResult);
    assert!(std::fs::metadata(&record).expect("is there").len() > 2, "it is written down again");
}

#[tokio::test]
async fn a_lost_record_is_restored_without_a_run() {
    let world = world(&[json!({"name": "echo"})]);
    let run = run(&world, "echo", "1");
    let digest = run.pinned.component;
    let record = world.data.path().join(format!("components/{}.json", digest.hex()));
    std::fs::write(&record, "{}").expect("writes");

    let again = TestRegistry::on(world.data, |_| {});
    assert!(again.registry.pinned(&run.pinned.plugin, digest, "echo").is_none());
    assert_eq!(again.registry.recall(&run.pinned).await, Ok(()));
    assert!(again.registry.pinned(&run.pinned.plugin, digest, "echo").is_some());
    let unknown = world_with_unknown_component(&again);
    assert_eq!(again.registry.recall(&unknown.pinned).await, Err(Outcome::Invalidated));
}

fn world_with_unknown_component(world: &TestRegistry) -> Run {
    world.load("guest", &component(&[json!({"name": "echo"})])).expect("loads");
    let mut run = run(world, "echo", "1");
    let mut pinned = (*run.pinned).clone();
    pinned.component = Digest::of("never seen");
    run.pinned = Arc::new(pinned);
    run
}

#[test]
fn a_warm_run_completes_without_waiting_for_anything() {
    let world = world(&[json!({"name": "echo"})]);
    let end = world.registry.run(run(&world, "echo", "1")).now_or_never();
    assert_eq!(end, Some(ok("1")), "the guest was compiled when it was loaded, and nothing else is in the way");
}
