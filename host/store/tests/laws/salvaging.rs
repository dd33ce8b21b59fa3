//! A salvage keeps what is intact, leaves out turns with lost records, and shows the cut in the audit.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use dispatch::ports::{
    Audit as _, Commit, EndedTurns as _, Facts, FaultKind, Head, Health as _, Indexes as _, Journals as _, Loaded,
    Log as _, Position, RowChange, Source,
};
use domain::{
    Event, Turn,
    event::{Rejection, TurnEnd},
    retention::RemovalRule,
};

use crate::damage::copied;
use crate::given::{self, Subject, commit, conversation, events, large_fact, principal, time, turn, with};
use crate::journals;
use crate::on_disk::journal_key;
use crate::removing::{removal, turn_that_ended};
use crate::store::{
    NamespaceQuota, OpenError, SalvageError, Salvaged, SledStore, StoreSettings, VerifyError, open, salvage, verify,
};

const TURNS: u64 = 60;

pub(crate) fn opened(folder: &Path) -> SledStore {
    open(folder, &StoreSettings::default()).unwrap()
}

/// Turns of two commits, the first with a large record, among facts of other kinds. Returns the heads on the way.
async fn written(folder: &Path) -> Vec<Head> {
    let (store, mut heads) = (opened(folder), Vec::new());
    for number in 1..=TURNS {
        let size = if number == 1 { 300 << 10 } else { 1 << 10 };
        let index = [
            given::owner("ann"),
            given::call_of(number, &format!("call-{number}")),
            given::due_of(number, None, Some(given::due(number, true))),
            RowChange::Suspension(dispatch::ports::SuspensionRow {
                turn: turn(number),
                ..given::row(number, given::OPEN)
            }),
            RowChange::Delivery(given::delivery(number, "pager")),
        ];
        store.append(&with(events(number, 0, vec![large_fact(number, size)]), index)).await.unwrap();
        store.append(&given::record(given::plugin(number))).await.unwrap();
        store.append(&commit(number, 1, number)).await.unwrap();
        store.key_value().set("p", "b", &number.to_be_bytes(), &[7; 100], NamespaceQuota::UNBOUNDED).unwrap();
        heads.push(store.head().await.unwrap());
    }
    heads
}

pub(crate) fn tamper(folder: &Path, change: impl FnOnce(&sled::Db)) {
    let db = crate::given::database(folder);
    change(&db);
    db.flush().unwrap();
}

pub(crate) fn link(position: u64) -> Vec<u8> {
    [b"a".as_slice(), &position.to_be_bytes()].concat()
}

pub(crate) fn log(number: u64, commit: u32) -> Vec<u8> {
    [b"e".as_slice(), &u128::from(number).to_be_bytes(), &commit.to_be_bytes()].concat()
}

pub(crate) fn salvaged(source: &Path, target: &Path) -> Result<Salvaged, SalvageError> {
    salvage(source, target, &StoreSettings::default(), time(9), false)
}

pub(crate) fn verified(folder: &Path, heads: &[Head]) -> Result<Head, VerifyError> {
    verify(folder, &StoreSettings::default(), heads.iter().map(|head| head.to_string().parse().unwrap()).collect())
}

#[tokio::test]
async fn a_truncated_large_record_costs_only_its_turn() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heads = written(folder.path()).await;
    let before = opened(folder.path()).load(turn(2)).await.unwrap();
    let blob = fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
    fs::write(&blob, "[").unwrap();
    let sled = fs::read(folder.path().join("sled/db")).unwrap();
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!((found.commits, found.turns.iter().copied().collect::<Vec<_>>()), (3 * TURNS - 2, vec![turn(1)]));
    assert_eq!(
        (&found.lost, found.entries.len(), found.incomplete.len(), found.values),
        (&vec![], 0, 0, (TURNS, true))
    );
    assert_eq!(found.head.position.0, 3 * TURNS + 1);
    assert!(fs::read(folder.path().join("sled/db")).unwrap() == sled, "the damaged store stays as it is");
    assert_eq!(verified(&target, &heads).unwrap(), found.head, "every hash is the one of before");

    let store = opened(&target);
    let Loaded::Removed(tombstone) = store.load(turn(1)).await.unwrap() else { panic!("it is there") };
    assert_eq!((tombstone.conversation, tombstone.rule), (conversation("c"), RemovalRule::Salvage));
    assert_eq!(store.find_call(&conversation("c"), &given::call("call-1")).await.unwrap(), Some(turn(1)));
    assert_eq!(store.suspension(given::suspension(1)).await.unwrap(), None);
    assert!(store.suspension(given::suspension(2)).await.unwrap().is_some());
    assert_eq!(store.unfinished(None, 999).await.unwrap().len() as u64, TURNS - 1);
    assert_eq!(store.load(turn(2)).await.unwrap(), before);
    let last = store.audit(Position(found.head.position.0 - 1), 1).await.unwrap();
    assert!(matches!(&last[0].facts, Facts::Removal(removal) if removal.turns[0].turn == turn(1)), "{last:?}");
    assert!(store.key_value().get("p", "b", &5_u64.to_be_bytes()).unwrap().is_some());
    assert_eq!((store.check().unwrap().problems, store.health().damaged_records), (vec![], 0));
    assert!(store.append(&commit(1, 2, 1)).await.is_err(), "nothing continues its log");
    drop(store);
    assert!(matches!(salvaged(folder.path(), &target), Err(SalvageError::Exists(_))));
}

/// Its content may be intact, and a salvage would leave it out for good.
#[tokio::test]
async fn an_unreadable_large_record_is_not_a_lost_one() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heads = written(folder.path()).await;
    let blob = fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&blob).unwrap();
    // A folder cannot be read as a file, not even by root.
    fs::remove_file(&blob).unwrap();
    fs::create_dir(&blob).unwrap();
    let target = to.path().join("store");
    let refused = salvaged(folder.path(), &target);
    assert!(matches!(&refused, Err(SalvageError::Store(fault)) if fault.kind == FaultKind::Disk), "{refused:?}");
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0, "nothing is left of the attempt");
    fs::remove_dir(&blob).unwrap();
    fs::write(&blob, bytes).unwrap();
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!((found.turns.len(), verified(&target, &heads).unwrap()), (0, found.head));
}

#[tokio::test]
async fn a_journal_outlives_the_loss_of_its_head() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = opened(folder.path());
    let entries: Vec<_> = (0..3).map(journals::entry).collect();
    for number in [1, 2] {
        store.append(&commit(number, 0, 1).with([journals::names(number, Some(1))])).await.unwrap();
        let rows = entries.iter().map(|entry| journals::row(number, 1, entry.clone()));
        store.append(&Commit::rows(rows.collect())).await.unwrap();
    }
    drop(store);
    tamper(folder.path(), |db| drop(db.insert(journal_key(2, None), b"damaged").unwrap()));
    let target = to.path().join("store");
    assert_eq!(salvaged(folder.path(), &target).unwrap().entries.len(), 1);
    let store = opened(&target);
    for number in [1, 2] {
        assert_eq!(store.journal(turn(number), journals::CALL).await.unwrap(), entries);
    }
    assert_eq!(store.check().unwrap().problems, []);
    let next = |run| Commit::rows(vec![journals::row(2, run, journals::entry(3))]);
    assert!(journals::is_superseded(store.append(&next(1)).await.map(drop)), "no run may append");
    store.append(&Commit::rows(vec![journals::names(2, Some(2))])).await.unwrap();
    store.append(&next(2)).await.unwrap();
}

#[tokio::test]
async fn an_ended_turn_counts_its_journal_after_a_salvage() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = opened(folder.path());
    let (conversation, caller, rejection) = (conversation("c"), principal("ann"), Rejection::default());
    let (turn, at) = (turn(1), time(1));
    let started = Event::TurnStarted { turn, conversation, caller, rejection, context: None, parent: None, at };
    let settled = Event::TurnSettled { end: TurnEnd::Settled, at: time(10) };
    let all = [started.clone(), settled.clone()];
    store.append(&events(1, 0, vec![started]).with([journals::names(1, Some(1))])).await.unwrap();
    let rows = (0..3).map(|number| journals::row(1, 1, journals::entry(number)));
    store.append(&Commit::rows(rows.collect())).await.unwrap();
    let rows = dispatch::index_rows(&all, &Turn::replay(&all).unwrap());
    let end = rows.into_iter().filter(|row| matches!(row, RowChange::Ended(..))).chain([journals::names(1, None)]);
    store.append(&events(1, 1, vec![settled]).with(end)).await.unwrap();
    store.append(&commit(2, 0, 1).with([journals::names(2, Some(1))])).await.unwrap();
    let before = store.ended(None, 9).await.unwrap();
    assert!(before[0].1 > 200 << 10, "{before:?}");
    drop(store);
    // The salvage makes the entries of all turns again.
    tamper(folder.path(), |db| drop(db.insert(journal_key(2, None), b"damaged").unwrap()));
    let target = to.path().join("store");
    assert_eq!(salvaged(folder.path(), &target).unwrap().entries.len(), 1);
    assert_eq!(opened(&target).ended(None, 9).await.unwrap(), before);
}

#[tokio::test]
async fn lost_records_and_chain_entries_are_a_cut() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heads = written(folder.path()).await;
    tamper(folder.path(), |db| {
        // Of these, only the entries of the chain: they follow from their records.
        (100..110).for_each(|position| drop(db.remove(link(position)).unwrap()));
        // Of these, only the records: those of turn 5 and of a fact about a plugin.
        assert!(db.remove(log(5, 0)).unwrap().is_some());
        assert!(db.remove([b"h".as_slice(), &20_u64.to_be_bytes()].concat()).unwrap().is_some());
        // Of these, both: the last commit of turn 7, and the first of turn 8.
        for (key, position) in [(log(7, 1), 21), (log(8, 0), 22)] {
            assert!(db.remove(key).unwrap().is_some() && db.remove(link(position)).unwrap().is_some());
        }
    });
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    let lost: Vec<_> = found.turns.iter().copied().collect();
    assert_eq!(lost, [turn(5), turn(7), turn(8)], "the log of turn 7 must not be read as an earlier state");
    assert_eq!(found.lost, [20]);
    assert_eq!(verified(&target, &heads[10..]).unwrap(), found.head);
    let store = opened(&target);
    let chain = store.chain(Position(99), 10).await.unwrap();
    assert!(chain.iter().all(|entry| matches!(entry.source, Source::Turn { .. } | Source::Plugin)));
    assert_eq!(store.check().unwrap().problems, []);
}

#[tokio::test]
async fn an_unknown_commit_leaves_out_every_unfinished_turn() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    written(folder.path()).await;
    tamper(folder.path(), |db| {
        let feed = [b"f\x01c".as_slice(), &21_u64.to_be_bytes()].concat();
        for key in [log(7, 1), link(21), feed] {
            assert!(db.remove(key).unwrap().is_some());
        }
    });
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!(found.turns.len() as u64, TURNS, "any of them may have lost its last commit");
    assert_eq!((found.lost.as_slice(), verified(&target, &[]).unwrap()), ([21].as_slice(), found.head));
    assert_eq!(opened(&target).check().unwrap().problems, []);
}

/// Each commit writes the head, so its page is always among the last of the log.
#[tokio::test]
async fn a_lost_head_costs_nothing_if_the_chain_is_whole() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let heads = written(folder.path()).await;
    tamper(folder.path(), |db| assert!(db.remove("mhead").unwrap().is_some()));
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!((found.commits, found.turns.len(), found.lost.len()), (3 * TURNS, 0, 0));
    assert_eq!(verified(&target, &heads).unwrap(), found.head);
    assert_eq!(opened(&target).check().unwrap().problems, []);
}

#[tokio::test]
async fn a_salvage_with_huge_positions_ends() {
    let far = u64::MAX - 1;
    let feed = [b"f\x01c".as_slice(), &far.to_be_bytes()].concat();
    type Deed<'a> = &'a dyn Fn(&sled::Db);
    let deeds: [(&str, Deed, usize); 4] = [
        ("the head", &|db| drop(db.insert("mhead", [&far.to_be_bytes(), [7; 32].as_slice()].concat()).unwrap()), 60),
        ("an entry of the chain", &|db| drop(db.insert(link(far), db.get(link(4)).unwrap().unwrap()).unwrap()), 0),
        ("an entry of a feed", &|db| drop(db.insert(&feed, &log(5, 0)[1..]).unwrap()), 1),
        (
            "a record",
            &|db| {
                let record = db.get(log(5, 1)).unwrap().unwrap();
                db.insert(log(5, 1), [&far.to_be_bytes(), &record[8..]].concat()).unwrap();
            },
            1,
        ),
    ];
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    for (what, deed, turns) in deeds {
        let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        copied(whole.path(), folder.path());
        tamper(folder.path(), deed);
        let target = to.path().join("store");
        let found = salvaged(folder.path(), &target).unwrap();
        assert_eq!((found.turns.len(), found.head.position.0), (turns, 3 * TURNS + 1), "{what}");
        assert_eq!(verified(&target, &[]).unwrap(), found.head, "{what}");
        let store = opened(&target);
        for turn in found.turns {
            assert!(matches!(store.load(turn).await, Ok(Loaded::Removed(_))), "{what}");
        }
    }
}

#[tokio::test]
async fn a_removed_turn_stays_removed_after_a_salvage() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store: Subject = std::sync::Arc::new(opened(folder.path()));
    turn_that_ended(&store, 1, 10).await;
    let before = store.chain(Position(0), 2).await.unwrap();
    let removed = crate::removing::to_remove(&store, 1).await;
    store.append(&removal([removed])).await.unwrap();
    let removed = store.load(turn(1)).await.unwrap();
    drop(store);
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!((found.turns.len(), found.lost.len(), found.commits), (0, 0, 3));
    let store = opened(&target);
    assert_eq!(store.load(turn(1)).await.unwrap(), removed);
    let after = store.chain(Position(0), 2).await.unwrap();
    assert!(before.iter().zip(&after).all(|(before, after)| before.record.digest() == after.record.digest()));
    assert_eq!(store.check().unwrap().problems, []);
}

#[tokio::test]
async fn a_salvage_removes_no_folder_of_others() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    written(folder.path()).await;
    let other = to.path().join("store.unfinished");
    fs::create_dir(&other).unwrap();
    let refused = salvaged(folder.path(), &to.path().join("store"));
    assert!(matches!(refused, Err(SalvageError::Unfinished(path)) if path == other) && other.exists());
}

/// Salvages copies of a store, each with other bytes of the database inverted. Returns how many commits each kept; none if
/// the database could not be opened. The result is always a whole store, and no loss is hidden.
async fn salvaged_copies(whole: &Path, damages: impl IntoIterator<Item = (usize, Vec<u8>)>) -> Vec<Option<u64>> {
    let mut kept = Vec::new();
    for (at, inverted) in damages {
        let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        copied(whole, folder.path());
        let db = fs::OpenOptions::new().write(true).open(folder.path().join("sled/db")).unwrap();
        db.write_all_at(&inverted, at as u64).unwrap();
        let target = to.path().join("store");
        let done = match salvaged(folder.path(), &target) {
            Err(SalvageError::CallIds) => {
                assert!(!target.exists());
                salvage(folder.path(), &target, &StoreSettings::default(), time(9), true)
            }
            done => done,
        };
        let Ok(found) = done else {
            assert!(matches!(done, Err(SalvageError::Open(_))) && !target.exists(), "{done:?}");
            kept.push(None);
            continue;
        };
        assert_eq!(verified(&target, &[]).unwrap(), found.head);
        let store = opened(&target);
        assert_eq!(store.check().unwrap().problems, [], "at {at}: {found:?}");
        for turn in &found.turns {
            let loaded = store.load(*turn).await;
            assert!(matches!(loaded, Ok(Loaded::Removed(_))), "at {at}: {loaded:?}");
        }
        if found.head.position.0 <= 3 * TURNS {
            assert!(!found.lost.is_empty() && !found.values.1, "at {at} the end is lost: {found:?}");
            assert_eq!(store.unfinished(None, 1).await.unwrap(), [], "at {at}");
        }
        kept.push(Some(found.commits));
    }
    kept
}

fn database(folder: &Path) -> Vec<u8> {
    let mut bytes = fs::read(folder.join("sled/db")).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap());
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_salvaged_is_a_whole_store() {
    const PARTS: usize = 24;
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    drop(opened(whole.path()));
    let bytes = database(whole.path());
    let size = bytes.len().div_ceil(PARTS);
    let parts = (0..).step_by(size).zip(bytes.chunks(size));
    let kept =
        salvaged_copies(whole.path(), parts.map(|(at, part)| (at, part.iter().map(|byte| !byte).collect()))).await;
    assert!(kept.iter().filter(|kept| kept.is_some()).count() >= PARTS * 3 / 4, "{kept:?}");
    assert!(kept.iter().flatten().filter(|kept| **kept >= 2 * TURNS).count() >= PARTS / 2, "{kept:?}");
}

/// One bit of each of this many parts of a database is flipped, as disks do it.
const BITS: usize = 10;

fn flipped_bits(bytes: &[u8]) -> impl Iterator<Item = (usize, Vec<u8>)> {
    (0..BITS).map(|number| bytes.len() * number / BITS + 13).map(|at| (at, vec![bytes[at] ^ 4]))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_costs_few_commits() {
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    drop(opened(whole.path()));
    let kept = salvaged_copies(whole.path(), flipped_bits(&database(whole.path()))).await;
    // All of 180, or those of the page.
    assert!(kept.iter().all(|kept| kept.is_some_and(|kept| kept >= 3 * TURNS * 9 / 10)), "{kept:?}");
}

#[tokio::test]
async fn a_refused_start_changes_nothing() {
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    let mut refused = Vec::new();
    for has_snapshot in [false, true] {
        if has_snapshot {
            drop(opened(whole.path()));
        }
        for (at, flipped) in flipped_bits(&database(whole.path())) {
            let folder = tempfile::tempdir().unwrap();
            copied(whole.path(), folder.path());
            let path = folder.path().join("sled/db");
            fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&flipped, at as u64).unwrap();
            let before = fs::read(&path).unwrap();
            if open(folder.path(), &StoreSettings::default()).is_err() {
                assert!(verified(folder.path(), &[]).is_err());
                assert!(fs::read(&path).unwrap() == before, "a bit at {at}, has snapshot: {has_snapshot}");
                refused.push((has_snapshot, at));
            }
        }
    }
    // Several batches follow each bit.
    assert_eq!(refused.len(), 2 * BITS, "{refused:?}");
}

/// There is only the log, and sled ends at the damage.
#[tokio::test(flavor = "multi_thread")]
async fn lost_end_of_the_log_is_not_hidden() {
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    let kept = salvaged_copies(whole.path(), flipped_bits(&database(whole.path()))).await;
    // None of the turns has ended, so all are left out. The facts about plugins stay.
    let whole = kept.iter().filter(|kept| **kept == Some(TURNS)).count();
    // The first bit is in the header, which can be written again.
    assert!(whole >= BITS * 3 / 4 && kept[1..].iter().all(|kept| kept.is_none_or(|kept| kept <= TURNS)), "{kept:?}");
}

/// sled leaves out what follows damage in a segment, or the whole segment, and goes on with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn lost_segment_of_the_log_is_not_hidden() {
    const SEGMENT: usize = 128 << 10;
    let settings = StoreSettings { segment_bytes: SEGMENT, ..StoreSettings::default() };
    let whole = tempfile::tempdir().unwrap();
    let store = open(whole.path(), &settings).unwrap();
    for number in 1..=300 {
        let index = [given::call_of(number, &format!("call-{number}"))];
        store.append(&with(events(number, 0, vec![large_fact(number, 1 << 10)]), index)).await.unwrap();
    }
    drop(store);
    let bytes = database(whole.path());
    // sled may use a segment again, so the place says nothing about the age.
    let lsn = |start: &usize| u64::from_le_bytes(bytes[start + 4..start + 12].try_into().unwrap()) ^ u64::MAX >> 1;
    let segments = (0..bytes.len()).step_by(SEGMENT).filter(|start| bytes[start + 4..start + 12] != [0; 8]);
    let mut segments: Vec<_> = segments.collect();
    segments.sort_by_key(lsn);
    let [oldest, second, _, _, ..] = segments[..] else { panic!("{segments:?}") };
    let end = second + SEGMENT;
    for (what, damaged) in [("a header", oldest + 5..oldest + 6), ("the last messages", end - 3_000..end)] {
        let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        copied(whole.path(), folder.path());
        let path = folder.path().join("sled/db");
        let mut bytes = fs::read(&path).unwrap();
        bytes[damaged].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::write(&path, &bytes).unwrap();
        let started = tempfile::tempdir().unwrap();
        copied(folder.path(), started.path());
        match open(started.path(), &settings) {
            // Later segments have all of it.
            Ok(store) => assert_eq!(store.head().await.unwrap().position.0, 300, "{what}"),
            Err(OpenError::Damaged { .. }) => {
                assert!(fs::read(started.path().join("sled/db")).unwrap() == bytes, "{what}: the log stays as it is");
            }
            Err(other) => panic!("{what}: {other}"),
        }
        let target = to.path().join("store");
        let found = salvage(folder.path(), &target, &settings, time(9), true).unwrap();
        let is_whole = what == "a header";
        assert_eq!((found.lost.is_empty(), found.values.1), (is_whole, is_whole), "{what}: {found:?}");
        assert_eq!(verify(&target, &settings, Vec::new()).unwrap(), found.head, "{what}");
    }
}

#[tokio::test]
async fn a_lost_removal_is_part_of_the_cut() {
    let (folder, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store: Subject = std::sync::Arc::new(opened(folder.path()));
    turn_that_ended(&store, 1, 10).await;
    let removed = crate::removing::to_remove(&store, 1).await;
    store.append(&removal([removed])).await.unwrap();
    let position = store.head().await.unwrap().position.0;
    drop(store);
    let key = [b"p".as_slice(), &position.to_be_bytes()].concat();
    tamper(folder.path(), |db| drop(db.insert(key, b"{").unwrap()));
    let target = to.path().join("store");
    let found = salvaged(folder.path(), &target).unwrap();
    assert_eq!((found.lost, found.turns.len()), (vec![position], 1));
    assert!(matches!(opened(&target).load(turn(1)).await.unwrap(), Loaded::Removed(_)));
}
