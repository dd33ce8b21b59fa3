//! Laws of the logs of calls.

use dispatch::ports::{AppendError, CallRecords, Commit, EndedTurn, LogLine, RowChange, RunLog};
use dispatch::{Hold, Mode, Pruned, RetentionRules, prune};
use domain::{
    CallIndex, Event, Span,
    call::Level,
    event::{Rejection, TurnEnd},
    nested::Parent,
};

use crate::given::{Subject, commit, conversation, events, principal, time, turn};
use crate::removing::{ended, removal, to_remove, turn_that_ended};

/// The log of a run of the first call of a turn: its last line, which has this number.
fn log(number: u64, run: u32, written: u64) -> RunLog {
    let line = LogLine { at: time(written), level: Level::Warn, text: format!("line {written}\u{1b}[2J") };
    RunLog { turn: turn(number), call: CallIndex(0), run, written, lines: vec![line] }
}

async fn write(store: &Subject, log: &RunLog) {
    store.append(&Commit::rows(vec![RowChange::RunLog(log.clone())])).await.unwrap();
}

async fn read(store: &Subject, number: u64, call: u16) -> Vec<RunLog> {
    store.call_log(turn(number), CallIndex(call)).await.unwrap()
}

pub(crate) async fn logs_are_read_by_call_the_first_run_first(store: Subject) {
    store.append(&commit(1, 0, 1)).await.unwrap();
    let head = store.head().await.unwrap();
    let large = LogLine { at: time(1), level: Level::Debug, text: "x".repeat(200 << 10) };
    let of_another_call = RunLog { call: CallIndex(1), lines: vec![large], ..log(1, 1, 7) };
    for log in [&log(1, 10, 1), &log(1, 2, 3), &of_another_call, &log(2, 1, 9)] {
        write(&store, log).await;
    }
    assert_eq!(read(&store, 1, 0).await, [log(1, 2, 3), log(1, 10, 1)]);
    assert_eq!(read(&store, 1, 1).await, [of_another_call]);
    assert_eq!(read(&store, 1, 2).await, []);
    assert_eq!(store.head().await.unwrap(), head, "logs are not in the audit");
}

pub(crate) async fn a_shorter_log_never_replaces_a_longer_one(store: Subject) {
    store.append(&commit(1, 0, 1)).await.unwrap();
    for written in [5, 9, 4, 9] {
        write(&store, &log(1, 1, written)).await;
    }
    assert_eq!(read(&store, 1, 0).await, [log(1, 1, 9)]);
    // Also within one commit.
    let rows = [8, 12, 11].map(|written| RowChange::RunLog(log(1, 1, written)));
    store.append(&Commit::rows(rows.into())).await.unwrap();
    assert_eq!(read(&store, 1, 0).await, [log(1, 1, 12)]);
}

pub(crate) async fn logs_go_with_their_turn_and_none_follow(store: Subject) {
    turn_that_ended(&store, 1, 10).await;
    turn_that_ended(&store, 2, 20).await;
    for number in [1, 2] {
        write(&store, &log(number, 1, 1)).await;
        write(&store, &log(number, 2, 1)).await;
    }
    let gone = to_remove(&store, 1).await;
    // The removal was planned before this log is written.
    let (removal, last) = (removal([gone]), log(1, 3, 5));
    let (removed, ()) = tokio::join!(store.append(&removal), write(&store, &last));
    removed.unwrap();
    assert_eq!(read(&store, 1, 0).await, []);
    write(&store, &log(1, 2, 9)).await;
    assert_eq!(read(&store, 1, 0).await, []);
    assert_eq!(read(&store, 2, 0).await.len(), 2, "the log of another turn stays");
}

pub(crate) async fn old_logs_go_before_their_turn(store: Subject) {
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    let large = LogLine { at: time(1), level: Level::Debug, text: "x".repeat(200 << 10) };
    for (number, caller) in [(1, "ann"), (2, "ann"), (3, "held"), (4, "ann"), (5, "ann")] {
        let row = EndedTurn { caller: principal(caller), ..ended(number, number * DAY) };
        let log = RunLog { lines: vec![large.clone()], ..log(number, 1, 1) };
        let rows =
            [RowChange::RunLog(log), RowChange::Ended(row.clone(), TurnEnd::Settled), RowChange::Kept(row.caller)];
        // A turn without a log is between the others.
        let rows = rows.into_iter().skip(usize::from(number == 2)).collect::<Vec<_>>();
        store.append(&started(number, number * DAY, None).with(rows)).await.unwrap();
    }
    let with_logs = async || {
        let mut found = Vec::new();
        for number in 1..=5 {
            found.extend((!read(&store, number, 0).await.is_empty()).then_some(number));
        }
        found
    };
    let hold = Hold { callers: [principal("held")].into(), ..Hold::default() };
    let (logs, turns) = (Some(Span::from_millis(3 * DAY)), Some(Span::from_millis(30 * DAY)));
    let rules = RetentionRules { logs, turns, hold, ..RetentionRules::default() };
    let prune = async |day: u64, mode| {
        prune(store.clone(), store.clone(), store.clone(), rules.clone(), time(day * DAY), mode).await.unwrap()
    };
    let (head, kept) = (store.head().await.unwrap(), store.kept_bytes(&principal("ann")).await.unwrap());
    let dry = prune(7, Mode::DryRun).await;
    assert_eq!((with_logs().await, dry.logs.turns), (vec![1, 3, 4, 5], 2));
    assert!((400 << 10..410 << 10).contains(&dry.logs.bytes), "{dry:?}");
    assert_eq!(prune(7, Mode::Remove).await, dry);
    assert_eq!(with_logs().await, [3, 5], "a hold keeps one, and one is too young");
    assert_eq!(store.head().await.unwrap(), head, "logs are not in the audit");
    let now = store.kept_bytes(&principal("ann")).await.unwrap();
    assert_eq!(kept - now, dry.logs.bytes, "they do not count any more");
    let sizes = store.ended(None, 9).await.unwrap().into_iter().filter(|(row, _)| row.caller == principal("ann"));
    assert_eq!(sizes.map(|(_, bytes)| bytes).sum::<u64>(), now);
    assert_eq!(prune(7, Mode::Remove).await, Pruned::default());
    // The turns can still be removed. Logs that go with a turn are not counted as logs.
    let done = prune(100, Mode::DryRun).await;
    assert_eq!((done.logs.turns, done.removed.values().map(|of| of.turns).sum::<u64>()), (0, 4));
    assert_eq!(prune(100, Mode::Remove).await, done);
    assert_eq!((with_logs().await, store.kept_bytes(&principal("ann")).await.unwrap()), (vec![3], 0));

    // The turn has changed since it was read.
    let stale = RowChange::Forget(CallRecords::Logs, ended(1, DAY), 1);
    let refused = store.append(&Commit::rows(vec![stale])).await;
    assert!(matches!(refused, Err(AppendError::Changed)), "{refused:?}");
}

/// A commit with the beginning of a turn, which can be replayed. `parent`: it is nested in this turn.
pub(crate) fn started(number: u64, at: u64, parent: Option<u64>) -> Commit {
    let parent = parent.map(|parent| {
        let call = "a".parse().unwrap();
        let (plugin, tool) = ("test".parse().unwrap(), "tool".into());
        Box::new(Parent { conversation: conversation("c"), turn: turn(parent), call, plugin, tool, depth: 1 })
    });
    let event = Event::TurnStarted {
        turn: turn(number),
        conversation: conversation("c"),
        caller: principal("ann"),
        rejection: Rejection::default(),
        context: None,
        parent,
        at: time(at),
    };
    events(number, 0, vec![event])
}

pub(crate) async fn logs_count_from_the_end_of_their_turn(store: Subject) {
    let kept = async || store.kept_bytes(&principal("ann")).await.unwrap();
    let end = |number, at| {
        let rows = [RowChange::Ended(ended(number, at), TurnEnd::Settled), RowChange::Kept(principal("ann"))];
        commit(number, 1, 1).with(rows)
    };
    for number in [1, 2] {
        store.append(&commit(number, 0, 1).with([RowChange::Kept(principal("ann"))])).await.unwrap();
    }
    store.append(&end(1, 10)).await.unwrap();
    let silent = to_remove(&store, 1).await.bytes;
    let before = kept().await;

    let large = LogLine { at: time(1), level: Level::Debug, text: "x".repeat(200 << 10) };
    write(&store, &log(2, 1, 1)).await;
    write(&store, &RunLog { lines: vec![large.clone()], ..log(2, 2, 1) }).await;
    assert_eq!(kept().await, before, "the turn is open");
    let late = large.clone();
    // The log that comes with the end replaces an earlier one, which does not count any more.
    let last = [RowChange::RunLog(log(2, 2, 9)), RowChange::RunLog(RunLog { lines: vec![large], ..log(2, 3, 1) })];
    store.append(&end(2, 20).with(last)).await.unwrap();
    let ended = to_remove(&store, 2).await;
    assert!((200 << 10..210 << 10).contains(&(ended.bytes - silent)), "{} and {silent}", ended.bytes);
    assert_eq!(kept().await - before, ended.bytes - silent / 2, "one of two equally long commits was counted before");

    let (first, all) = (to_remove(&store, 1).await, kept().await);
    assert_eq!(all, first.bytes + ended.bytes);
    // A log that was written after the end is larger than all that counts, and takes nothing from other turns.
    write(&store, &RunLog { lines: vec![late], ..log(1, 1, 1) }).await;
    assert_eq!(kept().await, all);
    store.append(&Commit::rows(vec![RowChange::Forget(CallRecords::Logs, first.ended, first.bytes)])).await.unwrap();
    assert_eq!((read(&store, 1, 0).await, kept().await), (Vec::new(), ended.bytes));
    assert_eq!(to_remove(&store, 1).await.bytes, 0);
    store.append(&removal([ended])).await.unwrap();
    assert_eq!(kept().await, 0);
}
