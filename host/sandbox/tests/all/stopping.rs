//! A call can check whether it should stop. A guest that cannot check gets no grace.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use domain::{Limits, Span, call::Level, outcome::FailureCode};
use toolgate_sandbox::{GuestEnd, Sink, Update};
use toolgate_tests::wat::{Wat, guest};

use crate::world::{RUNTIME, failed, job, load, tight, value};

const IMPORT: &str = r#"(import "toolgate:plugin/host@0.1.2" "stop-requested" (func $stop_requested (result i32)))"#;

/// Checks until it should stop, and returns the number of checks before.
const ASKS: &str = "(local $in_vain i64)
  (block $stop
    (loop $again
      (br_if $stop (call $stop_requested))
      (local.set $in_vain (i64.add (local.get $in_vain) (i64.const 1)))
      (br $again)))
  (call $ok_number (local.get $in_vain))";

fn asking(run: &str) -> Vec<u8> {
    Wat { body: run, imports: IMPORT, ..Wat::default() }.build()
}

/// Asks a call to stop after this many checks, and records the requested grace.
#[derive(Default)]
struct Stopping {
    in_vain: u32,
    asked: AtomicU32,
    begun: Mutex<Vec<Span>>,
    over: bool,
}

impl Sink for Stopping {
    fn try_start(&self, grace: Span) -> bool {
        self.begun.lock().expect("no panic").push(grace);
        !self.over
    }

    fn stop_requested(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.in_vain
    }

    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {}
}

fn run(component: &[u8], limits: &Limits, sink: &Arc<Stopping>) -> GuestEnd {
    RUNTIME.block_on(load(component).run(&job("test", "{}"), limits, sink.clone()))
}

#[test]
fn cancelled_call_sees_the_request_to_stop() {
    let sink = Arc::new(Stopping { in_vain: 3, ..Stopping::default() });
    let end = run(&asking(ASKS), &tight(), &sink);
    assert_eq!(end.spent.expect("it ran").host_calls, 4, "a check counts as a call of a host function");
    assert_eq!(value(end.ended), "3");
}

#[test]
fn checks_for_cancellation_are_counted_and_limited() {
    let sink = Arc::new(Stopping { in_vain: u32::MAX, ..Stopping::default() });
    let end = run(&asking(ASKS), &Limits { host_calls: 10, ..tight() }, &sink);
    assert!(failed(end.ended, FailureCode::LimitExceeded).contains("`limits.host_calls`"));
    assert_eq!(sink.asked.load(Ordering::Relaxed), 10, "the eleventh had no effect");
}

#[test]
fn call_near_its_deadline_stops_in_time() {
    let sink = Arc::new(Stopping { in_vain: u32::MAX, ..Stopping::default() });
    let limits = |grace| Limits {
        time: Span::from_millis(400),
        stop_grace: Span::from_millis(grace),
        host_calls: u64::MAX,
        ..tight()
    };
    assert_ne!(value(run(&asking(ASKS), &limits(300), &sink).ended), "0", "not from its beginning");
    // Even with a long grace, the call keeps half of its time.
    assert_ne!(value(run(&asking(ASKS), &limits(60_000), &sink).ended), "0");
    failed(run(&asking(ASKS), &limits(0), &sink).ended, FailureCode::OutOfTime);
}

#[test]
fn only_components_that_can_ask_get_a_grace() {
    let limits = Limits { stop_grace: Span::from_millis(700), ..tight() };
    let sink = Arc::new(Stopping::default());
    value(run(&asking(ASKS), &limits, &sink).ended);
    let deaf = guest("(call $ok_number (i64.const 1))");
    assert_eq!(value(run(&deaf, &limits, &sink).ended), "1");
    assert_eq!(*sink.begun.lock().expect("no panic"), [Span::from_millis(700), Span::ZERO]);
}

#[test]
fn call_cancelled_before_it_starts_never_runs() {
    let sink = Arc::new(Stopping { over: true, ..Stopping::default() });
    let end = run(&asking(ASKS), &tight(), &sink);
    assert_eq!((end.spent, sink.asked.load(Ordering::Relaxed)), (None, 0));
    assert!(failed(end.ended, FailureCode::ToolUnavailable).contains("before the tool began"));
}
