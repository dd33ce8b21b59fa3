//! A plugin has its own buckets, within its quota, and only with the grant.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capabilities::keyvalue::{BucketError, Buckets, EntryKey, KeyValueQuota, MemoryBuckets, Service, Swapped};
use capabilities::{Capabilities, Capability, Grants, Services};
use domain::{CatalogLimits, Digest, Limits, Outcome, PluginName, Span, outcome::FailureCode};
use toolgate_sandbox::{GuestClock, GuestEnd, Job, Plugin, RunEnd, Sandbox, SandboxSettings, guest_runtime};
use toolgate_tests::wat::{Wat, guest};

use crate::world::{RUNTIME, failed, job, load, sandbox, tight, value};

/// A guest with the functions of `wasi:keyvalue`. Its `run` begins with `$bucket` opened, whose name is the text at
/// 4096.
fn keeper(bucket: &str, run: &str) -> Plugin {
    let component = keeping(bucket, run);
    sandbox().load(Digest::of(&component), &component, Capabilities::of([Capability::KeyValue])).expect("it loads")
}

fn keeping(bucket: &str, run: &str) -> Vec<u8> {
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
    Wat {
        body: &run,
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
    .build()
}

fn run(plugin: &Plugin, name: &str) -> GuestEnd {
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
fn key_value_data_outlasts_the_call_and_belongs_to_its_plugin() {
    let count = keeper("default", COUNT);
    for expected in ["1", "2", "3"] {
        let end = run(&count, "counter");
        assert_eq!(value(end.ended), expected);
        assert!(end.wrote);
    }
    // The same component as another plugin, and another bucket of the same plugin.
    assert_eq!(value(run(&count, "counter2").ended), "1");
    assert_eq!(value(run(&keeper("other", COUNT), "counter").ended), "1");
    let looked = run(&keeper("default", LOOK), "counter");
    assert_eq!(value(looked.ended), "1");
    assert!(!looked.wrote, "reading is not writing");
    assert_eq!(value(run(&keeper("default", LOOK), "stranger").ended), "0");
}

#[test]
fn names_reach_only_the_plugins_own_buckets() {
    for bucket in ["", "../counter", "a/b", "a\\00b", "counter:default", " "] {
        // 100 and the case `no-such-store`.
        assert_eq!(value(run(&keeper(bucket, COUNT), "names").ended), "100", "{bucket:?}");
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
    // 0 is success. An error of the case `other` is 1 + 2.
    for (key, bytes, expected) in [(1024, 65536, "0"), (1025, 1, "3"), (0, 1, "3"), (1, 65537, "3")] {
        assert_eq!(value(run(&keeper("quota", &set(key, bytes)), "quota").ended), expected, "{key} {bytes}");
    }
}

#[test]
fn late_swap_changes_nothing() {
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
    assert_eq!(value(run(&keeper("default", body), "swapper").ended), "1");
}

#[test]
fn catalog_is_read_without_the_capability() {
    // A plugin that crashes if it can use the store while it returns its catalog.
    let component = Wat {
        body: "(unreachable)",
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
    assert_eq!(RUNTIME.block_on(plugin.declarations(&CatalogLimits::default())), Ok(vec![]));
    assert!(matches!(run(&plugin, "test").ended, RunEnd::Outcome(Outcome::Failed(_))));
}

#[test]
fn plugin_stores_data_up_to_its_quota() {
    // Sets a value under a key of one byte. The arguments are its size as a digit.
    let set = "(call $set (local.get $bucket) (i32.const 5000) (i32.const 1) (i32.const 5010)
        (i32.sub (i32.load8_u (local.get $args)) (i32.const 48)) (i32.const 48))
      (call $ok_number (i64.extend_i32_u (i32.add (i32.load8_u (i32.const 48)) (i32.load8_u (i32.const 52)))))";
    let plugin = keeper("b", set);
    let set = |size: &str| {
        let grants = Grants { keyvalue: Some(KeyValueQuota { bytes: 6, keys: 1 }), ..Grants::default() };
        let job = Job { grants: Arc::new(grants), ..job("thrifty", size) };
        value(RUNTIME.block_on(plugin.run(&job, &tight(), Arc::new(()))).ended)
    };
    // The bucket's name and the key have one byte each. An error of the case `other` is 1 + 2.
    assert_eq!((set("5").as_str(), set("4").as_str(), set("5").as_str()), ("3", "0", "3"));
    let counted = Job {
        grants: Arc::new(Grants { keyvalue: Some(KeyValueQuota { bytes: 4, keys: 9 }), ..Grants::default() }),
        ..job("thrifty2", "{}")
    };
    let end = RUNTIME.block_on(keeper("b", COUNT).run(&counted, &tight(), Arc::new(())));
    failed(end.ended, FailureCode::Trapped);
}

/// Overwrites one value of 60,000 bytes until that fails, and returns how often it succeeded.
const OVERWRITE: &str = "(drop (memory.grow (i32.const 2)))
  (loop $again
    (call $set (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 8192) (i32.const 60000) (i32.const 48))
    (if (i32.load8_u (i32.const 48)) (then (return (call $ok_number (i64.load (i32.const 200))))))
    (i64.store (i32.const 200) (i64.add (i64.load (i32.const 200)) (i64.const 1)))
    (br $again)) (unreachable)";

/// A clock that the test moves.
#[derive(Default)]
struct Hand(AtomicU64);

impl GuestClock for Hand {
    fn wall(&self) -> Duration {
        self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[test]
fn overwritten_data_is_limited_per_call_and_per_second() {
    let (clock, keyvalue) = (Arc::<Hand>::default(), Service::over(Arc::<MemoryBuckets>::default()));
    let services = Services { keyvalue, ..Services::default() };
    let settings = SandboxSettings { pool: 4, services, clock: clock.clone(), ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    let component = keeping("default", OVERWRITE);
    let granted = Capabilities::of([Capability::KeyValue]);
    let plugin = sandbox.load(Digest::of(&component), &component, granted).expect("it loads");
    // The names, the value, and what a write counts besides.
    let write = "default".len() + "key".len() + 60_000 + 128;
    let limits = Limits { keyvalue_written: 17 * write, keyvalue_rate: write, ..tight() };
    let writes = |name| value(RUNTIME.block_on(plugin.run(&job(name, "{}"), &limits, Arc::new(()))).ended);
    assert_eq!(writes("one"), "17", "the limit of a call");
    assert_eq!(writes("one"), "0", "the rate of the plugin");
    assert_eq!(writes("two"), "17", "another plugin has its own");
    clock.0.store(3, Ordering::Relaxed);
    assert_eq!(writes("one"), "3");
    clock.0.store(1_000, Ordering::Relaxed);
    assert_eq!(writes("one"), "17");
}

/// Starts endless compare-and-swaps, and keeps every handle.
const HOARD: &str = "(loop $again
    (call $cas (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 32))
    (if (i32.load8_u (i32.const 32)) (then (unreachable)))
    (br $again)) (unreachable)";

#[test]
fn handles_are_charged_to_the_calls_host_memory() {
    let fill = "(drop (memory.grow (i32.const 2)))
      (call $set (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 8192) (i32.const 60000) (i32.const 32))
      (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 32))))";
    let end = run(&keeper("default", fill), "hoarder");
    assert!(end.spent.is_some_and(|spent| spent.bytes_out >= 60_003), "{:?}", end.spent);
    assert_eq!(value(end.ended), "0");
    let limits = Limits { host_bytes: 1 << 20, ..tight() };
    let end = RUNTIME.block_on(keeper("default", HOARD).run(&job("hoarder", "{}"), &limits, Arc::new(())));
    let spent = end.spent.expect("it ran");
    // The bucket, seventeen handles with their values, and the one beyond the limit.
    assert_eq!(spent.host_calls, 1 + 18);
    assert!(spent.peak_host_bytes > 17 * 60_000 && spent.peak_host_bytes <= 1 << 20, "{spent:?}");
    assert!(failed(end.ended, FailureCode::LimitExceeded).contains("`limits.host_bytes`"));
}

/// Buckets on a disk that hangs until the test releases it.
struct Stuck {
    asked: Mutex<Sender<()>>,
    answer: Mutex<Receiver<()>>,
}

impl Buckets for Stuck {
    fn get(&self, _place: EntryKey<'_>) -> Result<Option<Vec<u8>>, BucketError> {
        self.asked.lock().expect("no panic").send(()).expect("the test waits");
        // An error means that the test has ended, so the disk answers.
        let _ = self.answer.lock().expect("no panic").recv();
        Ok(None)
    }

    fn set(&self, place: EntryKey<'_>, _value: &[u8], _quota: KeyValueQuota) -> Result<(), BucketError> {
        self.get(place).map(drop)
    }

    fn delete(&self, _place: EntryKey<'_>) -> Result<(), BucketError> {
        Ok(())
    }

    fn list(&self, _: &PluginName, _: &str, _: Option<&str>, _: usize) -> Result<Vec<String>, BucketError> {
        Ok(vec![])
    }

    fn compare_and_swap(
        &self,
        _: EntryKey<'_>,
        _: Option<&[u8]>,
        _: &[u8],
        _: KeyValueQuota,
    ) -> Result<Swapped, BucketError> {
        Ok(Swapped::Done)
    }
}

#[test]
fn stuck_disk_ends_only_the_call_that_waits() {
    let ((asked, is_asked), (release, answer)) = (mpsc::channel(), mpsc::channel());
    let stuck = Stuck { asked: Mutex::new(asked), answer: Mutex::new(answer) };
    let services = Services { keyvalue: Service::over(Arc::new(stuck)), ..Services::default() };
    let settings = SandboxSettings { pool: 4, services, ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    let component = keeping(
        "default",
        "(call $set (local.get $bucket) (i32.const 5000) (i32.const 3) (i32.const 5010) (i32.const 2) (i32.const 32)) (unreachable)",
    );
    let granted = Capabilities::of([Capability::KeyValue]);
    let waits = sandbox.load(Digest::of(&component), &component, granted).expect("it loads");
    let neighbour = load(&guest("(call $ok (local.get $args) (local.get $args_len))"));

    // All guests share one thread, so a blocked thread would block the neighbour.
    let runtime = guest_runtime(1).expect("a thread");
    let limits = Limits { host_call_time: Span::from_millis(400), ..tight() };
    let waiting = runtime.spawn(async move { waits.run(&job("test", "{}"), &limits, Arc::new(())).await });
    is_asked.recv().expect("it asks");
    let served = runtime.spawn(async move { neighbour.run(&job("test", "1"), &tight(), Arc::new(())).await });
    assert_eq!(value(runtime.block_on(served).expect("no panic").ended), "1");
    assert!(!waiting.is_finished(), "the neighbour did not wait for the disk");
    let end = runtime.block_on(waiting).expect("no panic");
    assert!(end.wrote, "its write may still happen");
    let message = failed(end.ended, FailureCode::LimitExceeded);
    assert!(message.contains("400 ms") && message.contains("`limits.host_call_ms`"), "{message}");
    release.send(()).expect("the disk still waits");
}
