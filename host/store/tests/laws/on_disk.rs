//! Promises of the store on disk: it keeps data, finds damage, and does not touch other files.

use std::fs;
use std::path::Path;

use dispatch::ports::{
    Audit as _, Commit, Facts, Feed, Filter, Health as _, Indexes as _, Journals as _, Log as _, Outbox as _, Position,
    RowChange,
};
use domain::{Digest, Event, Outcome, Receipt, event::CallEvent, journal::JournalSummary};

use crate::given::{self, commit, conversation, due, events, fact, large_fact, principal, turn, with};
use crate::journals;
use crate::store::{NamespaceQuota, OpenError, SledStore, StoreSettings, open};

fn opened(folder: &Path) -> SledStore {
    open(folder, &StoreSettings::default()).unwrap()
}

/// Changes stored data, as a bug, a faulty disk or a newer host would.
fn tamper(folder: &Path, change: impl FnOnce(&sled::Db)) {
    let db = crate::given::database(folder);
    change(&db);
    db.flush().unwrap();
}

fn log_key(turn: u128, number: u32) -> Vec<u8> {
    [b"e".as_slice(), &turn.to_be_bytes(), &number.to_be_bytes()].concat()
}

#[tokio::test]
async fn commit_waits_for_one_sync() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let before = store.health().syncs;
    for number in 0..3 {
        store.append(&commit(1, number, 1)).await.unwrap();
    }
    assert_eq!(store.health().syncs - before, 3);
    // The record is a file, which has a name in a folder.
    store.append(&events(2, 0, vec![large_fact(1, 200 << 10)])).await.unwrap();
    assert_eq!(store.health().syncs - before, 6);
}

#[tokio::test]
async fn a_store_remembers_everything() {
    let folder = tempfile::tempdir().unwrap();
    let feed = Feed::Conversation(conversation("c"));
    let index = [
        given::owner("ann"),
        given::call_of(1, "a"),
        given::due_of(1, None, Some(due(5, true))),
        RowChange::Suspension(given::row(1, given::OPEN)),
        RowChange::Delivery(given::delivery(1, "pager")),
    ];
    let store = opened(folder.path());
    let first = store.append(&with(commit(1, 0, 1), index)).await.unwrap();
    let second = store.append(&given::record(given::plugin(1))).await.unwrap();
    store.key_value().set("p", "b", b"k", b"v", NamespaceQuota::UNBOUNDED).unwrap();
    store.sync().await.unwrap();
    store.append(&given::started(given::start(1))).await.unwrap();
    let head = store.head().await.unwrap();
    let (log, followed) =
        (store.load(turn(1)).await.unwrap(), store.follow(&feed, Position(0), 9, usize::MAX).await.unwrap());
    drop(store);

    let store = opened(folder.path());
    assert_eq!(store.load(turn(1)).await.unwrap(), log);
    assert_eq!(store.follow(&feed, Position(0), 9, usize::MAX).await.unwrap(), followed);
    assert_eq!(store.follow(&Feed::Host, Position(0), 9, usize::MAX).await.unwrap()[0].position, second);
    assert_eq!(store.owner(&conversation("c")).await.unwrap(), Some(principal("ann")));
    assert_eq!(store.find_call(&conversation("c"), &given::call("a")).await.unwrap(), Some(turn(1)));
    assert_eq!(store.due(None, given::time(5), 9).await.unwrap(), [(turn(1), due(5, true))]);
    assert_eq!(store.unfinished(None, 9).await.unwrap(), [(turn(1), due(5, true))]);
    assert_eq!(store.suspensions(&Filter::default(), None, 9).await.unwrap().rows, [given::row(1, given::OPEN)]);
    let due = store.deliveries_due("pager", given::time(u64::MAX), 9).await.unwrap();
    assert_eq!(due, [given::delivery(1, "pager")]);
    let audited = store.audit(Position(0), 9).await.unwrap();
    assert_eq!(audited.iter().map(|audited| audited.head.position).collect::<Vec<_>>(), [first, second, head.position]);
    assert_eq!((store.head().await.unwrap(), store.last_start().await.unwrap()), (head, Some(given::start(1))));
    assert_eq!(store.key_value().get("p", "b", b"k").unwrap().as_deref(), Some(b"v".as_slice()));
    assert!(store.append(&commit(1, 1, 2)).await.unwrap() > second, "positions go on where they were");
    assert_eq!(store.check().unwrap().problems, []);
}

#[tokio::test]
async fn large_records_are_files_of_ours_and_not_of_sled() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    // 60 KiB is the largest that stays in the tree, and a page holds many of them; 300 KiB goes to a file.
    for (number, size) in (0..).zip([60 << 10; 200].into_iter().chain([300 << 10; 5])) {
        store.append(&events(1, number, vec![large_fact(number.into(), size)])).await.unwrap();
    }
    for number in 0..200_u32 {
        store.key_value().set("p", "b", &number.to_be_bytes(), &vec![7; 64 << 10], NamespaceQuota::UNBOUNDED).unwrap();
    }
    // The same content again is the same file.
    store.append(&events(2, 0, vec![large_fact(204, 300 << 10)])).await.unwrap();
    let findings = vec!["y".repeat(1 << 20)];
    let rejected =
        domain::event::PluginEvent { change: domain::event::PluginChange::Rejected { findings }, ..given::plugin(1) };
    let at = store.append(&given::record(rejected.clone())).await.unwrap();
    drop(store);

    let store = opened(folder.path());
    let loaded = store.load(turn(1)).await.unwrap().found().unwrap();
    let sizes = (0..).zip([60 << 10; 200].into_iter().chain([300 << 10; 5]));
    assert_eq!(loaded.events, sizes.map(|(number, size)| large_fact(number, size)).collect::<Vec<_>>());
    assert_eq!(store.audit(Position(at.0 - 1), 1).await.unwrap()[0].facts, Facts::Plugin(rejected));
    let files = |name: &str| fs::read_dir(folder.path().join(name)).unwrap().count();
    assert_eq!(files("blobs"), 6);
    assert_eq!(files("sled/blobs"), 0, "sled does not sync these");
    assert_eq!(store.check().unwrap().problems, []);
}

#[tokio::test]
async fn a_damaged_blob_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    store.append(&events(1, 0, vec![large_fact(1, 300 << 10)])).await.unwrap();
    let blob = fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
    fs::write(blob, "[]").unwrap();
    let fault = store.load(turn(1)).await.unwrap_err();
    assert!(fault.to_string().contains("is damaged: its content has another digest"), "{fault}");
    assert_eq!(store.check().unwrap().problems.len(), 2, "the commit, and its link");
}

#[tokio::test]
async fn a_page_of_a_feed_reads_no_record_beyond_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, feed) = (opened(folder.path()), Feed::Conversation(conversation("c")));
    store.append(&events(1, 0, vec![large_fact(1, 300 << 10)])).await.unwrap();
    let files = || fs::read_dir(folder.path().join("blobs")).unwrap().map(|file| file.unwrap().path());
    let first: Vec<_> = files().collect();
    store.append(&events(1, 1, vec![large_fact(2, 300 << 10)])).await.unwrap();
    // Reading the second record fails, so a page without an error did not read it.
    let second = files().find(|file| !first.contains(file)).unwrap();
    fs::write(&second, vec![0; 300 << 10]).unwrap();
    assert_eq!(store.follow(&feed, Position(0), 9, 1 << 10).await.unwrap().len(), 1);
    let second_page = store.follow(&feed, Position(1), 9, 1 << 10).await.unwrap();
    assert_eq!(second_page[0].facts, Facts::Unreadable { turn: Some(turn(1)) });
    fs::remove_file(&second).unwrap();
    assert_eq!(store.follow(&feed, Position(0), 9, usize::MAX).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_folder_is_used_by_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened twice") };
    assert!(matches!(refused, OpenError::InUse { .. }));
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    let data = store.key_value();
    drop(store);
    assert!(open(folder.path(), &StoreSettings::default()).is_err(), "a handle on the plugins' data is use, too");
    drop(data);
    opened(folder.path());
}

#[tokio::test]
async fn an_unfinished_snapshot_of_a_killed_process_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    opened(folder.path()).append(&commit(1, 0, 1)).await.unwrap();
    let unfinished = folder.path().join("sled/snap.0000000000000001.generating");
    fs::write(&unfinished, "half of it").unwrap();
    let half = folder.path().join("blobs/abc.0.unfinished");
    fs::write(&half, "half of it").unwrap();
    let store = opened(folder.path());
    assert!(!unfinished.exists() && !half.exists());
    assert!(store.load(turn(1)).await.unwrap().found().is_some());
}

#[tokio::test]
async fn a_record_of_a_newer_host_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    opened(folder.path()).append(&commit(1, 0, 1)).await.unwrap();
    tamper(folder.path(), |db| {
        let mut value = db.get(log_key(1, 0)).unwrap().unwrap();
        value[8] = 99;
        db.insert(log_key(1, 0), value).unwrap();
    });
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened") };
    assert!(matches!(refused, OpenError::Newer { found: 99, known: 8, .. }), "{refused}");
    assert!(refused.to_string().ends_with("start a newer toolgate"), "and not: restore it from a copy: {refused}");
}

#[tokio::test]
async fn a_folder_of_a_newer_host_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(opened(folder.path()));
    tamper(folder.path(), |db| drop(db.insert("mformat", &[9]).unwrap()));
    let refused = open(folder.path(), &StoreSettings::default());
    assert!(matches!(refused, Err(OpenError::Newer { found: 9, known: 8, .. })));
}

#[tokio::test]
async fn a_folder_of_format_4_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    opened(folder.path()).append(&commit(1, 0, 1)).await.unwrap();
    tamper(folder.path(), |db| drop(db.insert("mformat", &[4]).unwrap()));
    let store = opened(folder.path());
    assert_eq!(store.load(turn(1)).await.unwrap().found().unwrap().events, [fact(1)]);
    assert_eq!(store.check().unwrap().problems, []);
    drop(store);
    tamper(folder.path(), |db| assert_eq!(db.get("mformat").unwrap().unwrap(), [8], "older hosts refuse it now"));
}

#[tokio::test]
async fn a_folder_from_before_the_first_release_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(opened(folder.path()));
    tamper(folder.path(), |db| drop(db.insert("mformat", &[1]).unwrap()));
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened") };
    assert!(matches!(refused, OpenError::Older { found: 1, known: 8, .. }), "{refused}");
    assert!(refused.to_string().ends_with("keep it, and start with another folder"), "{refused}");
}

#[tokio::test]
async fn damage_is_found_when_it_is_read_and_by_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    // More turns than are checked at opening, so that only a read of the first one finds the damage.
    for number in 1..=300 {
        store.append(&commit(number, 0, 1)).await.unwrap();
        store.append(&commit(number, 1, 1)).await.unwrap();
    }
    drop(store);
    tamper(folder.path(), |db| {
        db.remove(log_key(1, 0)).unwrap();
        db.insert(log_key(2, 1), b"\0\0\0\0\0\0\0\x01\x01[{").unwrap();
    });
    let store = opened(folder.path());
    let missing = store.load(turn(1)).await.unwrap_err().to_string();
    assert!(missing.contains("commit 0 of turn_00000000000000000000000000000001"), "{missing}");
    let damaged = store.load(turn(2)).await.unwrap_err().to_string();
    assert!(damaged.contains("commit 1 of turn_00000000000000000000000000000002: it is damaged"), "{damaged}");
    let problems = store.check().unwrap().problems;
    assert_eq!(problems.len(), 5, "the two, the feed's entry that points nowhere, and the links of both: {problems:?}");
}

/// The key of the head of a journal, or of one of its entries.
pub(crate) fn journal_key(turn: u128, number: Option<u32>) -> Vec<u8> {
    let kind = if number.is_some() { b"M" } else { b"N" };
    let mut key = [kind.as_slice(), &turn.to_be_bytes(), &journals::CALL.0.to_be_bytes()].concat();
    key.extend(number.into_iter().flat_map(u32::to_be_bytes));
    key
}

#[tokio::test]
async fn a_journal_that_is_not_whole_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    for number in 1..=4 {
        store.append(&commit(number, 0, 1).with([journals::names(number, Some(1))])).await.unwrap();
        let rows = (0..4).map(|entry| journals::row(number, 1, journals::entry(entry)));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    assert_eq!(store.check().unwrap().problems, []);
    drop(store);
    tamper(folder.path(), |db| {
        // A gap, a lost head, a head that is older than its entries, and an entry under the key of another one.
        assert!(db.remove(journal_key(1, Some(1))).unwrap().is_some());
        assert!(db.remove(journal_key(2, None)).unwrap().is_some());
        let head = db.get(journal_key(3, None)).unwrap().unwrap();
        // Its length is behind a stamp and the run.
        db.insert(journal_key(3, None), [&head[..12], &3_u32.to_be_bytes(), &head[16..]].concat()).unwrap();
        let entry = db.get(journal_key(4, Some(1))).unwrap().unwrap();
        db.insert(journal_key(4, Some(3)), entry).unwrap();
    });
    let store = opened(folder.path());
    let problems: Vec<_> = store.check().unwrap().problems.iter().map(ToString::to_string).collect();
    for (text, count) in [
        ("it points to the journal of a call, which is missing", 1),
        ("its head is missing", 4),
        ("entry 3 is beyond its length 3", 1),
        ("entry 3 has another number", 1),
    ] {
        assert_eq!(problems.iter().filter(|problem| problem.ends_with(text)).count(), count, "{text}: {problems:#?}");
    }
    assert_eq!(problems.len(), 7, "{problems:#?}");
    for number in 1..=4 {
        let fault = store.journal(turn(number), journals::CALL).await.unwrap_err();
        assert!(fault.is_damage(), "{fault}");
    }
}

#[tokio::test]
async fn a_receipt_that_does_not_fit_its_journal_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let entries: Vec<_> = (0..3).map(journals::entry).collect();
    // A run that was stopped has recorded the last entry.
    let fits = JournalSummary::of(&entries[..2]);
    for (number, digest) in [(1, fits.digest), (2, Digest::of("another"))] {
        store.append(&commit(number, 0, 1).with([journals::names(number, Some(1))])).await.unwrap();
        let rows = entries.iter().map(|entry| journals::row(number, 1, entry.clone()));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
        let journal = Some(JournalSummary { digest, ..fits });
        let (outcome, receipt, at) =
            (Outcome::InDoubt, Some(Receipt { journal, ..Receipt::default() }), given::time(9));
        let settled = Event::Call { call: journals::CALL, event: CallEvent::Settled { outcome, receipt, at } };
        store.append(&events(number, 1, vec![settled])).await.unwrap();
    }
    let problems: Vec<_> = store.check().unwrap().problems.iter().map(ToString::to_string).collect();
    let [problem] = &*problems else { panic!("{problems:#?}") };
    assert!(problem.ends_with("the receipt of call 0 does not fit the first 2 entries of its journal"), "{problem}");
}
