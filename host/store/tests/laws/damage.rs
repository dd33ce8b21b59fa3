//! Reads of damaged files: each ends with a result or an error, for every byte that changed.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use dispatch::ports::{
    Audit as _, Feed, Filter, Health as _, Indexes as _, Log as _, Outbox as _, Position, RowChange,
    StandingApprovals as _,
};
use domain::Digest;

use crate::given::{self, commit, conversation, large_fact, time, turn, with};
use crate::store::{NamespaceQuota, OpenError, SledStore, StoreSettings, open, verify};

/// Turns in the damaged store: more than a start looks at.
const TURNS: u64 = 400;

/// sled's file is damaged in this many parts, one in each copy of the folder.
const PARTS: usize = 40;

/// Writes a store whose snapshot covers everything, so that sled reads pages only when they are needed.
async fn written(folder: &Path) {
    let store = opened(folder);
    for number in 1..=TURNS {
        let index = [
            given::call_of(number, &format!("call-{number}")),
            given::due_of(number, None, Some(given::due(number, false))),
            RowChange::Suspension(given::row(number, given::OPEN)),
            RowChange::Delivery(given::delivery(number, "pager")),
            RowChange::Denied(given::denial(Digest::of(number.to_be_bytes()), number)),
        ];
        store.append(&with(given::events(number, 0, vec![given::begun(number)]), index)).await.unwrap();
        store.append(&given::record(given::plugin(number))).await.unwrap();
        store.key_value().set("p", "b", &number.to_be_bytes(), &[7; 100], NamespaceQuota::UNBOUNDED).unwrap();
    }
    for number in 1..=20 {
        store.append(&commit(1, number, number.into())).await.unwrap();
    }
    drop(store);
    drop(opened(folder));
}

fn opened(folder: &Path) -> SledStore {
    open(folder, &StoreSettings::default()).unwrap()
}

pub(crate) fn copied(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copied(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Calls every read, without limits, and returns how many failed.
async fn reads(store: &SledStore) -> usize {
    let (c, start) = (conversation("c"), Position(0));
    let mut failed = Vec::new();
    let mut count = |done: bool| failed.extend((!done).then_some(()));
    for number in 1..=TURNS {
        count(store.load(turn(number)).await.is_ok());
        count(store.find_call(&c, &given::call(&format!("call-{number}"))).await.is_ok());
        count(store.suspension(given::suspension(number)).await.is_ok());
        count(store.deliveries(given::suspension(number).into()).await.is_ok());
        count(store.denied(&c, Digest::of(number.to_be_bytes())).await.is_ok());
        count(store.key_value().get("p", "b", &number.to_be_bytes()).is_ok());
    }
    count(store.owner(&c).await.is_ok());
    count(store.conversations(None, usize::MAX).await.is_ok());
    count(store.follow(&Feed::Host, start, usize::MAX, usize::MAX).await.is_ok());
    count(store.follow(&Feed::Conversation(c.clone()), start, usize::MAX, usize::MAX).await.is_ok());
    count(store.due(None, time(u64::MAX), usize::MAX).await.is_ok());
    count(store.unfinished(None, usize::MAX).await.is_ok());
    for open in [None, Some(true)] {
        for conversation in [None, Some(c.clone())] {
            let filter = Filter { open, conversation, ..Filter::default() };
            count(store.suspensions(&filter, None, usize::MAX).await.is_ok());
        }
    }
    count(store.deliveries_due("pager", time(u64::MAX), usize::MAX).await.is_ok());
    count(store.webhooks_with_pending().await.is_ok());
    count(store.standing(domain::StandingId::from_bits(1)).await.is_ok());
    count(store.standings(None, usize::MAX).await.is_ok());
    count(store.denials(None, usize::MAX).await.is_ok());
    count(store.audit(start, usize::MAX).await.is_ok());
    count(store.chain(start, usize::MAX).await.is_ok());
    count(store.head().await.is_ok());
    count(store.last_start().await.is_ok());
    count(store.key_value().list("p", "b", b"", None, usize::MAX).is_ok());
    count(store.key_value().set("p", "b", b"k", b"v", NamespaceQuota::UNBOUNDED).is_ok());
    count(store.check().is_ok_and(|checked| checked.problems.is_empty()));
    count(store.export(&mut std::io::sink()).is_ok());
    failed.len()
}

/// Damages the file behind the back of an open store, which has not read most pages yet. A start would refuse the
/// folder, because it reads the last segment as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn every_read_of_a_damaged_page_ends() {
    let whole = tempfile::tempdir().unwrap();
    written(whole.path()).await;
    let bytes = fs::read(whole.path().join("sled/db")).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let (size, mut failed) = (used.div_ceil(PARTS), 0);
    for (number, part) in bytes[..used].chunks(size).enumerate() {
        let folder = tempfile::tempdir().unwrap();
        copied(whole.path(), folder.path());
        let store = opened(folder.path());
        let flipped: Vec<u8> = part.iter().map(|byte| !byte).collect();
        let db = fs::OpenOptions::new().write(true).open(folder.path().join("sled/db")).unwrap();
        db.write_all_at(&flipped, (number * size) as u64).unwrap();
        let is_found = reads(&store).await > 0;
        assert_eq!(store.health().damaged_records > 0, is_found, "part {number}: health says so, and only then");
        failed += usize::from(is_found);
    }
    assert!(failed > PARTS / 2, "damage was found in {failed} of {PARTS} parts");
}

#[tokio::test]
async fn a_truncated_blob_fails_the_reads_that_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    store.append(&given::events(1, 0, vec![large_fact(1, 300 << 10)])).await.unwrap();
    store.append(&commit(2, 0, 1)).await.unwrap();
    let blob = fs::read_dir(folder.path().join("blobs")).unwrap().next().unwrap().unwrap().path();
    truncate(&blob, 1 << 10);
    assert!(store.load(turn(1)).await.is_err());
    assert!(store.load(turn(2)).await.is_ok());
    let problems: Vec<String> = store.check().unwrap().problems.iter().map(ToString::to_string).collect();
    let expected = ["commit 0 of turn_00000000000000000000000000000001: ", "the audit entry at position 1: "];
    assert!(
        problems.iter().zip(expected).all(|(problem, expected)| problem.starts_with(expected)) && problems.len() == 2,
        "entries are named, not shown as bytes: {problems:?}"
    );
}

/// Writes enough to fill several segments of sled's log and to write some of their pages again.
async fn written_at_length(folder: &Path) {
    let store = opened(folder);
    for number in 0..400_u32 {
        store.append(&given::events(1, number, vec![large_fact(number.into(), 50 << 10)])).await.unwrap();
        store
            .key_value()
            .set("p", "b", &(number % 100).to_be_bytes(), &vec![7; 50 << 10], NamespaceQuota::UNBOUNDED)
            .unwrap();
    }
    store.append(&given::events(2, 0, vec![large_fact(1, 300 << 10)])).await.unwrap();
    drop(store);
    drop(opened(folder));
}

fn snapshot(folder: &Path) -> PathBuf {
    let mut names = fs::read_dir(folder.join("sled")).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("snap.")).unwrap()
}

fn truncate(file: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

#[tokio::test]
async fn a_damaged_snapshot_is_rebuilt_from_the_log() {
    let whole = tempfile::tempdir().unwrap();
    written_at_length(whole.path()).await;
    for length in [0, 5, 100, 1_000] {
        let folder = tempfile::tempdir().unwrap();
        copied(whole.path(), folder.path());
        truncate(&snapshot(folder.path()), length);
        let store = opened(folder.path());
        assert_eq!(store.load(turn(1)).await.unwrap().found().unwrap().version, 400);
        assert_eq!(store.load(turn(2)).await.unwrap().found().unwrap().version, 1);
        for number in 0..100_u32 {
            assert!(store.key_value().get("p", "b", &number.to_be_bytes()).unwrap().is_some());
        }
        assert_eq!(store.check().unwrap().problems, []);
        let head = store.head().await.unwrap();
        assert!(store.append(&commit(3, 0, 1)).await.unwrap() > head.position);
        drop(store);
        let head = opened(folder.path()).head().await.unwrap();
        assert_eq!(verify(folder.path(), &StoreSettings::default(), Vec::new()).unwrap(), head);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "the copy is removed: {names:?}");
    }
}

#[tokio::test]
async fn a_damaged_log_is_not_cut_to_rebuild_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    written_at_length(folder.path()).await;
    truncate(&snapshot(folder.path()), 100);
    let file = folder.path().join("sled/db");
    let db = fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
    // The third segment of several.
    db.write_all_at(&[0xff; 1 << 10], 20 << 20).unwrap();
    let before = fs::read(&file).unwrap();
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened") };
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    assert!(!refused.to_string().contains("empty"), "{refused}");
    assert!(fs::read(&file).unwrap() == before, "what can still be read stays");
}

/// The host cannot tell whether such a segment has messages. It tries a copy, which has the segment too.
#[tokio::test]
async fn a_segment_that_takes_long_to_read_does_not_hang_a_start() {
    const SEGMENT: usize = 128 << 10;
    let settings = StoreSettings { segment_bytes: SEGMENT, ..StoreSettings::default() };
    let whole = tempfile::tempdir().unwrap();
    let store = open(whole.path(), &settings).unwrap();
    for number in 1..=300 {
        store.append(&given::events(number, 0, vec![large_fact(number, 1 << 10)])).await.unwrap();
    }
    drop(store);
    let size = usize::try_from(fs::metadata(whole.path().join("sled/db")).unwrap().len()).unwrap();
    // Each of these bytes begins a message that is long and damaged.
    let crafted: Vec<u8> = [1, 2, 3, 4, 1, 249, 250, 0, 9, 0].into_iter().cycle().take(SEGMENT).collect();
    for (at, has_header) in (0..size).step_by(SEGMENT).flat_map(|at| [(at, true), (at, false)]) {
        let folder = tempfile::tempdir().unwrap();
        copied(whole.path(), folder.path());
        let file = folder.path().join("sled/db");
        let db = fs::OpenOptions::new().write(true).open(&file).unwrap();
        db.write_all_at(&crafted, at as u64).unwrap();
        if !has_header {
            // A loss of power can leave this of a segment that was to be used again.
            db.write_all_at(&[0; 20], at as u64).unwrap();
        }
        let before = fs::read(&file).unwrap();
        match open(folder.path(), &settings) {
            Ok(_) => assert!(!has_header, "a damaged header at {at}"),
            Err(refused) => {
                assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
                assert!(fs::read(&file).unwrap() == before, "at {at}");
            }
        }
    }
}

/// `/dev/full` refuses every write as a full disk does.
#[test]
fn a_full_disk_is_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sled")).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join("sled/db")).unwrap();
    let Err(refused) = open(folder.path(), &StoreSettings::default()) else { panic!("opened") };
    assert!(matches!(refused, OpenError::NoSpace { .. }), "{refused}");
    assert!(refused.to_string().contains("free some space"), "{refused}");
}
