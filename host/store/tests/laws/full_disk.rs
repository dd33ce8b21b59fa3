//! A disk that is full while the store is open: writes fail with the cause, most reads go on, and writes go on once there
//! is space. A child process simulates the disk by a limit on the size of files, and lifts the limit at the end. One test
//! has a small file system of its own instead.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dispatch::ports::{
    AppendError, Audit as _, FaultKind, Feed, Filter, Health as _, Indexes as _, Log as _, Position, RowChange,
    StoreFault, TurnLog,
};

use crate::given::{self, commit, conversation, events, large_fact, turn, with};
use crate::machine::is_left_out;
use crate::store::{KeyValueError, NamespaceQuota, StoreSettings, open, verify};

/// The file that tells a test that it is the child, in its working folder.
const CHILD: &str = "under-a-limit";

/// sled's file may have two segments and a half.
const KIBIBYTES: &str = "20480";

/// Mounts a small disk on the working folder, for this process and its children only, and runs a program there.
const SMALL_DISK: &str =
    "mount -t tmpfs -o size=20m tmpfs \"$PWD\" && cd \"$PWD\" && printf disk > under-a-limit && exec \"$@\"";

/// When a store that does not go on fails a test. It tries again ten times a second.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_on_when_there_is_space_again() {
    if Path::new(CHILD).exists() {
        return fill_up().await;
    }
    under_a_limit("full_disk::a_store_goes_on_when_there_is_space_again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_on_after_a_small_disk_was_full() {
    if Path::new(CHILD).exists() {
        return fill_up().await;
    }
    if is_left_out("mounts") {
        return;
    }
    let small = ["unshare", "--map-root-user", "--mount", "bash", "-c", SMALL_DISK, "bash"];
    let folder = tempfile::tempdir().unwrap();
    let mount = Command::new(small[0]).args(&small[1..]).arg("true").current_dir(folder.path()).status();
    assert!(
        mount.is_ok_and(|mount| mount.success()),
        "this user cannot mount a disk of its own: run this as root or allow user namespaces, or leave it out with \
         `cargo xtask test --without mounts`"
    );
    again("full_disk::a_store_goes_on_after_a_small_disk_was_full", &small, folder.path());
}

/// Runs a test again, in an empty folder and with the limit.
fn under_a_limit(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(CHILD), "").unwrap();
    let limited = format!("trap '' XFSZ; ulimit -S -f {KIBIBYTES}; exec \"$@\"");
    again(test, &["bash", "-c", &limited, "bash"], folder.path());
}

/// Runs a test again, as the child of a command and in a folder.
fn again(test: &str, around: &[&str], folder: &Path) {
    let child = Command::new(around[0])
        .args(&around[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(child.status.success(), "{}\n{}", text(&child.stdout), text(&child.stderr));
}

fn lift_the_limit() {
    if std::fs::read_to_string(CHILD).unwrap().is_empty() {
        return limit("unlimited");
    }
    let here = std::env::current_dir().unwrap();
    assert!(Command::new("mount").args(["-o", "remount,size=200m"]).arg(here).status().unwrap().success());
}

fn limit(bytes: &str) {
    let (of_this, size) = (std::process::id().to_string(), format!("--fsize={bytes}:"));
    assert!(Command::new("prlimit").args(["--pid", &of_this, &size]).status().unwrap().success());
}

fn fault(error: AppendError) -> StoreFault {
    let AppendError::Fault(fault) = error else { panic!("{error}") };
    fault
}

/// The result of a read, unless the full disk prevents it. sled cannot read a page whose split it has not finished.
fn read<T>(read: Result<T, StoreFault>) -> Option<T> {
    read.inspect_err(|fault| assert_eq!(fault.kind, FaultKind::NoSpace, "{fault}")).ok()
}

async fn fill_up() {
    let store = open("store", &StoreSettings::default()).unwrap();
    store.append(&with(commit(1, 0, 1), [RowChange::Suspension(given::row(1, given::OPEN))])).await.unwrap();
    let mut acknowledged = 0;
    let refused = loop {
        let event = large_fact(acknowledged.into(), 60 << 10);
        match store.append(&events(2, acknowledged, vec![event])).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break fault(error),
        }
    };
    assert_eq!(refused.kind, FaultKind::NoSpace, "{refused}");
    assert!(refused.to_string().contains("until there is space again"), "{refused}");

    // A commit with a new row fails, and what is on disk can be read.
    let row = RowChange::Suspension(given::row(2, given::OPEN));
    assert_eq!(fault(store.append(&with(commit(3, 0, 1), [row])).await.unwrap_err()).kind, FaultKind::NoSpace);
    let version = |loaded: Option<TurnLog>| loaded.map(|log| log.version);
    // These entries are before all that the refused commit wrote, so their page is whole.
    assert_eq!(version(store.load(turn(1)).await.unwrap().found()), Some(1));
    assert_eq!(store.audit(Position(0), 1).await.unwrap().len(), 1);
    assert_eq!(store.chain(Position(0), 1).await.unwrap().len(), 1);
    assert!(read(store.load(turn(2)).await).is_none_or(|log| version(log.found()) == Some(acknowledged)));
    let page = read(store.suspensions(&Filter::default(), None, 9).await);
    assert!(page.as_ref().is_none_or(|page| page.rows.len() == 1), "{page:?}");
    let feed = Feed::Conversation(conversation("c"));
    let followed = read(store.follow(&feed, Position(0), usize::MAX, usize::MAX).await);
    assert!(followed.is_none_or(|commits| commits.len() == acknowledged as usize + 1));
    assert!(read(store.head().await).is_none_or(|head| head.position.0 == u64::from(acknowledged) + 1));

    lift_the_limit();
    let goes_on = async {
        while let Err(error) = store.append(&commit(2, acknowledged, 7)).await {
            assert_eq!(fault(error).kind, FaultKind::NoSpace);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, goes_on).await.unwrap();
    let log = store.load(turn(2)).await.unwrap().found().unwrap();
    assert!(log.version > acknowledged, "{} of {acknowledged}", log.version);
    assert_eq!(store.check().unwrap().problems, []);
    let head = store.head().await.unwrap();
    drop(store);
    assert_eq!(verify(Path::new("store"), &StoreSettings::default(), Vec::new()).unwrap(), head);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_record_without_space_is_a_failure_of_the_store() {
    if !Path::new(CHILD).exists() {
        return under_a_limit("full_disk::large_record_without_space_is_a_failure_of_the_store");
    }
    let store = open("store", &StoreSettings::default()).unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    let large = events(2, 0, vec![large_fact(1, 200 << 10)]);
    limit("150000");
    assert!(store.health().failure.is_none());
    for refused in [&large, &commit(1, 1, 1)] {
        assert_eq!(fault(store.append(refused).await.unwrap_err()).kind, FaultKind::NoSpace);
        let health = store.health();
        assert_eq!((health.failure.unwrap().kind, health.failures), (FaultKind::NoSpace, 1));
    }
    assert_eq!(store.audit(Position(0), 9).await.unwrap().len(), 1);

    lift_the_limit();
    let goes_on = async {
        while store.append(&large).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, goes_on).await.unwrap();
    let health = store.health();
    assert!(health.failure.is_none() && health.failures == 1, "{health:?}");
    assert_eq!(store.check().unwrap().problems, []);
    assert_eq!(store.head().await.unwrap().position, Position(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_data_survives_a_full_disk() {
    if Path::new(CHILD).exists() {
        let store = open("store", &StoreSettings::default()).unwrap();
        let data = store.key_value();
        store.append(&commit(1, 0, 1)).await.unwrap();
        let (mut written, value) = (0_u32, vec![7; 60 << 10]);
        // Some of these are only in memory when the disk refuses one.
        loop {
            match data.set("p", "b", &written.to_be_bytes(), &value, NamespaceQuota::UNBOUNDED) {
                Ok(()) => written += 1,
                Err(KeyValueError::Fault(_)) => break,
                Err(other) => panic!("{other}"),
            }
            if written % 10 == 0 && store.sync().await.is_err() {
                break;
            }
        }
        lift_the_limit();
        let goes_on = async {
            while store.append(&commit(2, 0, 1)).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, goes_on).await.unwrap();
        drop((store, data));
        let data = open("store", &StoreSettings::default()).unwrap().key_value();
        for number in 0..written {
            assert!(data.get("p", "b", &number.to_be_bytes()).unwrap().is_some(), "{number} of {written}");
        }
        return;
    }
    under_a_limit("full_disk::plugins_data_survives_a_full_disk");
}
