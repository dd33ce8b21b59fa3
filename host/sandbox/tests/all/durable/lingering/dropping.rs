//! Instances that are dropped. Then the next run repeats the code before the wait, and comes to the same.

use domain::journal::Record;
use futures::future::BoxFuture;

use super::*;

#[test]
fn instance_is_dropped_after_its_time() {
    let sandbox = sandbox(4, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, ASK), Span::from_millis(1));
    call.passes(answered("7"));
    while sandbox.lingering().dropped == 0 {
        std::thread::yield_now();
    }
    assert_eq!((value(call.run()).as_str(), counts(&sandbox)), ("7", [0, 0, 1]));
}

#[test]
fn nothing_is_kept_for_a_longer_sleep() {
    let sandbox = sandbox(4, usize::MAX);
    let plugin = loaded(&sandbox, "(call $sleep (i64.const 60000)) (call $ok_number (i64.const 7))");
    for (linger, expected) in [(Span::from_secs(30), [0, 0, 0]), (HOUR, [0, 1, 0])] {
        let mut call = Call::new(&plugin, linger);
        call.passes(StepEnd::Elapsed);
        assert_eq!((value(call.run()).as_str(), counts(&sandbox)), ("7", expected));
    }
}

#[test]
fn run_reserves_as_much_as_in_a_new_instance() {
    let sandbox = sandbox(100, 16 << 20);
    // It grows by three MiB if the question is long.
    let body =
        format!("(drop (memory.grow (i32.mul (i32.gt_u (local.get $args_len) (i32.const 32)) (i32.const 50)))) {ASK}");
    let plugin = loaded(&sandbox, &body);
    let mut call = Call::new(&plugin, HOUR);
    call.passes(answered("7"));
    let mut large = Call::new(&plugin, Span::ZERO).named("test", "large");
    large.job.arguments = Json::unchecked(r#"{"prompt":"Is this question longer than the other one?"}"#);
    large.passes(answered("7"));
    // It takes all but two MiB.
    let held = spins(&sandbox);
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    let (job, _) = call.next();
    let mut next = Box::pin(call.plugin.run(&job, &call.limits, Arc::new(())));
    RUNTIME.block_on(async {
        assert!(next.as_mut().now_or_never().is_none(), "it waits for room");
        assert_eq!(counts(&sandbox), [0, 0, 1]);
        held.abort();
        assert_eq!(value(next.await.ended), "7");
    });
}

/// A guest that runs until it is aborted. It has begun.
fn spins(sandbox: &Sandbox) -> tokio::task::JoinHandle<GuestEnd> {
    let spins = loaded(
        sandbox,
        "(call $log (i32.const 1) (i32.const 2100) (i32.const 5)) (loop $again (br $again)) (unreachable)",
    );
    let (began, has_begun) = mpsc::channel();
    let long = Limits { time: HOUR, ..tight() };
    let held = RUNTIME.spawn(async move { spins.run(&job("spins", "{}"), &long, Arc::new(Began(began))).await });
    has_begun.recv().expect("it logs a line as it begins");
    held
}

#[test]
fn at_most_half_of_the_pool_is_kept() {
    let sandbox = sandbox(4, usize::MAX);
    let plugin = loaded(&sandbox, ASK);
    let mut calls: Vec<_> = ["1", "2", "3"].iter().map(|key| Call::new(&plugin, HOUR).named("test", key)).collect();
    calls.iter_mut().for_each(|call| drop(call.passes(answered("7"))));
    assert_eq!(counts(&sandbox), [2, 0, 1]);
    // The oldest one repeats its code.
    for (call, resumed) in calls.iter_mut().zip([0, 1, 2]) {
        assert_eq!((value(call.run()).as_str(), counts(&sandbox)[1]), ("7", resumed));
    }
}

#[test]
fn plugin_that_keeps_much_pushes_out_only_its_own() {
    let sandbox = sandbox(8, usize::MAX);
    let plugin = loaded(&sandbox, ASK);
    let mut neighbour = Call::new(&plugin, HOUR).named("neighbour", "n");
    neighbour.passes(answered("7"));
    for key in 0..20 {
        Call::new(&plugin, HOUR).named("greedy", &key.to_string()).passes(answered("7"));
    }
    assert_eq!(counts(&sandbox), [4, 0, 17]);
    assert_eq!((value(neighbour.run()).as_str(), counts(&sandbox)), ("7", [3, 1, 17]));
}

/// Grows its memory by 32 pages, two MiB, and asks.
fn grows() -> String {
    format!("(if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then (unreachable))) {ASK}")
}

#[test]
fn at_most_half_of_the_memory_is_kept() {
    let sandbox = sandbox(100, 12 << 20);
    let plugin = loaded(&sandbox, &grows());
    let mut calls: Vec<_> = ["1", "2", "3"].iter().map(|key| Call::new(&plugin, HOUR).named("test", key)).collect();
    calls.iter_mut().for_each(|call| drop(call.passes(answered("7"))));
    assert_eq!(counts(&sandbox), [2, 0, 1]);
    for (call, resumed) in calls.iter_mut().zip([0, 1, 2]) {
        assert_eq!((value(call.run()).as_str(), counts(&sandbox)[1]), ("7", resumed));
    }
}

#[test]
fn instance_is_dropped_when_a_call_needs_its_place() {
    let sandbox = sandbox(2, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, ASK), HOUR);
    call.passes(answered("7"));
    let held = spins(&sandbox);
    assert_eq!(counts(&sandbox), [1, 0, 0], "one place was free");
    let mut other = Call::new(&loaded(&sandbox, "(call $ok_number (i64.const 1))"), HOUR).named("other", "o");
    assert_eq!((value(other.run()).as_str(), counts(&sandbox)), ("1", [0, 0, 1]));
    assert_eq!((value(call.run()).as_str(), counts(&sandbox)), ("7", [0, 0, 1]));
    held.abort();
}

#[test]
fn instance_is_dropped_when_a_guest_needs_its_memory() {
    let sandbox = sandbox(100, 8 << 20);
    let mut call = Call::new(&loaded(&sandbox, &grows()), HOUR);
    call.passes(answered("7"));
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    // It begins with what is left, and grows beyond it while the other instance is kept.
    let body = "(if (i32.eq (memory.grow (i32.const 96)) (i32.const -1)) (then (unreachable))) (call $ok_number (i64.const 1))";
    let mut large = Call::new(&loaded(&sandbox, body), HOUR).named("large", "l");
    large.limits.memory = 8 << 20;
    assert_eq!((value(large.run()).as_str(), counts(&sandbox)), ("1", [0, 0, 1]));
    assert_eq!((value(call.run()).as_str(), counts(&sandbox)), ("7", [0, 0, 1]));
}

/// When its guest logs a line, another call asks for room and gets none.
struct Crowds {
    plugin: Plugin,
    asking: Arc<Mutex<Option<BoxFuture<'static, GuestEnd>>>>,
}

impl Sink for Crowds {
    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {
        let plugin = self.plugin.clone();
        let mut asks: BoxFuture<'static, _> =
            Box::pin(async move { plugin.run(&job("other", "{}"), &tight(), Arc::new(())).await });
        assert!(asks.as_mut().now_or_never().is_none(), "there is room");
        *self.asking.lock().expect("no panic") = Some(asks);
    }
}

#[test]
fn nothing_is_kept_while_a_call_waits_for_room() {
    let sandbox = sandbox(2, usize::MAX);
    let held = spins(&sandbox);
    let line = "(call $log (i32.const 1) (i32.const 2100) (i32.const 5))";
    let mut call = Call::new(&loaded(&sandbox, &format!("{line} {ASK}")), HOUR);
    let crowds = Crowds { plugin: loaded(&sandbox, "(call $ok_number (i64.const 1))"), asking: Arc::default() };
    let asking = Arc::clone(&crowds.asking);
    let request = waits(call.run_with(Arc::new(crowds)).ended);
    assert_eq!(counts(&sandbox), [0, 0, 1]);
    let asking = asking.lock().expect("no panic").take().expect("it asked");
    assert_eq!(value(RUNTIME.block_on(asking).ended), "1");
    call.ends(&request, answered("7"));
    assert_eq!(value(call.run()), "7");
    held.abort();
}

#[test]
fn instance_of_a_call_that_ended_is_dropped() {
    let sandbox = sandbox(4, usize::MAX);
    let plugin = loaded(&sandbox, ASK);
    let mut call = Call::new(&plugin, HOUR);
    call.passes(answered("7"));
    sandbox.release(plugin.digest(), "another");
    sandbox.release(Digest::of("another"), &call.job.idempotency_key);
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    sandbox.release(plugin.digest(), &call.job.idempotency_key);
    assert_eq!(counts(&sandbox), [0, 0, 1]);
    assert_eq!(value(call.run()), "7");
}

#[test]
fn instances_of_a_plugin_that_changes_are_dropped() {
    let sandbox = sandbox(8, usize::MAX);
    let plugin = loaded(&sandbox, ASK);
    let mut calls = ["one", "two"].map(|name| Call::new(&plugin, HOUR).named(name, name));
    calls.iter_mut().for_each(|call| drop(call.passes(answered("7"))));
    sandbox.release_plugin(&PluginName::new("one").expect("a name"));
    assert_eq!(counts(&sandbox), [1, 0, 1]);
    calls.iter_mut().for_each(|call| assert_eq!(value(call.run()), "7"));
    assert_eq!(counts(&sandbox), [0, 1, 1]);
}

#[test]
fn host_that_stops_keeps_nothing() {
    let sandbox = sandbox(4, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, &format!("{ASK} drop {ASK_AGAIN}")), HOUR);
    call.passes(answered("7"));
    sandbox.stop_lingering();
    assert_eq!(counts(&sandbox), [0, 0, 1]);
    waits(call.run());
    assert_eq!(counts(&sandbox), [0, 0, 2], "a later wait as well");
}

/// Asks another question.
const ASK_AGAIN: &str = "(call $ask (i32.const 2048) (i32.const 33) (i32.const 200)) (call $answered (i32.const 200))";

/// Ended before its guest could run.
struct Ended;

impl Sink for Ended {
    fn try_start(&self, _grace: Span) -> bool {
        false
    }

    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {}
}

#[test]
fn only_the_next_run_of_the_call_continues_an_instance() {
    let sandbox = sandbox(8, usize::MAX);
    let plugin = loaded(&sandbox, ASK);
    type Change = fn(&mut Call);
    let changes: [(&str, Change); 8] = [
        ("another attempt", |call| call.job.attempt = 2),
        ("another grant", |call| call.job.grants = Arc::new(Grants::clone(&call.job.grants))),
        ("another limit", |call| call.limits.host_calls -= 1),
        ("another plugin", |call| call.job.plugin = PluginName::new("other").expect("a name")),
        ("another tool", |call| call.job.tool = "other".into()),
        ("another caller", |call| call.job.scope = Json::unchecked(r#"{"caller":"eve"}"#)),
        ("another step", |call| call.steps[0].digest = Digest::of("another")),
        ("another end before it", |call| {
            let last = call.steps[0].clone();
            call.steps.push(last);
        }),
    ];
    for (number, (what, change)) in changes.into_iter().enumerate() {
        let mut call = Call::new(&plugin, HOUR);
        call.passes(answered("7"));
        change(&mut call);
        let ended = call.run();
        assert_eq!(counts(&sandbox), [0, 0, number as u64 + 1], "{what}: {ended:?}");
        let is_repeated = what.contains("step") || what.contains("before");
        match ended {
            RunEnd::Outcome(Outcome::InDoubt) => assert!(is_repeated, "{what}: a new instance differs"),
            ended => assert!(!is_repeated && value(ended) == "7", "{what}"),
        }
    }
}

#[test]
fn instance_whose_journal_has_changed_is_not_continued() {
    let sandbox = sandbox(4, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, ASK), HOUR);
    call.passes(answered("7"));
    let record = Record::Result("x".into());
    let digest = Digest::of("another run");
    call.entries = vec![Entry {
        number: 0,
        step: 0,
        run: None,
        function: None,
        digest,
        at: STARTED_AT,
        salt: None,
        transferred: None,
        record,
    }];
    assert_eq!(call.run(), RunEnd::Outcome(Outcome::InDoubt), "a new instance misses the entry");
    assert_eq!(counts(&sandbox), [0, 0, 1]);
}

#[test]
fn call_that_ended_meanwhile_is_not_continued() {
    let sandbox = sandbox(4, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, ASK), HOUR);
    call.passes(answered("7"));
    let end = call.run_with(Arc::new(Ended));
    assert!(matches!(end.ended, RunEnd::Repeating(_)) && end.spent.is_none(), "{end:?}");
    assert_eq!(sandbox.lingering().now, 0);
}

/// A journal that nobody can write.
struct Unwritable;

#[wasmtime_wasi::async_trait]
impl JournalWriter for Unwritable {
    async fn write(&self, _: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        Err("the disk is full".to_owned())
    }

    fn head(&self) -> Option<JournalSummary> {
        Some(JournalSummary::default())
    }
}

#[test]
fn nothing_is_kept_before_the_journal_is_written() {
    let sandbox = sandbox(4, usize::MAX);
    // It calls a tool that is not granted, which is recorded.
    static REQUEST: &str = r#"{"calls":[{"tool":"t","arguments":{}}]}"#;
    let body = "(call $call_tools (local.get $args) (local.get $args_len) (i32.const 200))
      (call $ask (i32.const 2048) (i32.const 33) (i32.const 200)) (call $answered (i32.const 200))";
    let call = Call::new(&loaded(&sandbox, body), HOUR);
    let recording = Some(Recording { writer: Arc::new(Unwritable), bounds: JournalBounds::default() });
    let job = Job { recording, arguments: Json::unchecked(REQUEST), ..call.next().0 };
    let ended = RUNTIME.block_on(call.plugin.run(&job, &call.limits, Arc::new(()))).ended;
    assert!(matches!(ended, RunEnd::Repeating(_)), "{ended:?}");
    assert_eq!(sandbox.lingering(), LingerCounts::default());
}

#[test]
fn instance_goes_with_its_runtime() {
    let sandbox = sandbox(4, usize::MAX);
    let mut call = Call::new(&loaded(&sandbox, ASK), HOUR);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (job, _) = call.next();
    let request = waits(runtime.block_on(call.plugin.run(&job, &call.limits, Arc::new(()))).ended);
    assert_eq!(counts(&sandbox), [1, 0, 0]);
    drop(runtime);
    assert_eq!(counts(&sandbox), [0, 0, 1]);
    call.ends(&request, answered("7"));
    assert_eq!(value(call.run()), "7");
}
