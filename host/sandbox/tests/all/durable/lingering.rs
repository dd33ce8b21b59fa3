//! Instances that are kept while their calls wait. Each test compares what they come to with what a new instance comes to, which
//! repeats the code before the wait.

mod dropping;

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use capabilities::journal::{JournalWriter, Recording};
use capabilities::keyvalue::{KeyValueQuota, MemoryBuckets, Service};
use capabilities::{Capability, Grants, Services};
use domain::PluginName;
use domain::journal::{Entry, JournalBounds, JournalSummary, ValueChange};
use toolgate_sandbox::{GuestEnd, LingerCounts};

use super::*;

/// Longer than any test.
const HOUR: Span = Span::from_secs(3_600);

/// The journal of a call in memory.
#[derive(Default)]
struct Recorder(Mutex<Vec<Entry>>);

impl Recorder {
    fn entries(&self) -> Vec<Entry> {
        self.0.lock().expect("no panic").clone()
    }
}

#[wasmtime_wasi::async_trait]
impl JournalWriter for Recorder {
    async fn write(&self, entries: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        self.0.lock().expect("no panic").extend(entries);
        Ok(true)
    }

    fn head(&self) -> Option<JournalSummary> {
        Some(JournalSummary::of(&*self.0.lock().expect("no panic")))
    }
}

/// A call, and what its runs have recorded.
struct Call {
    plugin: Plugin,
    job: Job,
    limits: Limits,
    steps: Vec<Step>,
    entries: Vec<Entry>,
}

impl Call {
    fn new(plugin: &Plugin, linger: Span) -> Self {
        let limits = Limits { linger, ..tight() };
        Self { plugin: plugin.clone(), job: job("test", PROMPT), limits, steps: Vec::new(), entries: Vec::new() }
    }

    /// The same for a plugin of this name, and with a key of its own.
    fn named(self, plugin: &str, key: &str) -> Self {
        let plugin = PluginName::new(plugin).expect("a name");
        Self { job: Job { plugin, idempotency_key: key.into(), ..self.job }, ..self }
    }

    /// The job of the next run, and its journal.
    fn next(&self) -> (Job, Arc<Recorder>) {
        let writer = Arc::new(Recorder(Mutex::new(self.entries.clone())));
        let durable = Durable {
            started_at: STARTED_AT,
            steps: self.steps.as_slice().into(),
            journal: self.entries.as_slice().into(),
            decided: [].into(),
        };
        let recording = Recording { writer: writer.clone(), bounds: JournalBounds::default() };
        (Job { durable: Some(durable), recording: Some(recording), ..self.job.clone() }, writer)
    }

    fn run_with(&mut self, sink: Arc<dyn Sink>) -> GuestEnd {
        let (job, writer) = self.next();
        let end = RUNTIME.block_on(self.plugin.run(&job, &self.limits, sink));
        self.entries = writer.entries();
        end
    }

    fn run(&mut self) -> RunEnd {
        self.run_with(Arc::new(())).ended
    }

    /// Runs until the call waits, and ends the wait.
    fn passes(&mut self, end: StepEnd) -> StepRequest {
        let request = waits(self.run());
        self.ends(&request, end);
        request
    }

    fn ends(&mut self, request: &StepRequest, end: StepEnd) {
        let ended_at = STARTED_AT + Span::from_secs(3_600 * (1 + self.steps.len() as u64));
        self.steps.push(Step { ended_at, ..step(request, end) });
    }
}

/// A sandbox with a pool of this size.
fn sandbox(pool: u32, guest_memory: usize) -> Sandbox {
    Sandbox::new(SandboxSettings { pool, guest_memory, ..SandboxSettings::default() }).expect("a pool")
}

fn loaded(sandbox: &Sandbox, body: &str) -> Plugin {
    let component = component(body);
    sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads")
}

/// The instances that are kept now, and how many were resumed and dropped.
fn counts(sandbox: &Sandbox) -> [u64; 3] {
    let LingerCounts { now, kept, resumed, dropped } = sandbox.lingering();
    assert_eq!(kept, now as u64 + resumed + dropped);
    [now as u64, resumed, dropped]
}

/// Reads the clock often, and asks.
const COSTLY: &str = "(local $left i32)
  (local.set $left (i32.const 1000))
  (loop $again
    (drop (call $now))
    (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
  (call $ask (local.get $args) (local.get $args_len) (i32.const 200))
  (call $answered (i32.const 200))";

#[test]
fn kept_instance_repeats_nothing() {
    let sandbox = sandbox(4, usize::MAX);
    let plugin = loaded(&sandbox, COSTLY);
    let host_calls = |linger| {
        let mut call = Call::new(&plugin, linger);
        call.passes(answered("7"));
        let end = call.run_with(Arc::new(()));
        assert_eq!(value(end.ended), "7");
        end.spent.expect("it ran").host_calls
    };
    assert_eq!((host_calls(Span::ZERO), counts(&sandbox)), (1_001, [0, 0, 0]));
    assert_eq!((host_calls(HOUR), counts(&sandbox)), (0, [0, 1, 0]));
}

/// Uses everything that a run repeats: clocks, random numbers, timers, steps, reports. Its questions and its result follow from
/// all of it.
const OBSERVES_MUCH: &str = "(local $n i64)
  (call $log (i32.const 1) (i32.const 2100) (i32.const 5))
  (call $progress (i32.const 2100) (i32.const 5) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $put (i64.add (call $now) (i64.and (call $random) (i64.const 65535))))
  (call $ask (i32.const 2048) (i32.const 33) (i32.const 200))
  (if (i32.load8_u (i32.const 200)) (then (unreachable)))
  (call $log (i32.const 2) (i32.const 2100) (i32.const 5))
  (call $sleep (i64.const 2))
  (i32.store (i32.const 400) (call $timer (i64.const 9000000000)))
  (call $block (i32.load (i32.const 400)))
  (call $sleep (i64.const 5000))
  (call $progress (i32.const 2100) (i32.const 5) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
  (call $put (i64.add (call $now) (i64.and (call $random) (i64.const 65535))))
  (call $await_external (i32.const 2048) (i32.const 33) (i32.const 200))
  (call $log (i32.const 3) (i32.const 2100) (i32.const 5))
  (call $wall (i32.const 304))
  (call $ok_number (i64.add (i64.add (call $random) (call $now)) (i64.load (i32.const 304))))";

/// The ends of all runs with their reports, and the host calls of the last one.
fn history(plugin: &Plugin, linger: Span) -> (Vec<(String, Vec<String>, usize)>, u64) {
    let (mut call, mut all) = (Call::new(plugin, linger), Vec::new());
    for end in [Some(answered("1")), Some(StepEnd::Elapsed), Some(StepEnd::Elapsed), Some(StepEnd::Expired), None] {
        let heard = Arc::new(Heard::default());
        let GuestEnd { ended, spent, .. } = call.run_with(heard.clone());
        let updates = heard.updates.lock().expect("no panic").len();
        all.push((format!("{ended:?}"), heard.log(), updates));
        match (ended, end) {
            (RunEnd::Waits(request), Some(end)) => call.ends(&request, end),
            (RunEnd::Outcome(Outcome::Ok { .. }), None) => return (all, spent.expect("it ran").host_calls),
            other => panic!("{other:?} after {all:#?}"),
        }
    }
    unreachable!("the last run ends")
}

#[test]
fn kept_instance_comes_to_the_same_as_a_new_one() {
    let settings = SandboxSettings { pool: 4, clock: Arc::new(Still), ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    let plugin = loaded(&sandbox, OBSERVES_MUCH);
    let (repeated, all_calls) = history(&plugin, Span::ZERO);
    assert_eq!(counts(&sandbox), [0, 0, 0]);
    let (kept, last_calls) = history(&plugin, HOUR);
    assert_eq!((&kept, counts(&sandbox)), (&repeated, [0, 4, 0]));
    assert!(last_calls < all_calls);
}

/// Asks the guest to stop at its check of this number.
struct StopsAt(AtomicUsize);

impl Sink for StopsAt {
    fn stop_requested(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 1
    }

    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {}
}

/// Asks, checks until it should stop, writes a value, and returns the number of checks in vain.
const STOPS_LATER: &str = "(local $in_vain i64)
  (call $ask (local.get $args) (local.get $args_len) (i32.const 200))
  (block $stop
    (loop $again
      (br_if $stop (call $stop_requested))
      (local.set $in_vain (i64.add (local.get $in_vain) (i64.const 1)))
      (br $again)))
  (call $open (i32.const 4096) (i32.const 7) (i32.const 240))
  (if (i32.load8_u (i32.const 240)) (then (unreachable)))
  (call $set (i32.load (i32.const 244)) (i32.const 4096) (i32.const 7) (i32.const 4096) (i32.const 1) (i32.const 256))
  (if (i32.load8_u (i32.const 256)) (then (unreachable)))
  (call $ok_number (local.get $in_vain))";

/// A sandbox with key-value data.
fn with_data() -> Sandbox {
    let services = Services { keyvalue: Service::over(Arc::<MemoryBuckets>::default()), ..Services::default() };
    Sandbox::new(SandboxSettings { pool: 4, services, ..SandboxSettings::default() }).expect("a pool")
}

/// A call of a plugin that can write key-value data.
fn writing(sandbox: &Sandbox, body: &str, linger: Span) -> Call {
    let imports = format!(
        r#"{IMPORTS}
        (import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
        (import "wasi:keyvalue/store@0.2.0-draft2" "[method]bucket.set" (func $set (param i32 i32 i32 i32 i32 i32)))"#
    );
    let items = format!(r#"{ITEMS} (data (i32.const 4096) "default")"#);
    let world = format!("{WORLD} import wasi:keyvalue/store@0.2.0-draft2;");
    let component = Wat { body, imports: &imports, items: &items, world: &world, ..Wat::default() }.build();
    let granted = Capabilities::of([Capability::KeyValue]);
    let mut call = Call::new(&sandbox.load(Digest::of(&component), &component, granted).expect("it loads"), linger);
    call.job.grants = Arc::new(Grants { keyvalue: Some(KeyValueQuota::default()), ..Grants::default() });
    call
}

#[test]
fn run_after_a_kill_repeats_what_a_kept_instance_did() {
    let sandbox = with_data();
    let mut call = writing(&sandbox, STOPS_LATER, HOUR);
    call.passes(answered("1"));
    assert_eq!(value(call.run_with(Arc::new(StopsAt(AtomicUsize::new(3)))).ended), "2");
    assert_eq!(counts(&sandbox), [0, 1, 0]);
    // The value was written, so the stop is on disk. The outcome is not, and nothing asks the next run to stop.
    let recorded = call.entries.clone();
    assert!(recorded.len() >= 2, "{recorded:?}");
    assert_eq!((value(call.run()).as_str(), &call.entries), ("2", &recorded));
}

#[test]
fn each_run_of_a_kept_instance_has_a_whole_log() {
    let sandbox = sandbox(4, usize::MAX);
    let lines = "(local $left i32) (local.set $left (i32.const 9))
      (loop $again
        (call $log (i32.const 1) (i32.const 2100) (i32.const 5))
        (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))";
    let plugin =
        loaded(&sandbox, &format!("{lines} {ASK} drop {}", ASK.replace("(local.get $args_len)", "(i32.const 0)")));
    let mut call = Call::new(&plugin, HOUR);
    // Six of the lines fit into the limit.
    call.limits.log_bytes = 48;
    let heard = Arc::new(Heard::default());
    let request = waits(call.run_with(heard.clone()).ended);
    let note = |line: &String| line.contains("dropped");
    assert_eq!(heard.log().iter().filter(|line| note(line)).count(), 1, "{:?}", heard.log());
    call.ends(&request, answered("1"));
    let heard = Arc::new(Heard::default());
    failed(call.run_with(heard.clone()).ended, FailureCode::ToolFailed);
    assert!(!heard.log().iter().any(note), "{:?}", heard.log());
    assert_eq!(counts(&sandbox), [0, 1, 0]);
}

/// Writes a byte, asks, and writes two more. Returns whether the last write was refused.
const WRITES_ON: &str = "
  (call $open (i32.const 4096) (i32.const 7) (i32.const 240))
  (call $set (i32.load (i32.const 244)) (i32.const 4096) (i32.const 7) (i32.const 4096) (i32.const 1) (i32.const 256))
  (call $ask (local.get $args) (local.get $args_len) (i32.const 200))
  (call $set (i32.load (i32.const 244)) (i32.const 4096) (i32.const 7) (i32.const 4096) (i32.const 1) (i32.const 256))
  (if (i32.load8_u (i32.const 256)) (then (unreachable)))
  (call $set (i32.load (i32.const 244)) (i32.const 4096) (i32.const 7) (i32.const 4096) (i32.const 1) (i32.const 256))
  (call $ok_number (i64.load8_u (i32.const 256)))";

#[test]
fn kept_instance_may_write_no_more_than_its_call() {
    for linger in [Span::ZERO, HOUR] {
        let sandbox = with_data();
        let mut call = writing(&sandbox, WRITES_ON, linger);
        // A write has 143 bytes.
        call.limits.keyvalue_written = 400;
        call.passes(answered("1"));
        assert_eq!(value(call.run()), "1");
        assert_eq!(counts(&sandbox)[1], u64::from(linger == HOUR));
    }
}
