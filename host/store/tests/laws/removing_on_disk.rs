//! Removals on disk: the files of large records, what another program can forge, and folders of the format before.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dispatch::ports::{
    AudienceChange, Audit as _, Commit, DeliveryRow, DeliveryState, EndedTurn, EndedTurns as _, Feed, Head, Loaded,
    Log as _, LogLine, Position, Recorded, RowChange, RunLog, TurnToRemove,
};
use domain::{
    CallIndex, ConversationId, Digest, Event, Json, Timestamp,
    call::Level,
    event::{CallEvent, Rejection, TurnEnd},
    suspension::{Audience, SuspensionKind},
};

use crate::given::{self, Subject, call, call_of, commit, events, large_fact, principal, suspension, turn};
use crate::removing::{ended, removal, to_remove, turn_that_ended};
use crate::store::{OpenError, SledStore, StoreSettings, VerifyError, open, verify};

const LARGE: usize = 200 << 10;

fn opened(folder: &Path) -> Arc<SledStore> {
    Arc::new(open(folder, &StoreSettings::default()).unwrap())
}

fn blobs(folder: &Path) -> usize {
    fs::read_dir(folder.join("blobs")).unwrap().count()
}

/// A turn that ends with its only commit, which is as large as the others of the same content.
async fn large_turn(store: &Subject, number: u64, content: u64) {
    let ended = RowChange::Ended(ended(number, number), TurnEnd::Settled);
    store.append(&events(number, 0, vec![large_fact(content, LARGE)]).with([ended])).await.unwrap();
}

async fn remove(store: &Subject, number: u64) {
    let turn = to_remove(store, number).await;
    store.append(&removal([turn])).await.unwrap();
}

#[tokio::test]
async fn large_records_go_when_nothing_refers_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    for (number, content) in [(1, 1), (2, 1), (3, 2)] {
        large_turn(&subject, number, content).await;
    }
    assert_eq!((blobs(folder.path()), store.reclaim().await.unwrap()), (2, 0));
    remove(&subject, 1).await;
    assert_eq!(store.reclaim().await.unwrap(), 0, "another turn has the same record");
    assert!(store.load(turn(2)).await.unwrap().found().is_some());
    remove(&subject, 3).await;
    drop((store, subject));
    // The host was killed after the commit and before the file was removed.
    let store = opened(folder.path());
    assert_eq!((blobs(folder.path()), store.reclaim().await.unwrap(), blobs(folder.path())), (2, 1, 1));
    let subject: Subject = store.clone();
    remove(&subject, 2).await;
    assert_eq!((store.reclaim().await.unwrap(), blobs(folder.path())), (1, 0));
    assert_eq!(store.check().unwrap().problems, []);
    drop((store, subject));
    assert!(verify(folder.path(), &StoreSettings::default(), Vec::new()).is_ok());
}

/// As many commits as 27 durable calls with 1,000 steps make. All of their digests are larger than a page of sled.
#[tokio::test(flavor = "multi_thread")]
async fn remains_of_a_long_turn_are_no_file_of_sled() {
    const COMMITS: u32 = 54_000;
    const AT_ONCE: u32 = 50;
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    for first in (0..COMMITS).step_by(AT_ONCE as usize) {
        let commits = (first..COMMITS.min(first + AT_ONCE)).map(|number| {
            let ended = RowChange::Ended(ended(1, 1), TurnEnd::Settled);
            let commit = commit(1, number, 1).with((number + 1 == COMMITS).then_some(ended));
            let store = subject.clone();
            async move { store.append(&commit).await.unwrap() }
        });
        futures::future::join_all(commits).await;
    }
    let turn = to_remove(&subject, 1).await;
    assert_eq!(turn.commits, COMMITS);
    store.append(&removal([turn])).await.unwrap();
    drop((store, subject));
    assert_eq!(fs::read_dir(folder.path().join("sled/blobs")).unwrap().count(), 0, "sled does not sync these");

    let store = opened(folder.path());
    assert_eq!(store.check().unwrap().problems, []);
    let removed = store.chain(Position(u64::from(COMMITS) - 1), 1).await.unwrap();
    assert!(matches!(removed[0].record, Recorded::Removed { by: Some(Position(54_001)), .. }), "{removed:?}");
    let mut lines = Vec::new();
    store.export(&mut lines).unwrap();
    let last = format!("\"number\":{},\"conversation\":\"c\"}}}},\"content\":{{\"removed\"", COMMITS - 1);
    assert_eq!(String::from_utf8(lines).unwrap().matches(&last).count(), 1);
    drop(store);
    assert!(verify(folder.path(), &StoreSettings::default(), Vec::new()).is_ok());
}

#[tokio::test]
async fn removed_turn_leaves_only_its_ids_and_digests() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    // A record, the row, the audience and the log of a run of this turn are files.
    let row = EndedTurn { tools: vec!["t".repeat(LARGE)], ..ended(1, 10) };
    let who = (0..2_000).map(|n| format!("principal:{n:0>100}").parse().unwrap()).collect();
    let audience =
        Audience { kind: SuspensionKind::Approval, needs: vec![who], without: Vec::new(), delegates: Vec::new() };
    let of = |before, after| {
        let (conversation, caller) = (row.conversation.clone(), row.caller.clone());
        let change =
            AudienceChange { suspension: suspension(1), conversation, caller, tool: "t".into(), before, after };
        RowChange::Audience(Box::new(change))
    };
    let log = |written: u64| {
        let line = LogLine { at: given::time(1), level: Level::Info, text: format!("{written}{}", "x".repeat(LARGE)) };
        RowChange::RunLog(RunLog { turn: turn(1), call: CallIndex(0), run: 1, written, lines: vec![line] })
    };
    let owner = RowChange::Owner { conversation: row.conversation.clone(), owner: row.caller.clone() };
    let kept = || RowChange::Kept(row.caller.clone());
    let delivered = DeliveryRow { state: DeliveryState::Delivered, ..given::delivery(1, "pager") };
    let begins = [owner, call_of(1, "a"), of(None, Some(audience.clone())), log(1), kept()];
    store.append(&events(1, 0, vec![large_fact(1, LARGE)]).with(begins)).await.unwrap();
    let waited = RowChange::Suspension(given::row(1, given::ENDED));
    let rows = [of(Some(audience), None), waited, RowChange::Delivery(delivered), log(2), kept()];
    let ends = rows.into_iter().chain([RowChange::Ended(row.clone(), TurnEnd::Settled)]);
    store.append(&commit(1, 1, 1).with(ends)).await.unwrap();
    let turn = TurnToRemove { suspensions: vec![suspension(1)], ..to_remove(&subject, 1).await };
    store.append(&removal([turn])).await.unwrap();
    assert_eq!((store.reclaim().await.unwrap(), blobs(folder.path())), (5, 0));
    drop((store, subject));
    let references = |db: &sled::Db| db.scan_prefix(b"l").count();
    tamper(folder.path(), |db| {
        // The turn, its chain, its call id, the removal, the owner of the conversation, and the store's own entries.
        let kinds: BTreeSet<char> = db.iter().keys().map(|key| char::from(key.unwrap()[0])).collect();
        assert_eq!(kinds.into_iter().collect::<String>(), "Wacmpv");
        // As older hosts left them.
        db.insert([b"l".as_slice(), &[7; 32], b"s0123456789abcdef"].concat(), b"").unwrap();
        db.insert("mformat", &[6]).unwrap();
    });
    drop(opened(folder.path()));
    tamper(folder.path(), |db| assert_eq!(references(db), 0, "a migration removes them"));
}

#[tokio::test]
async fn size_of_a_turn_survives_refused_commits_and_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut subject: Subject = opened(folder.path());
    for number in [1, 2, 3] {
        subject.append(&events(number, 0, vec![large_fact(number, LARGE)])).await.unwrap();
        subject.append(&commit(number, 1, 1)).await.unwrap();
    }
    subject.append(&commit(2, 2, 1).with([call_of(2, "a")])).await.unwrap();
    for refused in [commit(1, 3, 1), commit(1, 0, 1), commit(1, 2, 1).with([call_of(1, "a")])] {
        assert!(subject.append(&refused).await.is_err());
    }
    let end = async |subject: &Subject, number, expected| {
        let end = RowChange::Ended(ended(number, 10), TurnEnd::Settled);
        subject.append(&commit(number, expected, 1).with([end])).await.unwrap();
        to_remove(subject, number).await.bytes
    };
    let (one, two) = (end(&subject, 1, 2).await, end(&subject, 2, 3).await);
    drop(subject);
    subject = opened(folder.path());
    assert_eq!(end(&subject, 3, 2).await, one, "it was read");
    let small = two - one;
    assert!((LARGE as u64..LARGE as u64 + 4 * small).contains(&one), "{one} and {small}");
}

#[tokio::test]
async fn end_of_a_turn_of_this_host_reads_none_of_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let subject: Subject = opened(folder.path());
    subject.append(&events(1, 0, vec![large_fact(1, LARGE)])).await.unwrap();
    fs::remove_dir_all(folder.path().join("blobs")).unwrap();
    let end = RowChange::Ended(ended(1, 10), TurnEnd::Settled);
    subject.append(&commit(1, 1, 1).with([end])).await.unwrap();
    let (_, bytes) = subject.ended(None, 1).await.unwrap().remove(0);
    assert!((LARGE as u64..2 * LARGE as u64).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn a_failed_commit_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let refused = store.append(&events(1, 7, vec![large_fact(1, LARGE)])).await;
    assert!(refused.is_err() && blobs(folder.path()) == 1);
    assert_eq!((store.reclaim().await.unwrap(), blobs(folder.path())), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrent_commit_keeps_its_large_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    let commits = async {
        for number in 1..=40 {
            large_turn(&subject, number, 1).await;
            remove(&subject, number).await;
            large_turn(&subject, 100 + number, number % 3).await;
        }
    };
    let (ending, mut ended) = tokio::sync::oneshot::channel::<()>();
    let reclaims = async {
        while ended.try_recv().is_err() {
            store.reclaim().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(async { (commits.await, ending.send(()).unwrap()) }, reclaims);
    for number in 1..=40 {
        assert!(store.load(turn(100 + number)).await.unwrap().found().is_some(), "{number}");
    }
    assert_eq!(store.check().unwrap().problems, []);
}

fn tamper(folder: &Path, change: impl FnOnce(&sled::Db)) {
    let db = crate::given::database(folder);
    change(&db);
    db.flush().unwrap();
}

fn log_key(turn: u64, number: u32) -> Vec<u8> {
    [b"e".as_slice(), &u128::from(turn).to_be_bytes(), &number.to_be_bytes()].concat()
}

fn removed_key(turn: u64) -> Vec<u8> {
    [b"W".as_slice(), &u128::from(turn).to_be_bytes()].concat()
}

/// Removes the records of a turn as a removal does, and says that the commit at a position did it.
fn bury(db: &sled::Db, turn: u64, by: u64) {
    let mut remains = [&by.to_be_bytes(), [1].as_slice(), b"c"].concat();
    for number in 0..2 {
        let value = db.remove(log_key(turn, number)).unwrap().unwrap();
        remains.extend_from_slice(&value[..8]);
        remains.extend_from_slice(Digest::of(&value[8..]).as_bytes());
    }
    db.insert(removed_key(turn), remains).unwrap();
}

/// Makes the entries of format 4 from those of later ones.
fn unfold(db: &sled::Db) {
    for entry in db.scan_prefix(b"W") {
        let (key, value) = entry.unwrap();
        let length = usize::from(value[8]);
        let (conversation, records) = value[9..].split_at(length);
        for (number, record) in (0_u32..).zip(records.chunks(40)) {
            let tombstone = [&record[..8], &[255], &record[8..]].concat();
            db.insert([b"e".as_slice(), &key[1..], &number.to_be_bytes()].concat(), tombstone).unwrap();
        }
        db.insert([b"w".as_slice(), &key[1..]].concat(), [&value[..8], conversation].concat()).unwrap();
        db.remove(key).unwrap();
    }
    db.insert("mformat", &[4]).unwrap();
}

#[tokio::test]
async fn a_tombstone_without_its_removal_is_tampering() {
    type Deed = fn(&sled::Db);
    let deeds: [(&str, Deed, &str); 6] = [
        ("nothing says so", |db| bury(db, 2, 4), "position 3: its record was removed, and no later entry says so"),
        (
            "a removal of another turn is named",
            |db| bury(db, 2, 5),
            "position 3: its record was removed, and no later entry says so",
        ),
        ("the entry is removed", |db| drop(db.remove(removed_key(1)).unwrap()), "position 1: its record is missing"),
        (
            "the digest is edited",
            |db| {
                let mut value = db.get(removed_key(1)).unwrap().unwrap().to_vec();
                value[20] ^= 1;
                db.insert(removed_key(1), value).unwrap();
            },
            "position 1: its hash is",
        ),
        (
            "a removed record is added",
            |db| {
                let value = db.get(removed_key(1)).unwrap().unwrap();
                db.insert(removed_key(1), [&value[..], &3_u64.to_be_bytes(), &[7; 32]].concat()).unwrap();
            },
            "position 3: a removed record of",
        ),
        (
            "the removal is edited",
            |db| {
                let key = [b"p".as_slice(), &5_u64.to_be_bytes()].concat();
                let value = String::from_utf8(db.get(&key).unwrap().unwrap().to_vec()).unwrap();
                db.insert(key, value.replace("\"at\":1000", "\"at\":1001").as_bytes()).unwrap();
            },
            "position 5: its hash is",
        ),
    ];
    for (what, deed, expected) in deeds {
        let folder = tempfile::tempdir().unwrap();
        let store = opened(folder.path());
        let subject: Subject = store.clone();
        turn_that_ended(&subject, 1, 10).await;
        turn_that_ended(&subject, 2, 20).await;
        remove(&subject, 1).await;
        drop((store, subject));
        assert!(verify(folder.path(), &StoreSettings::default(), Vec::new()).is_ok());
        tamper(folder.path(), deed);
        let found = verify(folder.path(), &StoreSettings::default(), Vec::new());
        let Err(VerifyError::Tampered(found)) = found else { panic!("{what}: {found:?}") };
        assert!(found.to_string().starts_with(expected), "{what}: {found}");
    }
}

/// The events of a turn that has ended.
fn whole_turn(number: u64, at: u64) -> Vec<Event> {
    let (conversation, caller) = (ConversationId::new("c").unwrap(), principal("ann"));
    let at = Timestamp::from_millis(at);
    let started = Event::TurnStarted {
        turn: turn(number),
        conversation,
        caller,
        rejection: Rejection::default(),
        context: None,
        parent: None,
        at,
    };
    vec![started, large_fact(number % 2, LARGE), Event::TurnSettled { end: TurnEnd::Settled, at }]
}

#[tokio::test]
async fn an_interrupted_migration_of_a_folder_is_made_again() {
    let (folder, turns) = (tempfile::tempdir().unwrap(), 30);
    let store = opened(folder.path());
    let mut expected = Vec::new();
    for number in 1..=turns {
        let row = EndedTurn { tools: vec!["t".into()], ..ended(number, 1_000 - number) };
        let ended =
            events(number, 0, whole_turn(number, 1_000 - number)).with([RowChange::Ended(row, TurnEnd::Settled)]);
        store.append(&ended).await.unwrap();
    }
    store.append(&events(99, 0, whole_turn(99, 1)[..1].to_vec())).await.unwrap();
    expected.extend(store.ended(None, usize::MAX).await.unwrap());
    let ends = store.follow(&Feed::Host, Position(0), usize::MAX, usize::MAX).await.unwrap();
    assert_eq!(ends.len(), turns as usize);
    let head = store.head().await.unwrap();
    drop(store);
    // With none of the new entries, and with some of them, as after a kill.
    for kept in [0, 7] {
        tamper(folder.path(), |db| {
            for index in [b"i", b"l", b"E", b"F"] {
                let keys: Vec<_> = db.scan_prefix(index).keys().map(Result::unwrap).collect();
                keys.into_iter().skip(kept).for_each(|key| drop(db.remove(key).unwrap()));
            }
            db.insert("mformat", &[2]).unwrap();
        });
        assert_eq!(verify(folder.path(), &StoreSettings::default(), Vec::new()).unwrap(), head, "nothing is migrated");
        let store = opened(folder.path());
        assert_eq!(store.ended(None, usize::MAX).await.unwrap(), expected, "{kept}");
        assert_eq!(store.follow(&Feed::Host, Position(0), usize::MAX, usize::MAX).await.unwrap(), ends, "{kept}");
        assert_eq!(store.check().unwrap().problems, []);
        assert_eq!((store.head().await.unwrap(), store.reclaim().await.unwrap()), (head, 0));
    }
    tamper(folder.path(), |db| assert_eq!(db.get("mformat").unwrap().unwrap(), [8]));
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    for number in 1..=turns {
        remove(&subject, number).await;
    }
    assert_eq!((store.reclaim().await.unwrap(), blobs(folder.path())), (turns, 0));
    assert_eq!(store.load(turn(99)).await.unwrap().found().unwrap().version, 1);
}

#[tokio::test]
async fn a_migrated_turn_with_a_large_row_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    // The calls of this turn name tools of 70 KB together.
    let calls = (0..10).map(|number| requested(number, &"t".repeat(7_000 + usize::from(number))));
    let mut log = whole_turn(1, 10);
    log.splice(1..2, calls);
    store.append(&events(1, 0, log)).await.unwrap();
    drop(store);
    tamper(folder.path(), |db| drop(db.insert("mformat", &[2]).unwrap()));
    let as_is = StoreSettings { migrates: false, ..StoreSettings::default() };
    assert!(matches!(open(folder.path(), &as_is), Err(OpenError::NotMigrated { found: 2, known: 8, .. })));
    tamper(folder.path(), |db| assert_eq!(db.get("mformat").unwrap().unwrap(), [2], "a dry run changes nothing"));
    let store = opened(folder.path());
    assert_eq!(store.ended(None, 9).await.unwrap()[0].0.tools.len(), 10);
    remove(&(store.clone() as Subject), 1).await;
    assert!(matches!(store.load(turn(1)).await.unwrap(), Loaded::Removed(_)));
    assert_eq!((store.reclaim().await.unwrap() > 0, blobs(folder.path())), (true, 0));
}

#[tokio::test]
async fn the_tombstones_of_format_4_are_folded() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    for number in 1..=9 {
        turn_that_ended(&subject, number, 10 * number).await;
    }
    for number in 1..=8 {
        remove(&subject, number).await;
    }
    let (head, chain) = (store.head().await.unwrap(), store.chain(Position(0), 99).await.unwrap());
    let removed = store.load(turn(3)).await.unwrap();
    drop((store, subject));
    // The second time as after a kill: the older format is no longer written, and half of the turns are folded.
    for is_half_folded in [false, true] {
        tamper(folder.path(), |db| {
            let folded: Vec<_> = db.scan_prefix(b"W").take(4).map(Result::unwrap).collect();
            unfold(db);
            if is_half_folded {
                for (key, value) in folded {
                    db.insert(&key, value).unwrap();
                    db.remove([b"w".as_slice(), &key[1..]].concat()).unwrap();
                    (0..2_u32).for_each(|number| {
                        db.remove([b"e".as_slice(), &key[1..], &number.to_be_bytes()].concat()).unwrap();
                    });
                }
                db.insert("mformat", &[8]).unwrap();
                db.insert("mfolding", b"").unwrap();
            }
        });
        assert_eq!(verify(folder.path(), &StoreSettings::default(), Vec::new()).unwrap(), head, "before the migration");
        let store = opened(folder.path());
        assert_eq!(store.check().unwrap().problems, []);
        assert_eq!((store.head().await.unwrap(), store.chain(Position(0), 99).await.unwrap()), (head, chain.clone()));
        assert_eq!(store.load(turn(3)).await.unwrap(), removed);
        assert!(store.append(&commit(3, 0, 1)).await.is_err(), "a removed turn never begins again");
        drop(store);
        tamper(folder.path(), |db| {
            let is_old = |(key, value): (sled::IVec, sled::IVec)| key[0] == b'w' || (key[0] == b'e' && value[8] == 255);
            assert!(!db.iter().map(Result::unwrap).any(is_old), "no entry of format 4 is left");
            assert!(db.get("mformat").unwrap().unwrap() == [8] && db.get("mfolding").unwrap().is_none());
        });
        assert_eq!(verify(folder.path(), &StoreSettings::default(), Vec::new()).unwrap(), head);
    }
}

/// The request of a call of this tool.
fn requested(number: u16, tool: &str) -> Event {
    let (id, tool, arguments) = (call(&format!("call-{number}")), tool.into(), Json::unchecked("{}"));
    let event = CallEvent::Requested { id, tool, arguments, pinned: None, ruled_by: None, origin: None };
    Event::Call { call: CallIndex(number), event }
}

#[tokio::test]
async fn a_removal_outlives_the_process_and_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let subject: Subject = store.clone();
    turn_that_ended(&subject, 1, 10).await;
    remove(&subject, 1).await;
    drop((store, subject));
    let store = opened(folder.path());
    assert!(matches!(store.load(turn(1)).await.unwrap(), Loaded::Removed(_)));
    assert_eq!(store.append(&Commit::rows(Vec::new())).await.unwrap(), Position(3));
    assert!(store.append(&commit(1, 2, 3)).await.is_err(), "also if the committing thread never saw the turn");
    assert_ne!(store.head().await.unwrap(), Head::START);
    let mut out = Vec::new();
    store.export(&mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        std::str::from_utf8(&out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line.as_object().unwrap().keys().next().unwrap().as_str()).collect();
    assert_eq!(kinds, ["store", "commit", "commit", "commit", "owner", "call", "end"]);
    assert_eq!(
        (&lines[5]["call"]["id"], &lines[1]["commit"]["content"]["removed"]["by"]),
        (&serde_json::json!("call-1"), &serde_json::json!(3))
    );
    assert!(lines[1]["commit"]["content"]["removed"]["digest"].as_str().unwrap().starts_with("sha256:"));
}
