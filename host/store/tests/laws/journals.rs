//! Laws of the journals of durable calls.

use std::sync::Arc;

use dispatch::ports::{AppendError, CallRecords, Commit, EndedTurn, JournalRow, RowChange};
use dispatch::{Hold, Mode, Pruned, RetentionRules, prune};
use domain::journal::{Entry, JournalBounds, Record, RefusedForNow, ValueChange};
use domain::{CallIndex, Digest, Span, event::TurnEnd};

use crate::given::{Subject, commit, principal, time, turn};
use crate::removing::{ended, removal, to_remove, turn_that_ended};
use crate::run_logs::started;
use crate::store::{KeyValue, MemoryStore, StoreSettings, open};

pub(crate) const CALL: CallIndex = CallIndex(0);

pub(crate) fn entry(number: u32) -> Entry {
    let record = match number % 4 {
        0 | 2 => Record::Result("x".repeat(if number == 2 { 200 << 10 } else { 5 }).into()),
        3 => {
            let (until, wait) = (time(u64::from(number) + 1_000), Span::from_secs(1));
            Record::Refused(RefusedForNow { until, wait, in_doubt: false })
        }
        _ => Record::Begun("POST https://api.example.com/".into()),
    };
    let (digest, at) = (Digest::of(number.to_be_bytes()), time(u64::from(number)));
    let (run, function, salt) = (Some(1), Some("key-value get".into()), (number == 0).then(|| Digest::of("salt")));
    Entry { number, step: number / 3, run, function, digest, at, salt, transferred: None, record }
}

pub(crate) fn names(number: u64, run: Option<u32>) -> RowChange {
    RowChange::JournalRun { turn: turn(number), call: CALL, run }
}

pub(crate) fn row(number: u64, run: u32, entry: Entry) -> RowChange {
    RowChange::JournalEntry(JournalRow { turn: turn(number), call: CALL, run, entry })
}

async fn append(store: &Subject, rows: impl IntoIterator<Item = RowChange>) -> Result<(), AppendError> {
    store.append(&Commit::rows(rows.into_iter().collect())).await.map(drop)
}

pub(crate) fn is_superseded(done: Result<(), AppendError>) -> bool {
    matches!(done, Err(AppendError::Superseded))
}

pub(crate) async fn a_journal_is_what_was_appended_to_it(store: Subject) {
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    let head = store.head().await.unwrap();
    append(&store, [row(1, 1, entry(0)), row(1, 1, entry(1))]).await.unwrap();
    append(&store, [row(1, 1, entry(2))]).await.unwrap();
    let expected = [entry(0), entry(1), entry(2)];
    assert_eq!(store.journal(turn(1), CALL).await.unwrap(), expected);
    assert_eq!(store.journal(turn(1), CallIndex(1)).await.unwrap(), []);
    assert_eq!(store.journal(turn(2), CALL).await.unwrap(), []);
    assert_eq!(store.head().await.unwrap(), head, "journals are not in the audit");
}

pub(crate) async fn a_journal_counts_as_it_is_written(store: Subject) {
    let counted = || RowChange::Kept(principal("ann"));
    let kept = async || store.kept_bytes(&principal("ann")).await.unwrap();
    store.append(&commit(1, 0, 1).with([names(1, Some(1)), counted()])).await.unwrap();
    let before = kept().await;
    append(&store, [row(1, 1, entry(0)), row(1, 1, entry(1)), counted()]).await.unwrap();
    append(&store, [row(1, 1, entry(2)), counted()]).await.unwrap();
    let journal = kept().await - before;
    assert!((200 << 10..202 << 10).contains(&journal), "{journal} bytes while the turn is open");
    let end = [names(1, None), RowChange::Ended(ended(1, 10), TurnEnd::Settled), counted()];
    store.append(&commit(1, 1, 1).with(end)).await.unwrap();
    let turn = to_remove(&store, 1).await;
    assert_eq!(kept().await, turn.bytes, "the end counts no entry again");
    store.append(&removal([turn])).await.unwrap();
    assert_eq!(kept().await, 0);
}

pub(crate) async fn a_journal_is_read_in_pages(store: Subject) {
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    append(&store, (0..6).map(|number| row(1, 1, entry(number)))).await.unwrap();
    let read = async |from, entries, bytes| {
        let page = store.journal_page(turn(1), CALL, from, JournalBounds { entries, bytes }).await.unwrap();
        assert_eq!(page.length, 6);
        page.entries.iter().map(|entry| entry.number).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 2, usize::MAX).await, [0, 1]);
    assert_eq!(read(4, 10, usize::MAX).await, [4, 5]);
    assert!(read(6, 10, usize::MAX).await.is_empty());
    // The entry 2 has 200 KiB.
    assert_eq!(read(0, 10, 100 << 10).await, [0, 1]);
    assert_eq!(read(2, 10, 100 << 10).await, [2], "a page has at least one entry");
    assert_eq!(read(3, 10, 100 << 10).await, [3, 4, 5]);
}

pub(crate) async fn only_the_named_run_appends(store: Subject) {
    assert!(is_superseded(append(&store, [row(1, 1, entry(0))]).await), "no run is named");
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    append(&store, [row(1, 1, entry(0))]).await.unwrap();
    store.append(&commit(1, 1, 1).with([names(1, Some(2))])).await.unwrap();
    assert!(is_superseded(append(&store, [row(1, 1, entry(1))]).await), "another run has begun");
    append(&store, [row(1, 2, entry(1))]).await.unwrap();
    store.append(&commit(1, 2, 1).with([names(1, None)])).await.unwrap();
    for run in [0, 1, 2] {
        assert!(is_superseded(append(&store, [row(1, run, entry(2))]).await), "the call has ended");
    }
    assert_eq!(store.journal(turn(1), CALL).await.unwrap(), [entry(0), entry(1)]);
}

pub(crate) async fn an_entry_has_the_next_number(store: Subject) {
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    append(&store, [row(1, 1, entry(0))]).await.unwrap();
    for wrong in [0, 2] {
        assert!(is_superseded(append(&store, [row(1, 1, entry(wrong))]).await));
    }
    assert!(is_superseded(append(&store, [row(1, 1, entry(1)), row(1, 1, entry(3))]).await));
    assert_eq!(store.journal(turn(1), CALL).await.unwrap(), [entry(0)], "a refused commit changes nothing");
    let both = async |number| append(&store, [row(1, 1, entry(number))]).await;
    let (one, other) = tokio::join!(both(1), both(1));
    assert!(is_superseded(one) != is_superseded(other), "one of two wins");
}

pub(crate) async fn journals_go_with_their_turn(store: Subject) {
    for number in [1, 2] {
        turn_that_ended(&store, number, number * 10).await;
        append(&store, [names(number, Some(1)), row(number, 1, entry(0)), row(number, 1, entry(1))]).await.unwrap();
    }
    let gone = to_remove(&store, 1).await;
    store.append(&removal([gone])).await.unwrap();
    assert_eq!(store.journal(turn(1), CALL).await.unwrap(), []);
    assert!(is_superseded(append(&store, [row(1, 1, entry(0))]).await));
    assert_eq!(store.journal(turn(2), CALL).await.unwrap().len(), 2, "the journal of another turn stays");
}

pub(crate) async fn old_journals_go_before_their_turn(store: Subject) {
    const DAY: u64 = 24 * 60 * 60 * 1_000;
    // The third turn is nested in the sixth, which is open.
    for (number, caller, parent) in
        [(1, "ann", None), (2, "held", None), (3, "ann", Some(6)), (4, "ann", None), (5, "ann", None), (6, "ann", None)]
    {
        let begun = started(number, number * DAY, parent).with([names(number, Some(1))]);
        store.append(&begun).await.unwrap();
        // The fourth call has recorded nothing.
        let entries = (0..3).filter(|_| number != 4).map(|of| row(number, 1, entry(of)));
        append(&store, entries.chain([RowChange::Kept(principal(caller))])).await.unwrap();
        if number < 6 {
            let row = EndedTurn { caller: principal(caller), ..ended(number, number * DAY) };
            let end =
                [names(number, None), RowChange::Ended(row, TurnEnd::Settled), RowChange::Kept(principal(caller))];
            store.append(&commit(number, 1, 1).with(end)).await.unwrap();
        }
    }
    let with_journals = async || {
        let mut found = Vec::new();
        for number in 1..=6 {
            found.extend((!store.journal(turn(number), CALL).await.unwrap().is_empty()).then_some(number));
        }
        found
    };
    let kept = async || store.kept_bytes(&principal("ann")).await.unwrap();
    let hold = Hold { callers: [principal("held")].into(), ..Hold::default() };
    let (journals, turns) = (Some(Span::from_millis(3 * DAY)), Some(Span::from_millis(30 * DAY)));
    let rules = RetentionRules { journals, turns, hold, ..RetentionRules::default() };
    let prune = async |day: u64, mode| {
        prune(store.clone(), store.clone(), store.clone(), rules.clone(), time(day * DAY), mode).await.unwrap()
    };
    let (head, before) = (store.head().await.unwrap(), kept().await);
    let dry = prune(7, Mode::DryRun).await;
    assert!((200 << 10..202 << 10).contains(&dry.journals.bytes), "{dry:?}");
    assert_eq!(with_journals().await, [1, 2, 3, 5, 6]);
    assert_eq!(prune(7, Mode::Remove).await, dry);
    assert_eq!(with_journals().await, [2, 3, 5, 6], "on hold, nested in an open turn, too young, open");
    assert_eq!(store.head().await.unwrap(), head, "journals are not in the audit");
    assert_eq!(before - kept().await, dry.journals.bytes, "they do not count any more");
    assert_eq!(prune(7, Mode::Remove).await, Pruned::default());
    assert!(is_superseded(append(&store, [row(1, 1, entry(0))]).await), "nothing can be appended");
    let stale = RowChange::Forget(CallRecords::Journals, ended(5, 5 * DAY), 1);
    assert!(matches!(append(&store, [stale]).await, Err(AppendError::Changed)));
    // The turns can still be removed. Journals that go with a turn are not counted as journals.
    let done = prune(100, Mode::Remove).await;
    assert_eq!((done.journals.turns, done.removed.values().map(|of| of.turns).sum::<u64>()), (0, 3));
    assert_eq!(with_journals().await, [2, 3, 6]);
}

/// On each backend. The other laws need no access to the plugins' data.
#[tokio::test(flavor = "multi_thread")]
async fn values_change_with_their_entry() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, sled) = (MemoryStore::new(), open(folder.path(), &StoreSettings::default()).unwrap());
    let data = [memory.key_value(), sled.key_value()];
    let stores: [Subject; 2] = [Arc::new(memory), Arc::new(sled)];
    for (store, data) in stores.into_iter().zip(data) {
        changes_values(store, data).await;
    }
    #[cfg(feature = "postgres")]
    if let Some(store) = crate::on_server::store().await {
        let data = store.key_value();
        changes_values(Arc::new(store), data).await;
    }
}

async fn changes_values(store: Subject, data: KeyValue) {
    let value = || data.get("p", "b", b"k").unwrap();
    // The namespace and the bucket, each after its length, and the key.
    let key = b"\0\x01p\0\x01bk".to_vec();
    let change = |old: Option<&str>, value: Option<&str>| {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        RowChange::Value(ValueChange { key: key.clone(), old: bytes(old), value: bytes(value) })
    };
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    append(&store, [row(1, 1, entry(0)), change(None, Some("1"))]).await.unwrap();
    assert_eq!(value().as_deref(), Some(b"1".as_slice()));
    store.append(&commit(1, 1, 1).with([names(1, Some(2))])).await.unwrap();
    assert!(is_superseded(append(&store, [row(1, 1, entry(1)), change(Some("1"), Some("2"))]).await));
    assert!(is_superseded(append(&store, [row(1, 2, entry(3)), change(Some("1"), Some("2"))]).await));
    assert_eq!(value().as_deref(), Some(b"1".as_slice()), "a superseded commit changes no value");
    append(&store, [row(1, 2, entry(1)), change(Some("1"), Some("2"))]).await.unwrap();
    let twice = [change(Some("2"), Some("3")), change(Some("3"), Some("4"))];
    append(&store, [row(1, 2, entry(2))].into_iter().chain(twice)).await.unwrap();
    assert_eq!(value().as_deref(), Some(b"4".as_slice()));
    append(&store, [row(1, 2, entry(3)), change(Some("4"), None)]).await.unwrap();
    assert_eq!(value(), None);
    append(&store, [row(1, 2, entry(4)), change(None, None)]).await.unwrap();
    append(&store, [row(1, 2, entry(5)), change(None, Some("5"))]).await.unwrap();
    assert_eq!(value().as_deref(), Some(b"5".as_slice()));
}
