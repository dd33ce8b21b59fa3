//! A disk that does not answer: a read fails in time, its thread keeps its permit, and everything goes on once the disk
//! answers. A named pipe in place of a file simulates the disk: who opens it waits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::{FaultKind, Health as _, Log as _, StoreFault};

use crate::given::{commit, events, large_fact, turn};
use crate::store::{SledStore, StoreSettings, open};

/// More reads than may run at the same time.
const READS: usize = 70;

/// When a store that does not go on fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Replaces the only large record by a pipe. Returns its path and its content.
fn get_stuck(store: &Path) -> (PathBuf, Vec<u8>) {
    let record = fs::read_dir(store.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let content = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    (record, content)
}

async fn until<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let succeeds = async {
        loop {
            match attempt().await {
                Some(done) => return done,
                None => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, succeeds).await.unwrap()
}

fn is_no_answer(fault: &StoreFault) -> bool {
    fault.kind == FaultKind::NoAnswer && fault.to_string().contains("does not answer in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn stuck_reads_fail_in_time_and_keep_their_permits() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { disk_deadline: Duration::from_millis(500), ..StoreSettings::default() };
    let store: Arc<SledStore> = Arc::new(open(folder.path(), &settings).unwrap());
    store.append(&events(1, 0, vec![large_fact(1, 300 << 10)])).await.unwrap();
    store.append(&commit(2, 0, 1)).await.unwrap();
    let (record, content) = get_stuck(folder.path());

    let fault = store.load(turn(1)).await.unwrap_err();
    assert!(is_no_answer(&fault), "{fault}");
    let failure = until(async || store.health().failure).await;
    assert!(is_no_answer(&failure), "{failure}");
    until(async || store.load(turn(2)).await.ok()).await;
    until(async || store.append(&commit(2, 1, 2)).await.ok()).await;

    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..READS {
        let store = store.clone();
        reads.spawn(async move { store.load(turn(1)).await.unwrap_err() });
    }
    for fault in reads.join_all().await {
        assert!(is_no_answer(&fault), "{fault}");
    }
    assert!(store.health().timed_out_reads > READS as u64);
    let refused = store.load(turn(2)).await.unwrap_err();
    assert!(is_no_answer(&refused), "all permits are taken: {refused}");

    // The disk answers.
    let release = record.clone();
    tokio::task::spawn_blocking(move || drop(fs::OpenOptions::new().write(true).open(release).unwrap())).await.unwrap();
    fs::remove_file(&record).unwrap();
    fs::write(&record, content).unwrap();
    until(async || store.health().failure.is_none().then_some(())).await;
    let log = until(async || store.load(turn(1)).await.ok()).await;
    assert_eq!(log.found().unwrap().events, [large_fact(1, 300 << 10)]);
    assert_eq!(store.load(turn(2)).await.unwrap().found().unwrap().version, 2);
}
