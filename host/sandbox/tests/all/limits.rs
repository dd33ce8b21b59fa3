//! Every limit has a guest that reaches it, and each has its own message.

use std::sync::Arc;

use capabilities::Capabilities;
use domain::{Digest, Limits, Span, outcome::FailureCode};
use toolgate_sandbox::{Sandbox, SandboxSettings};
use toolgate_tests::binary::with_modules;
use toolgate_tests::wat::{Wat, guest};

use crate::world::{RUNTIME, failed, job, load, outcome, run, tight, value};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// Grows the memory by this many pages and crashes if it may not.
fn grow(pages: u32) -> String {
    format!(
        "(if (i32.eq (memory.grow (i32.const {pages})) (i32.const -1)) (then (unreachable)))
         (call $ok_number (i64.extend_i32_u (memory.size)))"
    )
}

#[test]
fn memory_grows_up_to_its_limit() {
    // The limit is 4 MiB, which is 64 pages. The guest begins with two.
    let end = run(&load(&guest(&grow(62))), &tight());
    assert_eq!(end.spent.expect("it ran").peak_memory, 4 << 20);
    assert_eq!(value(end.ended), "64");
    let message = failed(outcome(&guest(&grow(63))), FailureCode::OutOfMemory);
    assert!(message.contains("4 MiB") && message.contains("`limits.memory_bytes`"), "{message}");
}

#[test]
fn memory_of_all_guests_has_a_budget() {
    let settings = SandboxSettings { pool: 8, guest_memory: 2 << 20, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    let load = |run: &str| {
        let component = guest(run);
        sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads")
    };
    // The budget is 32 pages. The guest begins with two.
    let (fits, too_much) = (load(&grow(30)), load(&grow(31)));
    for _ in 0..3 {
        let message = failed(run(&too_much, &tight()).ended, FailureCode::Busy);
        assert!(message.contains("2 MiB") && message.contains("`guest_memory_bytes`"), "{message}");
        assert_eq!(value(run(&fits, &tight()).ended), "32");
    }
    let many = (0..16).map(|_| {
        let fits = fits.clone();
        RUNTIME.spawn(async move { fits.run(&job("test", "{}"), &tight(), Arc::new(())).await })
    });
    for end in many.collect::<Vec<_>>() {
        assert_eq!(value(RUNTIME.block_on(end).expect("no panic").ended), "32", "each waits for the one before");
    }
}

#[test]
fn guest_that_handles_failed_allocation_succeeds() {
    let tries = "(call $ok_number (i64.extend_i32_u (i32.eq (memory.grow (i32.const 1000)) (i32.const -1))))";
    assert_eq!(value(outcome(&guest(tries))), "1");
}

#[test]
fn impossible_memory_request_fails() {
    // Each of these requests fails for another reason than the limit. Then the guest uses memory that it has.
    let body = "(local $n i32)
      (drop (memory.grow (i32.const 50)))
      (loop $again
        (drop (memory.grow (i32.const 65536)))
        (drop (memory.grow (i32.const 12)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 20))))
      (call $ok_number (i64.extend_i32_u (memory.size)))";
    assert_eq!(value(outcome(&guest(body))), "64");
}

#[test]
fn memories_count_together() {
    let two = with_modules(guest(ECHO), &["(module (memory 30))", "(module (memory 30))"]);
    assert_eq!(value(outcome(&two)), "{}");
    let three = with_modules(guest(ECHO), &["(module (memory 30))", "(module (memory 30))", "(module (memory 30))"]);
    failed(outcome(&three), FailureCode::OutOfMemory);
    let huge = with_modules(guest(ECHO), &["(module (memory 65536))"]);
    failed(outcome(&huge), FailureCode::OutOfMemory);
}

#[test]
fn tables_count_together() {
    let limits = Limits { table_elements: 100, ..tight() };
    let tables = |sizes: &[u32]| {
        let modules: Vec<_> = sizes.iter().map(|size| format!("(module (table {size} funcref))")).collect();
        let modules: Vec<_> = modules.iter().map(String::as_str).collect();
        run(&load(&with_modules(guest(ECHO), &modules)), &limits).ended
    };
    assert_eq!(value(tables(&[40, 40])), "{}");
    assert!(failed(tables(&[60, 60]), FailureCode::LimitExceeded).contains("`limits.table_elements`"));

    let grows = Wat {
        items: "(table $t 10 funcref)",
        body: "(if (i32.eq (table.grow $t (ref.null func) (i32.const 10000000)) (i32.const -1)) (then (unreachable)))
              (i32.const 0)",
        ..Wat::default()
    };
    let grown = run(&load(&grows.build()), &limits).ended;
    assert!(failed(grown, FailureCode::LimitExceeded).contains("`limits.table_elements`"));
}

#[test]
fn instances_are_limited() {
    let modules = ["(module)"; 20];
    let message = failed(outcome(&with_modules(guest(ECHO), &modules)), FailureCode::LimitExceeded);
    assert!(message.contains("16 core instances") && message.contains("`limits.instances`"), "{message}");
}

#[test]
fn the_stack_is_limited() {
    let items = "(func $deep (param i64) (result i64)
      (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))";
    let body = "(call $ok_number (call $deep (i64.const 0)))";
    let message = failed(outcome(&Wat { body, items, ..Wat::default() }.build()), FailureCode::LimitExceeded);
    assert!(message.contains("nested too deeply"), "{message}");
}

#[test]
fn recursion_through_host_calls_hits_the_stack_limit() {
    let items = "(func $deep (call $log (i32.const 0) (i32.const 0) (i32.const 0)) (call $deep))";
    let ended = outcome(&Wat { body: "(call $deep) (i32.const 0)", items, ..Wat::default() }.build());
    assert!(failed(ended, FailureCode::LimitExceeded).contains("nested too deeply"));
}

#[test]
fn sizes_of_arguments_and_results_are_limited() {
    let limits = Limits { arguments: 10, ..tight() };
    let plugin = load(&guest(ECHO));
    let with = |arguments: &str| RUNTIME.block_on(plugin.run(&job("test", arguments), &limits, Arc::new(()))).ended;
    assert_eq!(value(with("1234567890")), "1234567890");
    assert!(failed(with("12345678901"), FailureCode::LimitExceeded).contains("`limits.arguments_bytes`"));

    // 100,000 spaces and a digit: JSON, and beyond the 64 KiB of the result.
    let body =
        "(memory.fill (i32.const 4096) (i32.const 32) (i32.const 100000)) (i32.store8 (i32.const 4096) (i32.const 49))
                (call $ok (i32.const 4096) (i32.const 100000))";
    assert!(failed(outcome(&guest(body)), FailureCode::LimitExceeded).contains("`limits.result_bytes`"));
}

#[test]
fn size_of_one_copy_from_a_guest_is_limited() {
    let limits = Limits { hostcall_bytes: 64 << 10, ..tight() };
    let result = guest("(call $ok (i32.const 0) (i32.const 120000))");
    assert!(failed(run(&load(&result), &limits).ended, FailureCode::LimitExceeded).contains("`limits.hostcall_bytes`"));
    let log = guest("(call $log (i32.const 1) (i32.const 0) (i32.const 120000)) (i32.const 0)");
    assert!(failed(run(&load(&log), &limits).ended, FailureCode::LimitExceeded).contains("`limits.hostcall_bytes`"));
}

#[test]
fn handles_are_limited() {
    let packages = "package wasi:io@0.2.0 { interface poll { resource pollable; } }
      package wasi:clocks@0.2.0 { interface monotonic-clock {
        use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; } }";
    let wat = Wat {
        imports: r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))"#,
        body: "(loop $again (drop (call $wait (i64.const 1000000))) (br $again)) (unreachable)",
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        packages,
        ..Wat::default()
    };
    let message = failed(outcome(&wat.build()), FailureCode::LimitExceeded);
    assert!(message.contains("1024 resource handles"), "{message}");
}

#[test]
fn a_sleeping_guest_ends_at_its_deadline() {
    let packages = r"package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
      package wasi:clocks@0.2.0 { interface monotonic-clock {
        use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; } }";
    let wat = Wat {
        imports: r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $wait (param i64) (result i32)))
          (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#,
        body: "(call $block (call $wait (i64.const 9000000000000000000))) (unreachable)",
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        packages,
        ..Wat::default()
    };
    let limits = Limits { time: Span::from_millis(100), ..tight() };
    let end = run(&load(&wat.build()), &limits);
    failed(end.ended, FailureCode::OutOfTime);
    assert!(end.spent.is_some_and(|spent| spent.time.as_millis() < 1_000), "{:?}", end.spent);
}

#[test]
fn large_bulk_operations_are_stopped_in_time() {
    let body = "(loop $again
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 131072))
      (br $again)) (unreachable)";
    let limits = Limits { time: Span::from_millis(100), ..tight() };
    let end = run(&load(&guest(body)), &limits);
    failed(end.ended, FailureCode::OutOfTime);
    assert!(end.spent.is_some_and(|spent| spent.time.as_millis() < 1_000), "{:?}", end.spent);
}

/// Logs an empty line this many times, and copies memory as often, which is no call of a host function.
fn logging(times: u32) -> Vec<u8> {
    let body = format!(
        "(local $n i32)
         (loop $again
           (call $log (i32.const 1) (i32.const 0) (i32.const 0))
           (memory.copy (i32.const 4096) (i32.const 8192) (i32.const 1024))
           (local.set $n (i32.add (local.get $n) (i32.const 1)))
           (br_if $again (i32.lt_u (local.get $n) (i32.const {times}))))
         {ECHO}"
    );
    guest(&body)
}

#[test]
fn host_calls_are_counted_and_limited() {
    let limits = Limits { host_calls: 10, ..tight() };
    let end = run(&load(&logging(10)), &limits);
    assert_eq!(end.spent.expect("it ran").host_calls, 10);
    assert_eq!(value(end.ended), "{}");
    let end = run(&load(&logging(11)), &limits);
    assert_eq!(end.spent.expect("it has a receipt").host_calls, 10, "the eleventh had no effect");
    assert!(failed(end.ended, FailureCode::LimitExceeded).contains("`limits.host_calls`"));
}

/// A guest that makes the host hold 6,512 bytes: printed output and the handle of the stream.
fn printing() -> Vec<u8> {
    let packages = "package wasi:io@0.2.0 {
        interface error { resource error; }
        interface streams { use error.{error}; variant stream-error { last-operation-failed(error), closed }
          resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; } } }
      package wasi:cli@0.2.0 { interface stdout {
        use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; } }";
    let wat = Wat {
        imports: r#"(import "wasi:cli/stdout@0.2.0" "get-stdout" (func $stdout (result i32)))
          (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
            (func $print (param i32 i32 i32 i32)))"#,
        body: "(local $out i32)
          (local.set $out (call $stdout))
          (call $print (local.get $out) (i32.const 0) (i32.const 3000) (i32.const 32))
          (call $print (local.get $out) (i32.const 0) (i32.const 3000) (i32.const 32))
          (call $ok (local.get $args) (local.get $args_len))",
        world: "import wasi:cli/stdout@0.2.0;",
        packages,
        ..Wat::default()
    };
    wat.build()
}

#[test]
fn printed_output_is_charged_and_limited() {
    let plugin = load(&printing());
    let end = run(&plugin, &Limits { host_bytes: 6512, ..tight() });
    let spent = end.spent.expect("it ran");
    assert_eq!((spent.peak_host_bytes, spent.host_calls, spent.bytes_out), (6512, 3, 6002));
    assert_eq!(value(end.ended), "{}");
    let message = failed(run(&plugin, &Limits { host_bytes: 6511, ..tight() }).ended, FailureCode::LimitExceeded);
    assert!(message.contains("6511 bytes") && message.contains("`limits.host_bytes`"), "{message}");
}

#[test]
fn host_memory_counts_as_memory_of_all_guests() {
    let component = printing();
    let ended = |host_bytes: usize| {
        // The guest has two pages.
        let settings = SandboxSettings { pool: 8, guest_memory: (2 << 16) + host_bytes, ..SandboxSettings::default() };
        let sandbox = Sandbox::new(settings).expect("a pool");
        let plugin = sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads");
        run(&plugin, &tight()).ended
    };
    assert_eq!(value(ended(6512)), "{}");
    assert!(failed(ended(6511), FailureCode::Busy).contains("`guest_memory_bytes`"));
}
