//! A call returns a result, a failure that the tool reports, or the failure for its misbehaviour.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use capabilities::Capabilities;
use domain::json::MAX_DEPTH;
use domain::{CatalogLimits, Digest, Limits, Outcome, Span, outcome::FailureCode};
use toolgate_sandbox::{GuestEnd, RunEnd, Sandbox, SandboxSettings, guest_runtime};
use toolgate_tests::wat::{Wat, guest};

use crate::world::{Began, RUNTIME, failed, job, load, outcome, run, tight, value};

/// Returns its arguments.
const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// Never returns.
const SPIN: &str = "(loop $again (br $again)) (unreachable)";

#[test]
fn guest_gets_the_call_and_returns_a_result() {
    let plugin = load(&guest(ECHO));
    let end = RUNTIME.block_on(plugin.run(&job("test", r#"{"a":[1,"ü"]}"#), &Limits::default(), Arc::new(())));
    assert_eq!(value(end.ended), r#"{"a":[1,"ü"]}"#);
    assert!(!end.wrote);
    let spent = end.spent.expect("it ran");
    assert_eq!((spent.peak_memory, spent.host_calls, spent.bytes_in, spent.bytes_out), (2 << 16, 0, 14, 14));
    assert!(spent.time > Duration::ZERO);
}

#[test]
fn every_part_of_the_call_reaches_the_guest() {
    let parts = ["$id", "$tool", "$args", "$key", "$scope"];
    let expected = [r#""call_1""#, r#""tool""#, r#""{}""#, r#""key_1""#, r#""{}""#];
    for (part, expected) in parts.into_iter().zip(expected) {
        // Copies the text between two quotation marks.
        let body = format!(
            "(i32.store8 (i32.const 4096) (i32.const 34))
             (memory.copy (i32.const 4097) (local.get {part}) (local.get {part}_len))
             (i32.store8 (i32.add (i32.const 4097) (local.get {part}_len)) (i32.const 34))
             (call $ok (i32.const 4096) (i32.add (i32.const 2) (local.get {part}_len)))"
        );
        assert_eq!(value(outcome(&guest(&body))), expected, "{part}");
    }
    assert_eq!(value(outcome(&guest("(call $ok_number (i64.extend_i32_u (local.get $attempt)))"))), "1");
}

#[test]
fn guest_state_does_not_survive_a_call() {
    let count = "(i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (i32.const 1)))
                 (call $ok_number (i64.extend_i32_u (i32.load (i32.const 4096))))";
    let plugin = load(&guest(count));
    for _ in 0..100 {
        assert_eq!(value(run(&plugin, &tight()).ended), "1");
    }
}

#[test]
fn tool_reports_its_own_failure() {
    let says = |kind: u32| {
        let body = format!(
            "(i32.store (i32.const 16) (i32.const 1)) (i32.store (i32.const 20) (i32.const {kind}))
             (i32.store (i32.const 24) (i32.const 4096)) (i32.store (i32.const 28) (i32.const 2)) (i32.const 16)"
        );
        outcome(&Wat { body: &body, items: r#"(data (i32.const 4096) "no")"#, ..Wat::default() }.build())
    };
    assert_eq!(failed(says(0), FailureCode::InvalidArguments), "no");
    assert_eq!(failed(says(1), FailureCode::ToolFailed), "no");
    assert_eq!(failed(says(2), FailureCode::ToolUnavailable), "no");
    // An unknown kind of failure is a crash, not a failure that the tool reports.
    assert!(failed(says(3), FailureCode::Trapped).contains("discriminant"));
}

#[test]
fn result_that_is_not_json_is_a_failure() {
    for (text, len) in [("nope", 4), ("1 1", 3), ("", 0)] {
        let items = format!(r#"(data (i32.const 4096) "{text}")"#);
        let body = format!("(call $ok (i32.const 4096) (i32.const {len}))");
        let ended = outcome(&Wat { body: &body, items: &items, ..Wat::default() }.build());
        assert!(failed(ended, FailureCode::InvalidResult).contains("not JSON"), "{text}");
    }
}

#[test]
fn results_have_one_depth_and_no_duplicate_keys() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let twice = "{\\22a\\22:1,\\22a\\22:2}";
    let texts = [(nested(MAX_DEPTH), 2 * MAX_DEPTH, true), (nested(MAX_DEPTH + 1), 2 * MAX_DEPTH + 2, false)];
    for (text, len, accepted) in texts.into_iter().chain([(twice.to_owned(), 13, false)]) {
        let items = format!(r#"(data (i32.const 4096) "{text}")"#);
        let body = format!("(call $ok (i32.const 4096) (i32.const {len}))");
        let ended = outcome(&Wat { body: &body, items: &items, ..Wat::default() }.build());
        if accepted {
            assert!(matches!(ended, RunEnd::Outcome(Outcome::Ok { .. })), "{ended:?}");
        } else {
            failed(ended, FailureCode::InvalidResult);
        }
    }
}

#[test]
fn crash_is_an_outcome_with_a_location() {
    let items = "(func $inner (unreachable)) (func $outer (call $inner))";
    let message = failed(
        outcome(&Wat { body: "(call $outer) (i32.const 0)", items, ..Wat::default() }.build()),
        FailureCode::Trapped,
    );
    assert!(
        message.starts_with("the tool crashed: wasm `unreachable` instruction executed in inner <- outer"),
        "{message}"
    );
}

#[test]
fn wrong_pointers_from_a_guest_are_crashes() {
    for (what, body) in [
        ("a result beyond the memory", "(call $ok (i32.const 131000) (i32.const 1000))"),
        ("a length beyond everything", "(call $ok (i32.const 0) (i32.const -1))"),
        ("an odd return area", "(i32.const 3)"),
        ("a return area beyond the memory", "(i32.const -4)"),
        (
            "bytes that are no text",
            "(i32.store8 (i32.const 4096) (i32.const 255)) (call $ok (i32.const 4096) (i32.const 1))",
        ),
        ("an undefined result", "(i32.store (i32.const 16) (i32.const 7)) (i32.const 16)"),
    ] {
        match outcome(&guest(body)) {
            RunEnd::Outcome(Outcome::Failed(failure)) => {
                let codes = [FailureCode::Trapped, FailureCode::LimitExceeded];
                assert!(codes.contains(&failure.code), "{what}: {failure:?}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn spinning_guest_ends_at_its_deadline() {
    let limits = Limits { time: Span::from_millis(300), ..tight() };
    let end = run(&load(&guest(SPIN)), &limits);
    assert!(failed(end.ended, FailureCode::OutOfTime).contains("300 ms"));
    assert!(end.spent.expect("it ran").time >= Duration::from_millis(300));
}

#[test]
fn calls_run_while_more_guests_spin_than_there_are_threads() {
    let (spin, echo) = (load(&guest(SPIN)), load(&guest(ECHO)));
    let limits = Limits { time: Span::from_secs(600), ..tight() };
    let spinning: Vec<_> = (0..8)
        .map(|_| {
            let spin = spin.clone();
            RUNTIME.spawn(async move { spin.run(&job("test", "{}"), &limits, Arc::new(())).await })
        })
        .collect();
    for _ in 0..3 {
        let echo = echo.clone();
        let answer = RUNTIME.spawn(async move { echo.run(&job("test", "1"), &limits, Arc::new(())).await });
        assert_eq!(value(RUNTIME.block_on(answer).expect("no panic").ended), "1");
    }
    assert!(spinning.iter().all(|spun| !spun.is_finished()), "they spin for ten minutes");
    spinning.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn time_limit_covers_every_place_where_a_guest_waits() {
    let limits = Limits { time: Span::from_millis(100), ..tight() };
    let places = [
        (
            "start",
            Wat { body: ECHO, items: "(func $start (loop $again (br $again))) (start $start)", ..Wat::default() },
        ),
        (
            "post-return",
            Wat {
                body: ECHO,
                items: r#"(func (export "cabi_post_toolgate:plugin/server@0.1.2#run") (param i32) (loop $again (br $again)))"#,
                ..Wat::default()
            },
        ),
    ];
    for (place, wat) in places {
        let end = run(&load(&wat.build()), &limits);
        assert!(
            matches!(&end.ended, RunEnd::Outcome(Outcome::Failed(f)) if f.code == FailureCode::OutOfTime),
            "{place}: {end:?}"
        );
    }
}

#[test]
fn cancelled_call_stops_and_releases_its_permit() {
    let spin = load(&guest(SPIN));
    for _ in 0..200 {
        RUNTIME.block_on(async {
            let limits = tight();
            let spinning = job("test", "{}");
            let call = spin.run(&spinning, &limits, Arc::new(()));
            assert!(tokio::time::timeout(Duration::from_millis(2), call).await.is_err());
        });
    }
    assert_eq!(value(outcome(&guest(ECHO))), "{}");
}

#[test]
fn declarations_are_returned_unchanged() {
    let items = r#"
      (data (i32.const 64) "\80\00\00\00\01\00\00\00")
      (data (i32.const 128) "\00\10\00\00\02\00\00\00" "\02\10\00\00\03\00\00\00" "\05\10\00\00\02\00\00\00"
        "\02\01\01\00" "\07\10\00\00\02\00\00\00")
      (data (i32.const 4096) "hidoc{}{}")"#;
    let plugin = load(&Wat { body: ECHO, items, ..Wat::default() }.build());
    let tools = RUNTIME.block_on(plugin.declarations(&CatalogLimits::default())).expect("a list");
    assert_eq!(tools.len(), 1);
    let tool = &tools[0];
    assert_eq!((tool.name.as_str(), tool.description.as_str()), ("hi", "doc"));
    assert_eq!((tool.parameters.as_str(), tool.options.as_str()), ("{}", "{}"));
    assert_eq!(tool.executor, domain::tool::Executor::Client);
    assert_eq!(tool.approval, domain::tool::Approval::RequiresApproval);
    assert!(tool.streaming);
}

#[test]
fn a_hostile_catalog_is_refused() {
    let declare = |tools: &str| {
        let plugin = load(&Wat { body: ECHO, tools, ..Wat::default() }.build());
        RUNTIME.block_on(plugin.declarations(&CatalogLimits::default())).expect_err("refused").code
    };
    assert_eq!(declare("(loop $again (br $again)) (unreachable)"), FailureCode::OutOfTime);
    assert_eq!(declare("(unreachable)"), FailureCode::Trapped);
    // A hundred million tools at the same address.
    let many =
        "(i32.store (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.const 100000000)) (i32.const 64)";
    assert!(matches!(declare(many), FailureCode::Trapped | FailureCode::LimitExceeded));
}

#[test]
fn calls_beyond_the_pool_wait_for_a_limited_time() {
    waits_for_a_limited_time(SandboxSettings { pool: 1, ..SandboxSettings::default() });
}

#[test]
fn calls_beyond_the_memory_of_all_wait_for_a_limited_time() {
    // The guests have two pages.
    waits_for_a_limited_time(SandboxSettings { pool: 4, guest_memory: 2 << 16, ..SandboxSettings::default() });
}

/// Checks that a call waits for another one that holds all that there is.
fn waits_for_a_limited_time(settings: SandboxSettings) {
    let sandbox = Sandbox::new(settings).expect("a pool");
    let load = |run: &str| {
        let component = guest(run);
        sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads")
    };
    let says_so = format!("(call $log (i32.const 1) (i32.const 4096) (i32.const 1)) {SPIN}");
    let (spin, echo) = (load(&says_so), load(ECHO));
    let hold = |millis| {
        let (spin, (began, has_begun)) = (spin.clone(), mpsc::channel());
        let limits = Limits { time: Span::from_millis(millis), ..tight() };
        let held = async move { spin.run(&job("test", "{}"), &limits, Arc::new(Began(began))).await };
        let held = RUNTIME.spawn(held);
        has_begun.recv().expect("it logs a line as it begins");
        held
    };
    // Only one can run at once, so this call waits for the other one. Without a wait it would end `busy`.
    let held = hold(300);
    assert_eq!(value(run(&echo, &tight()).ended), "{}");
    failed(RUNTIME.block_on(held).expect("no panic").ended, FailureCode::OutOfTime);

    let held = hold(5_000);
    let hasty = Limits { time: Span::from_millis(50), ..tight() };
    failed(run(&echo, &hasty).ended, FailureCode::Busy);
    held.abort();
}

#[test]
fn guest_threads_are_shared_by_plugin() {
    // Counts its host calls until its time is over.
    let body = "(loop $again (call $log (i32.const 0) (i32.const 4096) (i32.const 0)) (br $again)) (unreachable)";
    let plugin = load(&guest(body));
    let limits = Limits { time: Span::from_millis(500), host_calls: u64::MAX, log_bytes: 0, ..tight() };
    let runtime = guest_runtime(1).expect("a thread");
    let call = |name: &'static str| {
        let plugin = plugin.clone();
        runtime.spawn(async move { plugin.run(&job(name, "{}"), &limits, Arc::new(())).await })
    };
    let (many, one): (Vec<_>, _) = ((0..16).map(|_| call("many")).collect(), call("one"));
    let host_calls = |call: tokio::task::JoinHandle<GuestEnd>| {
        let end = runtime.block_on(call).expect("no panic");
        failed(end.ended, FailureCode::OutOfTime);
        end.spent.expect("it ran").host_calls
    };
    let (one, many) = (host_calls(one), many.into_iter().map(host_calls).sum::<u64>());
    // Shared by task, the plugin with sixteen calls would get sixteen times as much.
    assert!(many < 4 * one, "sixteen calls of one plugin made {many} host calls, and one of another {one}");
}
