//! A durable call that should stop. A run after a kill sees this at the same check as the run before it.

use domain::journal::{Entry, Record};

use super::*;
use crate::world::nowhere;

/// Checks until it should stop, asks a question without waiting for its answer, and returns the number of checks before.
const CHECKS: &str = "(local $in_vain i64)
  (block $stop
    (loop $again
      (br_if $stop (call $stop_requested))
      (local.set $in_vain (i64.add (local.get $in_vain) (i64.const 1)))
      (br $again)))
  (call $ask (local.get $args) (local.get $args_len) (i32.const 200))
  (if (i32.ne (i32.load8_u (i32.const 204)) (i32.const 2)) (then (unreachable)))
  (call $ok_number (local.get $in_vain))";

/// A job after a run that saw the stop at its check of this number.
fn stopped_at(check: u64) -> Job {
    let parts: [&[u8]; 3] = [b"toolgate journal", b"toolgate:plugin/host.stop-requested", &check.to_be_bytes()];
    let record = Record::Result("true".into());
    let digest = Digest::of_parts(&parts);
    let entry = Entry {
        number: 0,
        step: 0,
        run: None,
        function: None,
        digest,
        at: STARTED_AT,
        salt: None,
        transferred: None,
        record,
    };
    Job {
        durable: Some(Durable {
            started_at: STARTED_AT,
            steps: [].into(),
            journal: [entry].into(),
            decided: [].into(),
        }),
        recording: Some(nowhere()),
        ..job("test", PROMPT)
    }
}

#[test]
fn later_run_stops_at_the_same_check_and_waits_no_more() {
    let plugin = load(&component(CHECKS));
    for check in [1, 3] {
        assert_eq!(value(run(&plugin, &stopped_at(check)).0), (check - 1).to_string());
    }
    let once = load(&component("(drop (call $stop_requested)) (call $ok_number (i64.const 1))"));
    let (ended, log) = run(&once, &stopped_at(2));
    assert_eq!(ended, RunEnd::Outcome(Outcome::InDoubt));
    assert!(log[0].ends_with("it ends before entry 0 of its journal"), "{log:?}");
}
