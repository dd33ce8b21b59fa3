//! One damaged record fails itself alone: the store opens, and every read that does not need the record goes on.

use std::fs;
use std::path::Path;

use dispatch::ports::{
    Audit as _, EndedTurns as _, Facts, Feed, Filter, Health as _, Indexes as _, Log as _, Outbox as _, Position,
    RowChange, StandingApprovals as _, TurnEnding,
};
use domain::{Digest, event::TurnEnd};

use crate::given::{self, commit, conversation, events, large_fact, suspension, time, turn, with};
use crate::removing::ended;
use crate::store::{OpenError, SledStore, StoreSettings, open};

fn opened(folder: &Path) -> SledStore {
    open(folder, &StoreSettings::default()).unwrap()
}

fn tamper(folder: &Path, change: impl FnOnce(&sled::Db)) {
    let db = crate::given::database(folder);
    change(&db);
    db.flush().unwrap();
}

fn key(index: u8, number: u64, rest: &[u8]) -> Vec<u8> {
    [&[index], u128::from(number).to_be_bytes().as_slice(), rest].concat()
}

/// Two turns with a row of every kind. The first one has a large record.
async fn written(folder: &Path) {
    let store = opened(folder);
    for number in [1, 2] {
        let size = if number == 1 { 300 << 10 } else { 10 };
        let index = [
            given::owner("ann"),
            given::call_of(number, &format!("call-{number}")),
            given::due_of(number, None, Some(given::due(number, true))),
            RowChange::Suspension(given::row(number, given::OPEN)),
            RowChange::Delivery(given::delivery(number, "pager")),
            RowChange::Denied(given::denial(Digest::of(number.to_be_bytes()), number)),
            RowChange::Ended(ended(number, number), TurnEnd::Settled),
        ];
        store.append(&with(events(number, 0, vec![large_fact(number, size)]), index)).await.unwrap();
        store.append(&commit(number, 1, number)).await.unwrap();
        store.append(&given::record(given::plugin(number))).await.unwrap();
        store.append(&given::started(given::start(number))).await.unwrap();
    }
}

#[tokio::test]
async fn a_truncated_large_record_fails_its_turn_alone() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let blob = fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
    fs::write(&blob, "[").unwrap();
    let store = opened(folder.path());
    assert!(store.load(turn(1)).await.unwrap_err().is_damage());
    assert!(store.load(turn(2)).await.unwrap().found().is_some());
    let found = store.find_call(&conversation("c"), &given::call("call-1")).await.unwrap();
    assert_eq!(found, Some(turn(1)), "its call ids stay taken");
    let feed = store.follow(&Feed::Conversation(conversation("c")), Position(0), 9, usize::MAX).await.unwrap();
    let feed: Vec<_> = feed.into_iter().map(|committed| (committed.position.0, committed.facts)).collect();
    assert_eq!(feed[0], (1, Facts::Unreadable { turn: Some(turn(1)) }));
    assert!(feed.iter().map(|(position, _)| *position).eq([1, 2, 5, 6]), "{feed:?}");
    let audited = store.audit(Position(0), 99).await.unwrap();
    assert_eq!(audited.len(), 8);
    assert_eq!(audited[0].facts, Facts::Unreadable { turn: Some(turn(1)) });
    assert!(audited[1..].iter().all(|audited| !matches!(audited.facts, Facts::Unreadable { .. })));
    assert_eq!(store.health().damaged_records, 1, "a log counts once");
    assert!(store.append(&commit(3, 0, 1)).await.is_ok());
}

#[tokio::test]
async fn a_damaged_row_is_left_out_of_its_listing() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let unreadable = b"\0\0\0\0\0\0\0\x01\x01[{";
    tamper(folder.path(), |db| {
        for index in [b's', b'i'] {
            let row = db.scan_prefix([index]).keys().next().unwrap().unwrap();
            db.insert(row, unreadable).unwrap();
        }
        db.insert(key(b'u', 1, b""), b"x").unwrap();
        for index in *b"xyv" {
            let row = db.scan_prefix([index]).keys().next().unwrap().unwrap();
            db.insert(row, b"x").unwrap();
        }
        db.insert([b"n".as_slice(), &8_u64.to_be_bytes()].concat(), b"\x01[{").unwrap();
        db.insert([b"h".as_slice(), &3_u64.to_be_bytes()].concat(), b"\x01[{").unwrap();
        db.insert([b"E".as_slice(), &1_u64.to_be_bytes()].concat(), b"x").unwrap();
    });
    let store = opened(folder.path());
    for open in [None, Some(true)] {
        let page = store.suspensions(&Filter { open, ..Filter::default() }, None, 9).await.unwrap();
        assert_eq!(page.rows, [given::row(2, given::OPEN)]);
        assert_eq!(page.unreadable, [suspension(1)]);
    }
    assert_eq!(store.unfinished(None, 1).await.unwrap(), [(turn(2), given::due(2, true))]);
    assert_eq!(store.ended(None, 1).await.unwrap()[0].0, ended(2, 2));
    assert_eq!(store.denials(None, 1).await.unwrap().len(), 1);
    assert_eq!(store.deliveries_due("pager", time(9), 1).await.unwrap(), [given::delivery(2, "pager")]);
    assert_eq!(store.conversations(None, 9).await.unwrap(), []);
    assert_eq!(store.last_start().await.unwrap(), None, "the next start records all of its grants as new");
    let host = store.follow(&Feed::Host, Position(0), 9, usize::MAX).await.unwrap();
    let host: Vec<_> = host.into_iter().map(|committed| (committed.position.0, committed.facts)).collect();
    let ending = TurnEnding::of(&ended(2, 2), TurnEnd::Settled);
    let unreadable = || Facts::Unreadable { turn: None };
    let expected =
        [(1, unreadable()), (3, unreadable()), (5, Facts::Ended(ending)), (7, Facts::Plugin(given::plugin(2)))];
    assert_eq!(host, expected);
    assert!(store.health().damaged_records >= 7, "{}", store.health().damaged_records);
    assert!(store.owner(&conversation("c")).await.is_err(), "nobody can take the conversation over");
}

#[tokio::test]
async fn a_log_without_its_end_is_not_read_as_an_earlier_state() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    tamper(folder.path(), |db| drop(db.remove(key(b'e', 1, &1_u32.to_be_bytes())).unwrap()));
    let store = opened(folder.path());
    assert!(store.load(turn(1)).await.unwrap_err().is_damage(), "its calls could run a second time");
    assert!(store.load(turn(2)).await.unwrap().found().is_some());
}

#[tokio::test]
async fn a_record_that_was_edited_refuses_the_start() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    tamper(folder.path(), |db| {
        let (one, two) = (key(b'e', 2, &0_u32.to_be_bytes()), key(b'e', 2, &1_u32.to_be_bytes()));
        let stamp = db.get(&two).unwrap().unwrap()[..8].to_vec();
        let value = [stamp.as_slice(), &db.get(one).unwrap().unwrap()[8..]].concat();
        db.insert(two, value).unwrap();
    });
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened") };
    assert!(matches!(refused, OpenError::Damaged { .. }), "it can be read, so it is no damage: {refused}");
}
