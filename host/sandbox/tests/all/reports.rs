//! The reports of a running guest, and its clocks and randomness.

use std::sync::Arc;
use std::time::Duration;

use capabilities::Capabilities;
use domain::{Digest, Limits, outcome::FailureCode};
use toolgate_sandbox::{GuestClock, Job, Random, RunEnd, Sandbox, SandboxSettings};
use toolgate_tests::wat::{Wat, guest};

use crate::world::{Heard, RUNTIME, failed, job, load, outcome, tight, value};

fn hear(component: &[u8], limits: &Limits, job: &Job) -> (RunEnd, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let end = RUNTIME.block_on(load(component).run(job, limits, heard.clone()));
    (end.ended, heard)
}

fn times(count: u32, what: &str) -> String {
    format!(
        "(local $n i32) (loop $again {what}
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $n) (i32.const {count}))))
         (call $ok (i32.const 5000) (i32.const 1))"
    )
}

const TEXT: &str =
    r#"(data (i32.const 4096) "0123456789") (data (i32.const 5000) "1") (data (i32.const 5010) "{\"a\":1}")"#;

/// A line costs its bytes and one for its end. A quarter of the limit is for the last lines, each from its beginning.
#[test]
fn a_log_keeps_its_first_and_last_lines_and_counts_the_rest() {
    let body = times(100, "(call $log (i32.const 2) (i32.const 4096) (i32.const 10))");
    let component = Wat { body: &body, items: TEXT, ..Wat::default() }.build();
    let limits = Limits { log_bytes: 25, ..tight() };
    let (ended, heard) = hear(&component, &limits, &job("test", "{}"));
    assert_eq!(value(ended), "1");
    let expected = [
        "warn: 0123456789",
        "warn: 01234567",
        "warn: dropped 1075 bytes of this log; the limit `limits.log_bytes` is 25 bytes. The last lines follow",
        "warn: 01234",
    ];
    assert_eq!(heard.log(), expected);
}

#[test]
fn progress_is_bounded_and_only_for_tools_that_stream() {
    let update = "(call $progress (i32.const 4096) (i32.const 10) (i32.const 1) (f64.const 0.5) (i32.const 1)
      (i32.const 5010) (i32.const 7))";
    let component = Wat { body: &times(100, update), items: TEXT, ..Wat::default() }.build();
    let limits = Limits { progress_updates: 3, ..tight() };
    let (ended, heard) = hear(&component, &limits, &job("test", "{}"));
    assert_eq!(value(ended), "1");
    let updates = heard.updates.lock().expect("no panic").clone();
    assert_eq!(updates.len(), 3);
    assert_eq!((updates[0].message.as_str(), updates[0].fraction), ("0123456789", Some(0.5)));
    assert_eq!(updates[0].data.as_ref().map(domain::Json::as_str), Some(r#"{"a":1}"#));
    assert!(heard.log()[0].starts_with("warn: 97 progress updates were dropped"), "{:?}", heard.log());

    let limits = Limits { progress_bytes: 35, ..tight() };
    let (_, heard) = hear(&component, &limits, &job("test", "{}"));
    assert_eq!(heard.updates.lock().expect("no panic").len(), 2);

    let (ended, heard) = hear(&component, &tight(), &Job { streaming: false, ..job("test", "{}") });
    assert_eq!(value(ended), "1");
    assert!(heard.updates.lock().expect("no panic").is_empty());
    assert!(heard.log()[0].contains("not declared `streaming`"), "{:?}", heard.log());
}

#[test]
fn wrong_progress_fraction_or_data_is_dropped() {
    let with = |fraction: &str, data: (u32, u32)| {
        let body = format!(
            "(call $progress (i32.const 4096) (i32.const 2) (i32.const 1) (f64.const {fraction}) (i32.const 1)
               (i32.const {}) (i32.const {})) (call $ok (i32.const 5000) (i32.const 1))",
            data.0, data.1
        );
        let (_, heard) =
            hear(&Wat { body: &body, items: TEXT, ..Wat::default() }.build(), &tight(), &job("test", "{}"));
        let updates = heard.updates.lock().expect("no panic");
        updates.first().map(|update| update.fraction)
    };
    assert_eq!(with("1", (5010, 7)), Some(Some(1.0)));
    for fraction in ["nan", "1.5", "-0.1", "inf"] {
        assert_eq!(with(fraction, (5010, 7)), Some(None), "{fraction}");
    }
    assert_eq!(with("0.5", (5010, 3)), None);
}

pub(crate) const PRINTING: &str = r"
  package wasi:io@0.2.0 {
    interface error { resource error; }
    interface streams {
      use error.{error};
      variant stream-error { last-operation-failed(error), closed }
      resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
    }
  }
  package wasi:cli@0.2.0 {
    interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
    interface stderr { use wasi:io/streams@0.2.0.{output-stream}; get-stderr: func() -> output-stream; }
  }";

fn printing(run: &str) -> Vec<u8> {
    Wat {
        body: run,
        items: r#"(data (i32.const 4096) "one\ntwo\r\nthree") (data (i32.const 5000) "1")"#,
        imports: r#"(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
          (import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
          (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
            (func $write (param i32 i32 i32 i32)))"#,
        world: "import wasi:cli/stdout@0.2.0; import wasi:cli/stderr@0.2.0;",
        packages: PRINTING,
        ..Wat::default()
    }
    .build()
}

#[test]
fn printed_output_is_in_the_log() {
    let component = printing(
        "(call $write (call $stdout) (i32.const 4096) (i32.const 14) (i32.const 32))
         (call $write (call $stderr) (i32.const 4096) (i32.const 4) (i32.const 32))
         (call $ok (i32.const 5000) (i32.const 1))",
    );
    let (ended, heard) = hear(&component, &tight(), &job("test", "{}"));
    assert_eq!(value(ended), "1");
    assert_eq!(heard.log(), ["info: one", "info: two", "warn: one", "info: three"]);
}

#[test]
fn excess_output_is_dropped_without_a_broken_pipe() {
    let body = format!(
        "(local $out i32) (local.set $out (call $stdout)) {}",
        times(
            3000,
            "(call $write (local.get $out) (i32.const 8192) (i32.const 4096) (i32.const 32))
             (if (i32.load8_u (i32.const 32)) (then (unreachable)))"
        )
        .replace("(local $n i32)", "")
    );
    let body = format!("(local $n i32) {body}");
    let (ended, heard) = hear(&printing(&body), &tight(), &job("test", "{}"));
    assert_eq!(value(ended), "1");
    let log = heard.log();
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].len(), "info: ".len() + (48 << 10));
    let dropped = 3000 * 4096 - (48 << 10);
    assert!(log[1].starts_with(&format!("warn: dropped {dropped} bytes of this log")), "{}", log[1]);
}

#[test]
fn crash_includes_the_last_output() {
    let component =
        printing("(call $write (call $stderr) (i32.const 4096) (i32.const 8) (i32.const 32)) (unreachable)");
    let message = failed(hear(&component, &tight(), &job("test", "{}")).0, FailureCode::Trapped);
    assert!(message.ends_with("it said: one two"), "{message}");
}

const CLOCKS: &str = "
  package wasi:random@0.2.0 { interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; } }
  package wasi:clocks@0.2.0 {
    interface monotonic-clock { now: func() -> u64; }
    interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
  }";

fn worldly(run: &str) -> Vec<u8> {
    Wat {
        body: run,
        imports: r#"(import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
          (import "wasi:random/random@0.2.0" "get-random-bytes" (func $bytes (param i64 i32)))
          (import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))
          (import "wasi:clocks/wall-clock@0.2.0" "now" (func $date (param i32)))"#,
        world: "import wasi:random/random@0.2.0; import wasi:clocks/monotonic-clock@0.2.0; import wasi:clocks/wall-clock@0.2.0;",
        packages: CLOCKS,
        ..Wat::default()
    }
    .build()
}

#[test]
fn clocks_run_and_randomness_is_random() {
    let number = |run: &str| value(outcome(&worldly(run))).parse::<u64>().expect("a number");
    let random = "(call $ok_number (call $random))";
    assert_ne!(number(random), number(random));
    let seconds = number("(call $date (i32.const 32)) (call $ok_number (i64.load (i32.const 32)))");
    assert!(seconds > 1_700_000_000, "{seconds}");
    let passed = "(local $from i64) (local.set $from (call $now))
      (loop $again (br_if $again (i64.lt_u (i64.sub (call $now) (local.get $from)) (i64.const 5000000))))
      (call $ok_number (i64.sub (call $now) (local.get $from)))";
    assert!(number(passed) >= 5_000_000);
    let asks_too_much = "(call $bytes (i64.const 4611686018427387904) (i32.const 32)) (unreachable)";
    assert!(failed(outcome(&worldly(asks_too_much)), FailureCode::LimitExceeded).contains("random bytes"));
}

struct Fixed;

impl GuestClock for Fixed {
    fn wall(&self) -> Duration {
        Duration::from_secs(42)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(7)
    }
}

impl Random for Fixed {
    fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()> {
        buffer.fill(1);
        Ok(())
    }
}

#[test]
fn host_can_replace_clocks_and_randomness() {
    let settings =
        SandboxSettings { pool: 2, clock: Arc::new(Fixed), random: Arc::new(Fixed), ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    for (run, expected) in [
        ("(call $ok_number (call $random))", "72340172838076673"),
        ("(call $ok_number (call $now))", "7"),
        ("(call $date (i32.const 32)) (call $ok_number (i64.load (i32.const 32)))", "42"),
    ] {
        let component = worldly(run);
        let plugin = sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads");
        assert_eq!(value(crate::world::run(&plugin, &tight()).ended), expected);
    }
}

struct Panics;

impl toolgate_sandbox::Sink for Panics {
    fn progress(&self, _: toolgate_sandbox::Update) {}

    fn log(&self, _: domain::call::Level, _: &str) {
        panic!("the host's own mistake");
    }
}

#[test]
fn panic_of_the_host_is_an_outcome() {
    let plugin = load(&guest("(call $log (i32.const 1) (i32.const 0) (i32.const 1)) (call $ok_number (i64.const 1))"));
    let end = RUNTIME.block_on(plugin.run(&job("test", "{}"), &tight(), Arc::new(Panics)));
    let message = failed(end.ended, FailureCode::HostFault);
    assert!(!message.contains("mistake"), "{message}");
}
