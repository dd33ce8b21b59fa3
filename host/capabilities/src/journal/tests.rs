//! Runs of one call, and the journal between them.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::Span;
use domain::step::{Step, StepEnd};
use futures::FutureExt as _;

use super::*;

/// Keeps what is written, in the batches in which it comes.
#[derive(Default)]
struct Written(Mutex<Vec<Vec<Entry>>>);

impl Written {
    fn batches(&self) -> Vec<usize> {
        self.0.lock().unwrap().iter().map(Vec::len).collect()
    }

    fn entries(&self) -> Arc<[Entry]> {
        self.0.lock().unwrap().concat().into()
    }
}

#[async_trait]
impl JournalWriter for Written {
    async fn write(&self, entries: Vec<Entry>, _: Vec<ValueChange>) -> Result<bool, String> {
        self.0.lock().unwrap().push(entries);
        Ok(true)
    }
}

/// A clock that advances with each entry.
#[derive(Default)]
struct Ticks {
    now: AtomicU64,
    reached: Mutex<Vec<(u64, bool)>>,
}

impl RunTime for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.fetch_add(1, Ordering::Relaxed))
    }

    fn reached(&self, at: Timestamp, repeats: bool) {
        self.reached.lock().unwrap().push((at.millis(), repeats));
    }
}

fn run(earlier: &Arc<[Entry]>, steps: u32, bounds: JournalBounds) -> (Journal, Arc<Written>, Arc<Ticks>) {
    let (writer, time) = (Arc::<Written>::default(), Arc::<Ticks>::default());
    let recording = Recording { writer: writer.clone(), bounds };
    (Journal::new(&durable(earlier, steps), recording, time.clone()), writer, time)
}

/// A call with these entries and this number of steps.
pub(crate) fn durable(journal: &Arc<[Entry]>, steps: u32) -> Durable {
    let started_at = Timestamp::from_millis(0);
    let step = Step { digest: Digest::of("step"), ended_at: started_at, end: StepEnd::Elapsed };
    let steps = (0..steps).map(|_| step.clone()).collect();
    Durable { started_at, steps, journal: Arc::clone(journal), decided: [].into() }
}

fn call(name: &str) -> HostCall {
    HostCall::new(name, name, &[])
}

/// The result of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it waits")
}

/// A journal: a result, a step, and an effect with its result.
fn recorded() -> Arc<[Entry]> {
    let (journal, written, _) = run(&[].into(), 1, JournalBounds::default());
    journal.record(&call("a"), "1".into()).unwrap();
    journal.pass_step().unwrap();
    at_once(journal.begin(&call("b"))).unwrap();
    at_once(journal.write(&call("b"), "2".into(), Vec::new())).unwrap();
    assert_eq!(written.batches(), [2, 1], "the result comes with the effect, and both before the effect's own result");
    written.entries()
}

fn done(result: &str) -> Effect {
    Effect::Done { result: result.into(), transferred: None }
}

fn diverged<T: std::fmt::Debug>(done: Result<T, JournalError>) -> String {
    match done {
        Err(JournalError::Diverged(what)) => what,
        other => panic!("it did not diverge: {other:?}"),
    }
}

#[test]
fn later_run_gets_what_the_first_one_got() {
    let entries = recorded();
    let (journal, written, time) = run(&entries, 1, JournalBounds::default());
    assert_eq!(journal.recorded(&call("a")).unwrap().as_deref(), Some("1"));
    journal.pass_step().unwrap();
    assert!(journal.repeats());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(done("2")));
    assert!(!journal.repeats());
    assert_eq!(*time.reached.lock().unwrap(), [(0, true), (1, true), (2, false)], "the clock has the same times");
    assert_eq!(journal.recorded(&call("c")).unwrap(), None, "it continues");
    journal.record(&call("c"), "3".into()).unwrap();
    at_once(journal.flush()).unwrap();
    let new = written.entries();
    assert_eq!((new.len(), new[0].number, new[0].step, new[0].function.as_deref()), (1, 3, 1, Some("c")));
}

#[test]
fn next_run_continues_where_the_last_one_waited() {
    let earlier = recorded();
    let (journal, first, _) = run(&earlier, 1, JournalBounds::default());
    journal.recorded(&call("a")).unwrap();
    journal.pass_step().unwrap();
    journal.effect(&call("b")).unwrap();
    journal.record(&call("c"), "3".into()).unwrap();
    at_once(journal.flush()).unwrap();
    journal.forget_passed();
    let second = Arc::<Written>::default();
    journal.continues(second.clone());
    assert!(journal.repeats());
    assert!(diverged(journal.recorded(&call("d"))).contains("before step 2"));
    journal.pass_step().unwrap();
    assert!(!journal.repeats());
    assert_eq!(journal.recorded(&call("d")).unwrap(), None);
    journal.record(&call("d"), "4".into()).unwrap();
    at_once(journal.flush()).unwrap();
    assert_eq!(first.batches(), [1], "the last run records no more");
    let new = second.entries();
    assert_eq!((new.len(), new[0].number, new[0].step), (1, 4, 2), "as in a run that repeats the others");
    let (again, repeated, _) = run(&[&*earlier, &*first.entries()].concat().into(), 2, JournalBounds::default());
    again.recorded(&call("a")).unwrap();
    again.pass_step().unwrap();
    again.effect(&call("b")).unwrap();
    again.recorded(&call("c")).unwrap();
    again.pass_step().unwrap();
    again.record(&call("d"), "4".into()).unwrap();
    at_once(again.flush()).unwrap();
    let same = |entry: &Entry| (entry.number, entry.step, entry.digest, entry.record.clone());
    assert_eq!(same(&repeated.entries()[0]), same(&new[0]));
    assert_eq!((again.room(), again.length()), (journal.room(), journal.length()));
}

#[test]
fn refusal_is_repeated_whatever_is_granted_later() {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    let (one, other) = (Digest::of("one"), Digest::of("other"));
    assert_eq!(journal.calls_refused(one), None);
    journal.refuse_calls(one, "not granted").unwrap();
    at_once(journal.flush()).unwrap();
    let again = run(&written.entries(), 0, JournalBounds::default()).0;
    assert_eq!(again.calls_refused(other), None, "another request");
    assert_eq!(again.calls_refused(one).as_deref(), Some("not granted"));
    assert!(!again.repeats());
}

#[test]
fn run_that_differs_stops_at_the_entry() {
    let entries = recorded();
    let start = || run(&entries, 1, JournalBounds::default()).0;
    assert_eq!(diverged(start().recorded(&call("x"))), "it asks for something else at entry 0 of its journal");
    assert_eq!(diverged(start().pass_step()), "it asks for a step at entry 0 of its journal");
    assert_eq!(diverged(start().is_passed()), "it ends before entry 0 of its journal");
    let journal = start();
    journal.recorded(&call("a")).unwrap();
    assert!(diverged(journal.effect(&call("b"))).contains("entry 1"), "the step comes first");
    let journal = start();
    journal.recorded(&call("a")).unwrap();
    journal.pass_step().unwrap();
    assert!(diverged(journal.recorded(&call("b"))).contains("entry 1"), "it was an effect");
    let (journal, ..) = run(&[].into(), 1, JournalBounds::default());
    assert_eq!(diverged(journal.recorded(&call("a"))), "it does something new before step 1");
}

/// The values of the first write have changed.
#[derive(Default)]
struct OvertakenOnce(Written, std::sync::atomic::AtomicBool);

#[async_trait]
impl JournalWriter for OvertakenOnce {
    async fn write(&self, entries: Vec<Entry>, values: Vec<ValueChange>) -> Result<bool, String> {
        if !self.1.swap(true, Ordering::Relaxed) {
            return Ok(false);
        }
        self.0.write(entries, values).await
    }
}

#[test]
fn overtaken_write_has_no_result_yet() {
    let writer = Arc::<OvertakenOnce>::default();
    let recording =
        Recording { writer: writer.clone(), bounds: JournalBounds { entries: 2, ..JournalBounds::default() } };
    let journal = Journal::new(&durable(&[].into(), 0), recording, Arc::<Ticks>::default());
    journal.record(&call("a"), "1".into()).unwrap();
    let room = journal.room();
    assert!(!at_once(journal.write(&call("b"), "2".into(), Vec::new())).unwrap());
    assert_eq!((journal.length(), journal.room()), (1, room));
    assert!(at_once(journal.write(&call("b"), "another".into(), Vec::new())).unwrap());
    let written = writer.0.entries();
    let texts: Vec<_> = written.iter().map(|entry| (entry.number, entry.record.clone())).collect();
    assert_eq!(texts, [(0, Record::Result("1".into())), (1, Record::Result("another".into()))]);
}

#[test]
fn effect_without_a_result_is_in_doubt() {
    let entries = recorded();
    let (journal, ..) = run(&entries[..2].into(), 1, JournalBounds::default());
    journal.recorded(&call("a")).unwrap();
    journal.pass_step().unwrap();
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(Effect::InDoubt { first: 1, last: 1 }));
    // It is made again, and then it is as if it had been made once.
    at_once(journal.write(&call("b"), "2".into(), Vec::new())).unwrap();
    assert_eq!(journal.length(), 3);
}

#[test]
fn effect_that_is_begun_once_more_keeps_its_first_entry() {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    at_once(journal.begin(&call("b"))).unwrap();
    let (journal, again, _) = run(&written.entries(), 0, JournalBounds::default());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(Effect::InDoubt { first: 0, last: 0 }));
    at_once(journal.begin(&call("b"))).unwrap();
    let entries: Arc<[Entry]> = [&*written.entries(), &*again.entries()].concat().into();
    let (journal, last, _) = run(&entries, 0, JournalBounds::default());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(Effect::InDoubt { first: 0, last: 1 }));
    at_once(journal.write(&call("b"), "2".into(), Vec::new())).unwrap();
    let (journal, ..) = run(&[&*entries, &*last.entries()].concat().into(), 0, JournalBounds::default());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(done("2")));
    journal.is_passed().unwrap();
}

fn refused(until: u64) -> RefusedForNow {
    RefusedForNow { until: Timestamp::from_millis(until), wait: Span::from_secs(1), in_doubt: false }
}

/// The refusal of the request in the first entry.
fn refused_effect(last: u32) -> Effect {
    Effect::Refused { first: 0, last, refused: refused(9), transferred: None }
}

/// A journal: an effect that is refused for now, the wait for it, and then the next run, which begins it again and ends it.
fn recorded_after_a_refusal() -> Arc<[Entry]> {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    at_once(journal.begin(&call("b"))).unwrap();
    journal.add(&call("b"), Record::Refused(refused(9)), None).unwrap();
    at_once(journal.flush()).unwrap();
    let entries = written.entries();
    let (journal, written, _) = run(&entries, 1, JournalBounds::default());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(refused_effect(1)));
    journal.pass_step().unwrap();
    assert_eq!(journal.effect(&call("b")).unwrap(), None, "it is sent again");
    at_once(journal.begin(&call("b"))).unwrap();
    at_once(journal.write(&call("b"), "2".into(), Vec::new())).unwrap();
    [&*entries, &*written.entries()].concat().into()
}

#[test]
fn refused_effect_is_begun_again_after_the_wait() {
    let entries = recorded_after_a_refusal();
    assert_eq!(
        entries.iter().map(|entry| (entry.number, entry.step)).collect::<Vec<_>>(),
        [(0, 0), (1, 0), (2, 1), (3, 1)]
    );
    let (journal, ..) = run(&entries, 1, JournalBounds::default());
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(refused_effect(1)));
    assert!(diverged(journal.effect(&call("b"))).contains("entry 2"), "the wait comes first");
    let (journal, ..) = run(&entries, 1, JournalBounds::default());
    journal.effect(&call("b")).unwrap();
    journal.pass_step().unwrap();
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(done("2")));
    assert!(!journal.repeats());
    // A kill during the second sending.
    let (journal, ..) = run(&entries[..3].into(), 1, JournalBounds::default());
    journal.effect(&call("b")).unwrap();
    journal.pass_step().unwrap();
    assert_eq!(journal.effect(&call("b")).unwrap(), Some(Effect::InDoubt { first: 2, last: 2 }));
}

#[test]
fn refusal_of_a_request_that_changes_nothing_is_one_entry() {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    journal.add(&call("g"), Record::Refused(refused(9)), None).unwrap();
    assert_eq!(written.batches(), [0; 0], "it is written with the wait");
    at_once(journal.flush()).unwrap();
    let (journal, ..) = run(&written.entries(), 1, JournalBounds::default());
    assert_eq!(journal.effect(&call("g")).unwrap(), Some(refused_effect(0)));
    journal.pass_step().unwrap();
    assert_eq!(journal.effect(&call("g")).unwrap(), None);
    let (journal, ..) = run(&written.entries(), 1, JournalBounds::default());
    assert!(diverged(journal.recorded(&call("g"))).contains("entry 0"), "it was a refusal");
}

#[test]
fn stop_is_seen_at_the_same_check_in_a_later_run() {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    journal.record(&call("a"), "1".into()).unwrap();
    let seen: Vec<_> =
        [false, false, true].iter().zip(1..).map(|(stop, n)| journal.stops_at(n, *stop).unwrap()).collect();
    assert_eq!(seen, [false, false, true]);
    assert_eq!(written.batches(), [0; 0], "it is written with the next effect");
    at_once(journal.begin(&call("b"))).unwrap();
    assert_eq!(written.batches(), [3]);

    // The host of the later run asks for nothing, or from the start.
    for requested in [false, true] {
        let (journal, ..) = run(&written.entries(), 0, JournalBounds::default());
        assert!(!journal.stops_at(1, requested).unwrap(), "the run before it came further");
        assert_eq!(journal.recorded(&call("a")).unwrap().as_deref(), Some("1"));
        let seen: Vec<_> = (2..=3).map(|n| journal.stops_at(n, requested).unwrap()).collect();
        assert_eq!(seen, [false, true]);
        assert_eq!(journal.effect(&call("b")).unwrap(), Some(Effect::InDoubt { first: 2, last: 2 }));
    }
    let (journal, ..) = run(&written.entries(), 0, JournalBounds::default());
    journal.recorded(&call("a")).unwrap();
    assert!(diverged(journal.effect(&call("b"))).contains("entry 1"), "it did not check");
}

#[test]
fn journal_has_at_most_so_many_entries_and_bytes() {
    let full = |bounds, text: &str| {
        let (journal, ..) = run(&[].into(), 0, bounds);
        let mut done = (0..10).map(|_| journal.record(&call("a"), text.into()));
        let first = done.by_ref().take_while(Result::is_ok).count();
        (first, done.next().unwrap().unwrap_err().to_string())
    };
    let (first, why) = full(JournalBounds { entries: 3, bytes: 1 << 20 }, "1");
    assert_eq!(first, 3);
    assert!(why.ends_with("more than 3 host functions that are recorded (`journal_entries`)"), "{why}");
    let (first, why) = full(JournalBounds { entries: 100, bytes: 2_048 }, &"x".repeat(500));
    assert_eq!(first, 3);
    assert!(why.ends_with("more than 2 KiB of results that are recorded (`journal_bytes`)"), "{why}");
    // The entries of earlier runs count.
    let (journal, ..) = run(&recorded(), 1, JournalBounds { entries: 3, bytes: 1 << 20 });
    assert!(matches!(journal.record(&call("z"), "1".into()), Err(JournalError::Full(_))));
}

#[test]
fn run_has_begun_when_an_entry_is_written_or_a_step_has_ended() {
    let (journal, ..) = run(&[].into(), 0, JournalBounds::default());
    journal.record(&call("a"), "1".into()).unwrap();
    assert!(!journal.has_begun(), "no later run knows it");
    at_once(journal.flush()).unwrap();
    assert!(journal.has_begun());
    assert!(run(&[].into(), 1, JournalBounds::default()).0.has_begun());
    assert!(run(&recorded(), 1, JournalBounds::default()).0.has_begun());
}

#[test]
fn bytes_of_a_request_come_back_with_its_result() {
    let (journal, written, _) = run(&[].into(), 0, JournalBounds::default());
    let transferred = |sent| Some(Transferred { sent, received: 1 });
    at_once(journal.begin(&call("b"))).unwrap();
    journal.add(&call("b"), Record::Refused(refused(9)), transferred(2)).unwrap();
    at_once(journal.begin(&call("b"))).unwrap();
    journal.add(&call("b"), Record::Result("2".into()), transferred(3)).unwrap();
    at_once(journal.flush()).unwrap();
    let (journal, ..) = run(&written.entries(), 0, JournalBounds::default());
    let of = |effect| match effect {
        Some(Effect::Refused { transferred, .. } | Effect::Done { transferred, .. }) => transferred,
        other => panic!("{other:?}"),
    };
    let effects = [(); 2].map(|()| of(journal.effect(&call("b")).unwrap()));
    assert_eq!(effects, [transferred(2), transferred(3)]);
}
