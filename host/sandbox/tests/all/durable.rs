//! Durable calls: a run waits, and a run in a new instance repeats it and continues.

mod lingering;
mod memory;
mod questions;
mod stopping;
mod tools;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use capabilities::Capabilities;
use domain::step::{Question, Step, StepEnd, StepRequest, StepWait};
use domain::tool::Editable;
use domain::{Digest, Json, Limits, Outcome, SignalName, Span, Timestamp, call::Level, outcome::FailureCode};
use futures::FutureExt as _;
use toolgate_sandbox::{Durable, GuestClock, Job, Plugin, RunEnd, Sandbox, SandboxSettings, Sink, Update};
use toolgate_tests::wat::Wat;

use crate::world::{Began, Heard, RUNTIME, failed, job, load, tight, value};

const IMPORTS: &str = r#"
  (import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
  (import "toolgate:plugin/durable@0.1.2" "approve" (func $approve (param i32 i32 i32)))
  (import "toolgate:plugin/durable@0.1.2" "await-external" (func $await_external (param i32 i32 i32)))
  (import "toolgate:plugin/durable@0.1.2" "call-tools" (func $call_tools (param i32 i32 i32)))
  (import "toolgate:plugin/durable@0.1.2" "sleep" (func $sleep (param i64)))
  (import "toolgate:plugin/host@0.1.2" "stop-requested" (func $stop_requested (result i32)))
  (import "wasi:clocks/wall-clock@0.2.12" "now" (func $wall (param i32)))
  (import "wasi:clocks/monotonic-clock@0.2.12" "now" (func $now (result i64)))
  (import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $timer (param i64) (result i32)))
  (import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))
  (import "wasi:io/poll@0.2.12" "[method]pollable.ready" (func $ready (param i32) (result i32)))
  (import "wasi:io/poll@0.2.12" "poll" (func $poll (param i32 i32 i32)))
  (import "wasi:random/random@0.2.12" "get-random-u64" (func $random (result i64)))"#;

const WORLD: &str = "import toolgate:plugin/durable@0.1.2; import wasi:clocks/wall-clock@0.2.12;
  import wasi:clocks/monotonic-clock@0.2.12; import wasi:io/poll@0.2.12; import wasi:random/random@0.2.12;";

/// `$answered` makes a result of the answer at an address. Without an answer, the result is the number of the error, and its
/// text is in the log. `$put` writes 20 digits of a number.
const ITEMS: &str = r#"
  (data (i32.const 2048) "{\"prompt\":\"00000000000000000000\"}")
  (data (i32.const 2100) "again")
  (func $answered (param $at i32) (result i32)
    (if (i32.eqz (i32.load8_u (local.get $at)))
      (then (return (call $ok (i32.load offset=4 (local.get $at)) (i32.load offset=8 (local.get $at))))))
    (if (i32.eq (i32.load8_u offset=4 (local.get $at)) (i32.const 3))
      (then (call $log (i32.const 1) (i32.load offset=8 (local.get $at)) (i32.load offset=12 (local.get $at)))))
    (if (i32.eqz (i32.load8_u offset=4 (local.get $at)))
      (then (if (i32.load8_u offset=8 (local.get $at))
        (then (call $log (i32.const 1) (i32.load offset=12 (local.get $at)) (i32.load offset=16 (local.get $at)))))))
    (call $ok_number (i64.load8_u offset=4 (local.get $at))))
  (func $put (param $n i64)
    (local $at i32)
    (local.set $at (i32.const 2079))
    (loop $digit
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $n) (i64.const 10)))))
      (local.set $n (i64.div_u (local.get $n) (i64.const 10)))
      (br_if $digit (i32.gt_u (local.get $at) (i32.const 2059)))))"#;

/// Asks with the arguments as the question.
const ASK: &str =
    "(call $ask (local.get $args) (local.get $args_len) (i32.const 200)) (call $answered (i32.const 200))";

/// The same with a decision.
const APPROVE: &str =
    "(call $approve (local.get $args) (local.get $args_len) (i32.const 200)) (call $answered (i32.const 200))";

/// The same with a wait for an external system.
const AWAIT: &str =
    "(call $await_external (local.get $args) (local.get $args_len) (i32.const 200)) (call $answered (i32.const 200))";

const PROMPT: &str = r#"{"prompt":"Go?"}"#;

const STARTED_AT: Timestamp = Timestamp::from_millis(1_767_225_600_000);

fn component(body: &str) -> Vec<u8> {
    Wat { body, imports: IMPORTS, items: ITEMS, world: WORLD, ..Wat::default() }.build()
}

/// A job of a durable tool after these steps.
fn continued(arguments: &str, steps: &[Step]) -> Job {
    Job {
        durable: Some(Durable { started_at: STARTED_AT, steps: steps.into(), journal: [].into(), decided: [].into() }),
        ..job("test", arguments)
    }
}

/// Runs a job, and returns the log as well.
fn run(plugin: &Plugin, job: &Job) -> (RunEnd, Vec<String>) {
    let heard = Arc::new(Heard::default());
    let end = RUNTIME.block_on(plugin.run(job, &tight(), heard.clone()));
    (end.ended, heard.log())
}

fn waits(ended: RunEnd) -> StepRequest {
    match ended {
        RunEnd::Waits(request) => request,
        other => panic!("expected a wait, got {other:?}"),
    }
}

/// The step of a request that ended an hour after the start.
fn step(request: &StepRequest, end: StepEnd) -> Step {
    Step { digest: request.digest, ended_at: STARTED_AT + Span::from_secs(3_600), end }
}

fn answered(json: &str) -> StepEnd {
    StepEnd::Answered(Json::unchecked(json))
}

#[test]
fn call_waits_and_a_new_instance_continues_it() {
    let plugin = load(&component(ASK));
    let (ended, _) = run(&plugin, &continued(PROMPT, &[]));
    let request = waits(ended);
    let StepWait::Answer(question) = &request.wait else { panic!("another wait: {request:?}") };
    assert_eq!(&*question.prompt, "Go?");
    let end = |end| value(run(&plugin, &continued(PROMPT, &[step(&request, end)])).0);
    assert_eq!(end(answered(r#"{"env":"blue"}"#)), r#"{"env":"blue"}"#);
    assert_eq!(end(StepEnd::Expired), "1");
    let (ended, log) = run(&plugin, &continued(PROMPT, &[step(&request, StepEnd::Denied(Some("not now".into())))]));
    assert_eq!((value(ended).as_str(), log.as_slice()), ("0", &["info: not now".to_owned()][..]));
}

#[test]
fn approved_value_comes_back_as_it_was_approved() {
    let plugin = load(&component(APPROVE));
    let question = r#"{"prompt":"Pay?","subject":{"z":1.50,"a":[2]},"editable":["a"]}"#;
    let request = waits(run(&plugin, &continued(question, &[])).0);
    let StepWait::Approval { subject, editable, .. } = &request.wait else { panic!("another wait: {request:?}") };
    assert_eq!((subject.as_str(), editable), (r#"{"z":1.50,"a":[2]}"#, &Editable::Fields(Arc::new(["a".to_owned()]))));
    let approved = StepEnd::Approved(Json::unchecked(r#"{"z":1.50,"a":[3]}"#));
    assert_eq!(value(run(&plugin, &continued(question, &[step(&request, approved)])).0), r#"{"z":1.50,"a":[3]}"#);
}

#[test]
fn external_result_reaches_the_guest() {
    let plugin = load(&component(AWAIT));
    let question = r#"{"prompt":"The job ends","schema":{"type":"object"},"name":"job-7","metadata":{"job": 7},"expires_ms":60000}"#;
    let request = waits(run(&plugin, &continued(question, &[])).0);
    let expected = Question {
        prompt: "The job ends".into(),
        response: Some(Json::unchecked(r#"{"type":"object"}"#)),
        expires: Some(Span::from_secs(60)),
        ..Question::default()
    };
    let StepWait::External { question: asked, signal, metadata } = &request.wait else { panic!("{request:?}") };
    assert_eq!((asked, metadata), (&expected, &Some(Json::unchecked(r#"{"job":7}"#))));
    assert_eq!(signal.as_ref().map(SignalName::as_str), Some("job-7"));
    let end = |end| run(&plugin, &continued(question, &[step(&request, end)])).0;
    assert_eq!(value(end(StepEnd::Received(Json::unchecked("[1.50]")))), "[1.50]");
    assert_eq!(value(end(StepEnd::Expired)), "1");
    assert_eq!(end(answered("1")), RunEnd::Outcome(Outcome::InDoubt), "an answer of a person is another step");
}

/// Asks about a number that follows from clocks and random numbers, and returns another one.
const OBSERVES: &str = "
  (call $wall (i32.const 304))
  (call $put (i64.add (i64.add (i64.load (i32.const 304)) (i64.load32_u (i32.const 312))) (i64.add (call $now) (call $random))))
  (call $ask (i32.const 2048) (i32.const 33) (i32.const 200))
  (call $wall (i32.const 304))
  (call $ok_number (i64.xor (call $random) (i64.xor (call $now) (i64.load32_u (i32.const 312)))))";

#[test]
fn clocks_and_random_numbers_are_the_same_in_each_run() {
    let plugin = load(&component(OBSERVES));
    let request = waits(run(&plugin, &continued("{}", &[])).0);
    assert_eq!(waits(run(&plugin, &continued("{}", &[])).0), request);
    let steps = [step(&request, answered("1"))];
    let first = value(run(&plugin, &continued("{}", &steps)).0);
    assert_eq!(value(run(&plugin, &continued("{}", &steps)).0), first);
    let other = Job { idempotency_key: "key_2".into(), ..continued("{}", &[]) };
    assert_ne!(waits(run(&plugin, &other).0).wait, request.wait, "another call has other random numbers");
}

#[test]
fn clock_jumps_to_the_end_of_the_step() {
    let body = format!("(drop (call $now)) (drop (call $now)) {ASK} drop (call $ok_number (call $now))");
    let plugin = load(&component(&body));
    let request = waits(run(&plugin, &continued(PROMPT, &[])).0);
    let after = value(run(&plugin, &continued(PROMPT, &[step(&request, answered("1"))])).0);
    assert_eq!(after, format!("{}000000", STARTED_AT.millis() + 3_600_000));
    let before = "(drop (call $now)) (call $ok_number (call $now))";
    let nanos = value(run(&load(&component(before)), &continued("{}", &[])).0);
    assert_eq!(nanos, format!("{}001000", STARTED_AT.millis()));
}

#[test]
fn run_that_differs_ends_in_doubt() {
    let plugin = load(&component(ASK));
    let request = waits(run(&plugin, &continued(PROMPT, &[])).0);
    let good = step(&request, answered("1"));
    let elapsed = step(&request, StepEnd::Elapsed);
    for (arguments, steps, says) in [
        (r#"{"prompt":"Stop?"}"#, vec![good.clone()], "it asks for something else at step 1 of 1"),
        ("no question", vec![good.clone()], "it asks for something else at step 1 of 1"),
        (PROMPT, vec![good.clone(), good.clone()], "it ends before step 2 of 2"),
        (PROMPT, vec![elapsed], "it asks a person at step 1 of 1"),
    ] {
        let (ended, log) = run(&plugin, &continued(arguments, &steps));
        assert_eq!(ended, RunEnd::Outcome(Outcome::InDoubt), "{says}");
        let line = format!("error: the call ends in doubt: the run differs from the one before it: {says}");
        assert_eq!(log, [line]);
    }
    // White space and the order of members make no difference.
    assert_eq!(value(run(&plugin, &continued(" { \"prompt\" : \"Go?\" } ", std::slice::from_ref(&good))).0), "1");
    let approves = load(&component(APPROVE));
    let (ended, _) = run(&approves, &continued(PROMPT, &[good]));
    assert_eq!(ended, RunEnd::Outcome(Outcome::InDoubt), "another function");
}

#[test]
fn failure_during_a_repetition_is_not_the_result_of_the_call() {
    let plugin = load(&component(ASK));
    let step = step(&waits(run(&plugin, &continued(PROMPT, &[])).0), answered("1"));
    let traps = load(&component(
        &format!("(if (call $now) (then (unreachable))) {ASK}")
            .replace("(call $now)", "(i64.ne (call $now) (i64.const 0))"),
    ));
    let (ended, _) = run(&traps, &continued(PROMPT, std::slice::from_ref(&step)));
    let RunEnd::Repeating(failure) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.code, FailureCode::Trapped);
    failed(run(&traps, &continued(PROMPT, &[])).0, FailureCode::Trapped);
    // The host may refuse a later run, for example because it is busy.
    let limits = Limits { arguments: 1, ..tight() };
    let refused = |job: &Job| RUNTIME.block_on(plugin.run(job, &limits, Arc::new(()))).ended;
    assert!(matches!(refused(&continued(PROMPT, std::slice::from_ref(&step))), RunEnd::Repeating(_)));
    failed(refused(&continued(PROMPT, &[])), FailureCode::LimitExceeded);
    let traps_later = load(&component(&format!("{ASK} drop (unreachable)")));
    failed(run(&traps_later, &continued(PROMPT, &[step])).0, FailureCode::Trapped);
}

#[test]
fn repeated_code_has_a_bound_of_its_own() {
    let plugin = load(&component(ASK));
    let step = step(&waits(run(&plugin, &continued(PROMPT, &[])).0), answered("1"));
    let spins = load(&component(&format!("(loop $again (br $again)) {ASK}")));
    let run = |job: &Job, time, replay| {
        let heard = Arc::new(Heard::default());
        let [time, replay] = [time, replay].map(Span::from_millis);
        let end = RUNTIME.block_on(spins.run(job, &Limits { time, replay, ..tight() }, heard.clone()));
        (end.ended, heard.log())
    };
    const LONG: u64 = 3_600_000;
    let (ended, log) = run(&continued(PROMPT, &[step]), LONG, 50);
    assert_eq!(log, [""; 0], "the loop says why");
    let RunEnd::Repeating(failure) = ended else { panic!("{ended:?}") };
    assert_eq!(failure.code, FailureCode::LimitExceeded);
    assert!(
        failure.message.contains("more than 50 ms") && failure.message.contains("`limits.replay_ms`"),
        "{failure:?}"
    );
    // The first run repeats nothing.
    failed(run(&continued(PROMPT, &[]), 50, LONG).0, FailureCode::OutOfTime);
}

#[test]
fn begun_call_waits_for_an_instance_as_long_as_it_takes() {
    let sandbox = Sandbox::new(SandboxSettings { pool: 1, ..SandboxSettings::default() }).expect("a pool");
    let load = |body: &str| {
        let component = component(body);
        sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads")
    };
    let asks = load(ASK);
    let step = step(&waits(run(&asks, &continued(PROMPT, &[])).0), answered("1"));
    let spins =
        load("(call $log (i32.const 1) (i32.const 2100) (i32.const 5)) (loop $again (br $again)) (unreachable)");
    let (began, has_begun) = mpsc::channel();
    let long = Limits { time: Span::from_secs(3_600), ..tight() };
    let held = RUNTIME.spawn(async move { spins.run(&job("test", "{}"), &long, Arc::new(Began(began))).await });
    has_begun.recv().expect("it logs a line as it begins");

    let limits = Limits { time: Span::from_secs(1), ..tight() };
    RUNTIME.block_on(async {
        let (begins, continues) = (continued(PROMPT, &[]), continued(PROMPT, &[step]));
        let mut begun = Box::pin(asks.run(&continues, &limits, Arc::new(())));
        assert!(begun.as_mut().now_or_never().is_none());
        // Without an earlier run to continue, the call waits for a second. By then the other one has waited longer.
        failed(asks.run(&begins, &limits, Arc::new(())).await.ended, FailureCode::Busy);
        assert!(begun.as_mut().now_or_never().is_none());
        held.abort();
        assert_eq!(value(begun.await.ended), "1");
    });
}

#[test]
fn repeated_reports_are_dropped() {
    let report = |level: u32| {
        format!(
            "(call $log (i32.const {level}) (i32.const 2100) (i32.const 5))
             (call $progress (i32.const 2100) (i32.const 5) (i32.const 0) (f64.const 0) (i32.const 0) (i32.const 0) (i32.const 0))"
        )
    };
    let plugin = load(&component(&format!("{} {ASK} drop {} {ASK}", report(1), report(2))));
    let run = |steps: &[Step]| {
        let heard = Arc::new(Heard::default());
        let end = RUNTIME.block_on(plugin.run(&continued(PROMPT, steps), &tight(), heard.clone()));
        let updates = heard.updates.lock().expect("no panic").len();
        (end.ended, heard.log(), updates)
    };
    let (ended, log, updates) = run(&[]);
    assert_eq!((log, updates), (vec!["info: again".to_owned()], 1));
    let step = step(&waits(ended), answered("1"));
    let (ended, log, updates) = run(std::slice::from_ref(&step));
    waits(ended);
    assert_eq!((log, updates), (vec!["warn: again".to_owned()], 1));
    let (ended, log, updates) = run(&[step.clone(), step]);
    assert_eq!((value(ended).as_str(), log, updates), ("1", vec![], 0));
}

/// The longest sleep, in milliseconds.
const YEAR: u64 = 365 * 24 * 60 * 60 * 1_000;

/// A clock that does not advance.
struct Still;

impl GuestClock for Still {
    fn wall(&self) -> Duration {
        Duration::from_secs(2_000_000_000)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn long_sleep_is_a_step_of_real_time() {
    let settings = SandboxSettings { pool: 1, clock: Arc::new(Still), ..SandboxSettings::default() };
    let sandbox = Sandbox::new(settings).expect("a pool");
    // The requested milliseconds of each step, and those after the start at which it ended.
    for (body, waited) in [
        ("(call $sleep (i64.const 5000)) (call $ok_number (call $now))", vec![(5_000, 7_000)]),
        ("(call $block (call $timer (i64.const 5000000000))) (call $ok_number (call $now))", vec![(5_000, 7_000)]),
        // The earlier of two timers ends the first wait, and the other one the second.
        (
            "(i32.store (i32.const 400) (call $timer (i64.const 3000000000)))
             (i32.store (i32.const 404) (call $timer (i64.const 2000000000)))
             (call $poll (i32.const 400) (i32.const 2) (i32.const 300))
             (if (i32.ne (i32.load (i32.const 304)) (i32.const 1)) (then (unreachable)))
             (if (i32.ne (i32.load (i32.load (i32.const 300))) (i32.const 1)) (then (unreachable)))
             (call $block (i32.load (i32.const 400)))
             (call $ok_number (call $now))",
            vec![(2_000, 2_000), (1_000, 3_100)],
        ),
        // A sleep of any length ends after 365 days.
        ("(call $sleep (i64.const -1)) (call $ok_number (call $now))", vec![(YEAR, YEAR)]),
        // A sleep after a short one.
        (
            "(call $sleep (i64.const 1)) (call $sleep (i64.const 1000)) (call $ok_number (call $now))",
            vec![(1_000, 1_001)],
        ),
    ] {
        let component = component(body);
        let plugin = sandbox.load(Digest::of(&component), &component, Capabilities::default()).expect("it loads");
        let (mut steps, mut last) = (Vec::new(), 0);
        for (requested, ended) in waited {
            let request = waits(run(&plugin, &continued("{}", &steps)).0);
            assert_eq!(request.wait, StepWait::Time(Timestamp::from_millis(2_000_000_000_000 + requested)), "{body}");
            let ended_at = STARTED_AT + Span::from_millis(ended);
            steps.push(Step { ended_at, ..step(&request, StepEnd::Elapsed) });
            last = ended;
        }
        let result = value(run(&plugin, &continued("{}", &steps)).0);
        assert_eq!(result, format!("{}000000", STARTED_AT.millis() + last), "{body}");
    }
}

#[test]
fn guest_sleeps_at_least_as_long_as_it_asked() {
    let plugin = load(&component("(call $sleep (i64.const 5000)) (call $ok_number (call $now))"));
    let request = waits(run(&plugin, &continued("{}", &[])).0);
    let early = Step { ended_at: STARTED_AT, ..step(&request, StepEnd::Elapsed) };
    assert_eq!(value(run(&plugin, &continued("{}", &[early])).0), format!("{}000000", STARTED_AT.millis() + 5_000));
    let denied = step(&request, StepEnd::Denied(None));
    assert_eq!(run(&plugin, &continued("{}", &[denied])).0, RunEnd::Outcome(Outcome::InDoubt), "time cannot be denied");
}

#[test]
fn short_timers_keep_the_instance_and_advance_the_clock() {
    for (body, expected) in [
        ("(call $sleep (i64.const 2)) (call $ok_number (call $now))", "2000000"),
        ("(call $block (call $timer (i64.const 3000000))) (call $ok_number (call $now))", "3000000"),
        // Every check costs a microsecond.
        (
            "(local $timer i32) (local.set $timer (call $timer (i64.const 5000)))
             (loop $again (br_if $again (i32.eqz (call $ready (local.get $timer))))) (call $ok_number (call $now))",
            "5000",
        ),
    ] {
        let nanos: u64 = value(run(&load(&component(body)), &continued("{}", &[])).0).parse().expect("a number");
        assert_eq!((nanos - STARTED_AT.millis() * 1_000_000).to_string(), expected, "{body}");
    }
}

#[test]
fn tool_that_is_not_durable_cannot_wait() {
    let says =
        "info: only a durable tool can wait in the middle of a call: declare it with the option `\"durable\": true`";
    for body in [ASK, APPROVE, AWAIT] {
        let (ended, log) = run(&load(&component(body)), &job("test", PROMPT));
        assert_eq!((value(ended).as_str(), log), ("3", vec![says.to_owned()]));
    }
    let sleeps = load(&component("(call $sleep (i64.const 1)) (call $ok_number (i64.const 1))"));
    assert!(failed(run(&sleeps, &job("test", "{}")).0, FailureCode::ToolFailed).starts_with("only a durable tool"));
    // Its timers and clocks are real.
    let blocks = "(call $block (call $timer (i64.const 1000))) (call $ok_number (i64.const 1))";
    assert_eq!(value(run(&load(&component(blocks)), &job("test", "{}")).0), "1");
}

/// Asks the call to stop from the start.
#[derive(Default)]
struct Cancelling(AtomicBool);

impl Sink for Cancelling {
    fn stop_requested(&self) -> bool {
        self.0.store(true, Ordering::Relaxed);
        true
    }

    fn progress(&self, _update: Update) {}

    fn log(&self, _level: Level, _line: &str) {}
}

#[test]
fn cancelled_call_waits_no_more() {
    let stops = format!(
        "{ASK} drop (call $sleep (i64.const 5000)) (if (i32.eqz (call $stop_requested)) (then (unreachable))) {ASK}"
    );
    let run = |body: &str, steps: &[Step]| {
        RUNTIME
            .block_on(load(&component(body)).run(&continued(PROMPT, steps), &tight(), Arc::<Cancelling>::default()))
            .ended
    };
    assert_eq!(value(run(&stops, &[])), "2");
    // A run that repeats an earlier one sees what that one saw.
    let asks = load(&component(ASK));
    let request = waits(crate::durable::run(&asks, &continued(PROMPT, &[])).0);
    let replays = format!("(if (call $stop_requested) (then (unreachable))) {ASK}");
    assert_eq!(value(run(&replays, &[step(&request, answered("7"))])), "7");
}

#[test]
fn number_of_steps_is_limited() {
    let plugin = load(&component(&format!("(loop $again {ASK} drop (br $again)) (unreachable)")));
    let step = step(&waits(run(&plugin, &continued(PROMPT, &[])).0), answered("1"));
    waits(run(&plugin, &continued(PROMPT, &vec![step.clone(); 999])).0);
    let message = failed(run(&plugin, &continued(PROMPT, &vec![step; 1_000])).0, FailureCode::LimitExceeded);
    assert_eq!(message, "the tool waited more than 1000 times in one call");
}

#[test]
fn every_run_of_a_durable_call_is_the_first_attempt() {
    let plugin = load(&component("(call $ok_number (i64.extend_i32_u (local.get $attempt)))"));
    let again = Job { attempt: 3, ..continued("{}", &[]) };
    assert_eq!(value(run(&plugin, &again).0), "1");
    assert_eq!(value(run(&plugin, &Job { durable: None, ..again }).0), "3");
}
