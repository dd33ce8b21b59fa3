//! Buckets are a plugin's own, within their quotas, and only with the grant.

use std::sync::Arc;

use domain::{Digest, Outcome};
use toolgate_sandbox::{Capabilities, Capability, End, Plugin};

use crate::guests::Wat;
use crate::world::{RUNTIME, job, sandbox, tight, value};

/// A guest with the functions of `wasi:keyvalue`. Its `run` begins with `$bucket` opened, whose name is the text at 4096.
fn keeper(bucket: &str, run: &str) -> Plugin {
    let run = format!(
        "(local $bucket i32) (local $cas i32)
         (call $open (i32.const 4096) (i32.const {}) (i32.const 32))
         (if (i32.load8_u (i32.const 32))
           (then (return (call $ok_number (i64.extend_i32_u (i32.add (i32.const 100) (i32.load8_u (i32.const 36))))))))
         (local.set $bucket (i32.load (i32.const 36)))
         {run}",
        bucket.len()
    );
    let items =
        format!(r#"(data (i32.const 4096) "{bucket}") (data (i32.const 5000) "key") (data (i32.const 5010) "12")"#);
    let component = Wat {
        run: &run,
        items: &items,
        imports: r#"
          (import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
          (import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.get" (func $get (param i32 i32 i32 i32)))
          (import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))
          (import "wasi:keyvalue/atomics@0.2.0-draft2" "increment" (func $increment (param i32 i32 i32 i64 i32)))
          (import "wasi:keyvalue/atomics@0.2.0-draft2" "[static]cas.new" (func $cas (param i32 i32 i32 i32)))
          (import "wasi:keyvalue/atomics@0.2.0-draft2" "swap" (func $swap (param i32 i32 i32 i32)))"#,
        world: "import wasi:keyvalue/store@0.2.0-draft2; import wasi:keyvalue/atomics@0.2.0-draft2;",
        ..Wat::default()
    }
    .build();
    sandbox().load(Digest::of(&component), &component, Capabilities::of([Capability::KeyValue])).expect("it loads")
}

fn run(plugin: &Plugin, name: &str) -> End {
    RUNTIME.block_on(plugin.run(&job(name, "{}"), &tight(), Arc::new(())))
}

/// Adds one to a number and returns it.
const COUNT: &str = "(call $increment (local.get $bucket) (i32.const 5000) (i32.const 3) (i64.const 1) (i32.const 32))
  (if (i32.load8_u (i32.const 32)) (then (unreachable)))
  (call $ok_number (i64.load (i32.const 40)))";

/// Returns 1 if there is a value under the key.
const LOOK: &str = "(call $get (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 32))
  (if (i32.load8_u (i32.const 32)) (then (unreachable)))
  (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 36))))";

#[test]
fn what_is_kept_outlasts_the_call_and_is_the_plugins_own() {
    let count = keeper("default", COUNT);
    for expected in ["1", "2", "3"] {
        let end = run(&count, "counter");
        assert_eq!(value(end.outcome), expected);
        assert!(end.wrote_keyvalue);
    }
    // The same component as another plugin, and another bucket of the same plugin.
    assert_eq!(value(run(&count, "counter2").outcome), "1");
    assert_eq!(value(run(&keeper("other", COUNT), "counter").outcome), "1");
    let looked = run(&keeper("default", LOOK), "counter");
    assert_eq!(value(looked.outcome), "1");
    assert!(!looked.wrote_keyvalue, "looking is not writing");
    assert_eq!(value(run(&keeper("default", LOOK), "stranger").outcome), "0");
}

#[test]
fn names_cannot_reach_beyond_the_plugins_own_buckets() {
    for bucket in ["", "../counter", "a/b", "a\\00b", "counter:default", " "] {
        // 100 and the case `no-such-store`.
        assert_eq!(value(run(&keeper(bucket, COUNT), "names").outcome), "100", "{bucket:?}");
    }
}

#[test]
fn quotas_are_errors_that_the_guest_can_read() {
    let set = |key: u32, value: u32| {
        format!(
            "(drop (memory.grow (i32.const 4)))
             (call $set (local.get $bucket) (i32.const 8192) (i32.const {key}) (i32.const 8192) (i32.const {value}) (i32.const 48))
             (call $ok_number (i64.extend_i32_u (i32.add (i32.load8_u (i32.const 48)) (i32.load8_u (i32.const 52)))))"
        )
    };
    // 0 is success; an error of the case `other` is 1 + 2.
    for (key, bytes, expected) in [(1024, 65536, "0"), (1025, 1, "3"), (0, 1, "3"), (1, 65537, "3")] {
        assert_eq!(value(run(&keeper("quota", &set(key, bytes)), "quota").outcome), expected, "{key} {bytes}");
    }
}

#[test]
fn a_swap_that_came_too_late_changes_nothing() {
    let body = "(call $cas (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 32))
      (local.set $cas (i32.load (i32.const 36)))
      (call $set (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 5010) (i32.const 2) (i32.const 32))
      (call $swap (local.get $cas) (i32.const 5010) (i32.const 1) (i32.const 32))
      ;; An error of the case `cas-failed`, which carries a renewed handle; with that one the swap succeeds.
      (if (i32.ne (i32.load8_u (i32.const 32)) (i32.const 1)) (then (unreachable)))
      (if (i32.ne (i32.load8_u (i32.const 36)) (i32.const 1)) (then (unreachable)))
      (call $swap (i32.load (i32.const 40)) (i32.const 5010) (i32.const 1) (i32.const 32))
      (if (i32.load8_u (i32.const 32)) (then (unreachable)))
      (call $increment (local.get $bucket) (i32.const 5000) (i32.const 3) (i64.const 0) (i32.const 32))
      (call $ok_number (i64.load (i32.const 40)))";
    assert_eq!(value(run(&keeper("default", body), "swapper").outcome), "1");
}

#[test]
fn a_catalog_is_read_without_the_capability() {
    // A plugin that crashes unless the store is denied to it while it is asked for its tools.
    let component = Wat {
        run: "(unreachable)",
        imports: r#"(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))"#,
        items: r#"(data (i32.const 4096) "default")"#,
        tools: "(call $open (i32.const 4096) (i32.const 7) (i32.const 32))
          (if (i32.ne (i32.load8_u (i32.const 32)) (i32.const 1)) (then (unreachable)))
          (if (i32.ne (i32.load8_u (i32.const 36)) (i32.const 1)) (then (unreachable)))
          (i32.const 64)",
        world: "import wasi:keyvalue/store@0.2.0-draft2;",
        ..Wat::default()
    }
    .build();
    let plugin =
        sandbox().load(Digest::of(&component), &component, Capabilities::of([Capability::KeyValue])).expect("it loads");
    assert_eq!(RUNTIME.block_on(plugin.declarations()), Ok(vec![]));
    assert!(matches!(run(&plugin, "test").outcome, Outcome::Failed(_)));
}
