//! The plugins' data on a server that several hosts write to.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dispatch::ports::{AppendError, Commit, Journals as _, Log as _, RowChange, StoreFault};
use domain::journal::ValueChange;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::given::{commit, turn};
use crate::journals::{CALL, entry, names, row};
use crate::machine::is_left_out;
use crate::on_server::{behind_proxy, settings, until_failure_is};
use crate::proxy::Proxy;
use crate::server;
use crate::store::{CommitValue, KeyValue, KeyValueError, NamespaceQuota, PostgresStore};
use crate::takeover::{assert_final, get, set};

const ANY: NamespaceQuota = NamespaceQuota::UNBOUNDED;

/// Of an operator.
const DEADLINE: Duration = Duration::from_secs(10);

/// The key `k` of the bucket `b` of the namespace `p`.
const KEY: &[u8] = b"\0\x01p\0\x01bk";

/// Another host writes the key outside of commits.
fn other_host_sets(database: &str, value: &str) {
    server::run(
        database,
        &format!(
            "INSERT INTO toolgate.plugin_values (key, value) VALUES ('\\x0001700001626b', '{value}') \
            ON CONFLICT (key) DO UPDATE SET value = excluded.value, write = NULL"
        ),
    );
}

fn change(old: Option<&str>, value: Option<&str>) -> RowChange {
    let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
    RowChange::Value(ValueChange { key: KEY.to_vec(), old: bytes(old), value: bytes(value) })
}

/// Whether the usage that the database keeps is that of its entries.
fn assert_usage_is_exact(database: &str) {
    let counted = "SELECT sum(octet_length(key) - 5 + octet_length(value)), count(*) FROM toolgate.plugin_values \
        WHERE substr(key, 1, 3) = '\\x000170'";
    let kept = "SELECT bytes, keys FROM toolgate.plugin_usage WHERE namespace = 'p'";
    assert_eq!(server::run(database, kept), server::run(database, counted));
}

#[tokio::test(flavor = "multi_thread")]
async fn value_of_a_faster_host_is_not_overwritten() {
    if is_left_out("postgres") {
        return;
    }
    for before in [None, Some(b"1".as_slice())] {
        for new in [Some(b"late".as_slice()), None] {
            let (name, proxy, store) = behind_proxy(DEADLINE).await;
            let data = store.key_value();
            if before.is_some() {
                set(&data, b"1").await.unwrap();
            }
            // The value or, for a removal, the statement.
            proxy.hold(new.unwrap_or(b"DELETE"));
            let swap = spawn_blocking(move || data.compare_and_swap("p", "b", b"k", before, new, ANY));
            if (before, new) == (None, None) {
                assert_eq!(swap.await.unwrap().unwrap(), Ok(()));
                continue;
            }
            proxy.held().await;
            other_host_sets(&name, "2");
            proxy.release().await;
            assert_eq!(swap.await.unwrap().unwrap(), Err(Some(b"2".to_vec())), "{before:?} {new:?}");
            assert_usage_is_exact(&name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overtaken_write_replaces_the_newer_value() {
    if is_left_out("postgres") {
        return;
    }
    let (name, proxy, store) = behind_proxy(DEADLINE).await;
    let data = store.key_value();
    proxy.hold(b"late");
    let setting = {
        let data = data.clone();
        tokio::spawn(async move { set(&data, b"late").await })
    };
    proxy.held().await;
    other_host_sets(&name, "2");
    proxy.release().await;
    setting.await.unwrap().unwrap();
    assert_eq!(get(&data).await.as_deref(), Some(b"late".as_slice()));
    assert_usage_is_exact(&name);
}

#[tokio::test(flavor = "multi_thread")]
async fn write_whose_answer_is_lost_is_known_by_its_id() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(DEADLINE).await;
    proxy.hold(b"late");
    let data = store.key_value();
    let setting = tokio::spawn(async move { set(&data, b"late").await });
    proxy.release_without_answer().await;
    setting.await.unwrap().unwrap();
    assert_eq!(get(&store.key_value()).await.as_deref(), Some(b"late".as_slice()));

    // The write does not happen, and another host writes the same value, as for a counter.
    let (name, proxy, store) = behind_proxy(Duration::from_secs(1)).await;
    proxy.hold(b"late");
    let data = store.key_value();
    let setting = tokio::spawn(async move { set(&data, b"late").await });
    proxy.held().await;
    other_host_sets(&name, "late");
    assert!(setting.await.unwrap().is_err());
    proxy.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_with_an_outdated_value_is_refused() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    let append = async |number, old, value| {
        store.append(&Commit::rows(vec![row(1, 1, entry(number)), change(old, value)])).await.map(drop)
    };
    let is_outdated = |done| matches!(done, Err(AppendError::Changed));
    assert!(is_outdated(append(0, Some("1"), Some("2")).await));
    append(0, None, Some("1")).await.unwrap();
    other_host_sets(&name, "2");
    for (old, new) in [(None, Some("3")), (None, None), (Some("1"), Some("3")), (Some("1"), None)] {
        assert!(is_outdated(append(1, old, new).await), "{old:?} {new:?}");
    }
    append(1, Some("2"), None).await.unwrap();
    other_host_sets(&name, "4");
    assert!(is_outdated(append(2, None, Some("5")).await));
    append(2, Some("4"), Some("5")).await.unwrap();
    assert_usage_is_exact(&name);
}

#[tokio::test(flavor = "multi_thread")]
async fn value_that_appears_during_a_commit_refuses_it_alone() {
    if is_left_out("postgres") {
        return;
    }
    let (name, proxy, store) = behind_proxy(DEADLINE).await;
    let store = Arc::new(store);
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    proxy.hold(b"late");
    let late = {
        let store = store.clone();
        tokio::spawn(async move {
            let outdated = Commit::rows(vec![row(1, 1, entry(0)), change(None, Some("late"))]);
            let other = commit(2, 0, 2);
            tokio::join!(store.append(&outdated), store.append(&other))
        })
    };
    proxy.held().await;
    other_host_sets(&name, "2");
    proxy.release().await;
    let (outdated, other) = late.await.unwrap();
    assert!(matches!(outdated, Err(AppendError::Changed)), "{outdated:?}");
    other.unwrap();
    store.append(&Commit::rows(vec![row(1, 1, entry(0)), change(Some("2"), Some("3"))])).await.unwrap();
    assert_eq!(get(&store.key_value()).await.as_deref(), Some(b"3".as_slice()));
    assert_usage_is_exact(&name);
}

/// Commits a change with the first entry of a journal. Another host writes before the first attempt.
struct Journaled {
    store: Arc<PostgresStore>,
    database: String,
    attempts: Arc<AtomicUsize>,
}

impl CommitValue for Journaled {
    fn commit(&self, change: ValueChange) -> Result<bool, StoreFault> {
        if self.attempts.fetch_add(1, Ordering::Relaxed) == 0 {
            other_host_sets(&self.database, "12345");
        }
        let rows = Commit::rows(vec![row(1, 1, entry(0)), RowChange::Value(change)]);
        match Handle::current().block_on(self.store.append(&rows)) {
            Ok(_) => Ok(true),
            Err(AppendError::Changed) => Ok(false),
            Err(error) => Err(error.into_fault("commit")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overtaken_journaled_write_is_repeated() {
    if is_left_out("postgres") {
        return;
    }
    let (database, url) = server::database();
    let store = Arc::new(PostgresStore::open(&settings(url)).await.unwrap());
    store.append(&commit(1, 0, 1).with([names(1, Some(1))])).await.unwrap();
    let journaled = || {
        let (store, database, attempts) = (store.clone(), database.clone(), Arc::<AtomicUsize>::default());
        (store.key_value().committed_by(Arc::new(Journaled { store, database, attempts: attempts.clone() })), attempts)
    };
    let (data, attempts) = journaled();
    let swap = move || data.compare_and_swap("p", "b", b"k", None, Some(b"of the call"), ANY);
    assert_eq!(spawn_blocking(swap).await.unwrap().unwrap(), Err(Some(b"12345".to_vec())));
    assert_eq!((attempts.load(Ordering::Relaxed), store.journal(turn(1), CALL).await.unwrap().len()), (1, 0));
    server::run(&database, "UPDATE toolgate.plugin_values SET value = '1'");
    let (data, attempts) = journaled();
    spawn_blocking(move || data.set("p", "b", b"k", b"of the call", ANY)).await.unwrap().unwrap();
    assert_eq!((attempts.load(Ordering::Relaxed), store.journal(turn(1), CALL).await.unwrap().len()), (2, 1));
    assert_eq!(get(&store.key_value()).await.as_deref(), Some(b"of the call".as_slice()));
    assert_usage_is_exact(&database);
}

/// Kills a process of a server of its own. The server then restarts itself from its log, as after a loss of power. Returns
/// when it answers again.
fn crash(folder: &Path) {
    server::run_at(
        folder,
        "postgres",
        "CREATE UNLOGGED TABLE IF NOT EXISTS since_crash (); INSERT INTO since_crash DEFAULT VALUES",
    );
    let writer =
        server::run_at(folder, "postgres", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'");
    assert!(Command::new("kill").args(["-9", &writer]).status().unwrap().success());
    while server::try_run(folder, "postgres", "SELECT count(*) FROM since_crash").as_deref() != Ok("0") {}
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_a_crash_lost_are_noticed() {
    if is_left_out("postgres") {
        return;
    }
    // The server flushes only what a commit asks for.
    let folder = server::start("-c wal_writer_delay=10000");
    let run = |statement: &str| server::run_at(&folder, "postgres", statement);
    let proxy = Proxy::start(&folder).await;
    let store = open(server::url(proxy.folder(), "postgres"), "a").await;
    let other = open(server::url(&folder, "postgres"), "b").await;
    let data = store.key_value();
    for number in 0..20 {
        set(&data, b"kept").await.unwrap();
        store.append(&commit(1, number, 1)).await.unwrap();
        set(&data, b"lost").await.unwrap();
        proxy.close(true);
        crash(&folder);
        let is_lost = run("SELECT convert_from(value, 'UTF8') FROM toolgate.plugin_values") == "kept";
        if is_lost {
            // Another host has not seen the value. It comes back first, writes more than was lost, and leaves.
            for _ in 0..10 {
                while set(&other.key_value(), b"of the other").await.is_err() {}
            }
            drop(other);
            let other = open(server::url(&folder, "postgres"), "b").await;
            set(&other.key_value(), b"of the next").await.unwrap();
            proxy.close(false);
            assert_final(&store, "has lost data of plugins").await;
            until_failure_is(&other, None).await;
            return;
        }
        // The log was flushed in between.
        proxy.close(false);
        while get_or_fault(&data).await.is_none() {}
    }
    panic!("no crash loses a write");
}

/// The store of a host with this name.
async fn open(url: String, host: &str) -> PostgresStore {
    let mut settings = settings(url);
    settings.host.name = host.to_owned();
    PostgresStore::open(&settings).await.unwrap()
}

/// Two hosts on one database, each with its data.
async fn two_hosts() -> (String, [PostgresStore; 2]) {
    let (name, url) = server::database();
    (name, [open(url.clone(), "a").await, open(url, "b").await])
}

/// Runs a function on several threads for each of the two hosts, and returns what they return.
fn on_both<T: Send>(hosts: &[PostgresStore; 2], run: impl Fn(KeyValue, usize) -> T + Sync) -> Vec<T> {
    let (data, run) = (hosts.each_ref().map(PostgresStore::key_value), &run);
    thread::scope(|threads| {
        let start = |thread: usize| {
            let data = data[thread % 2].clone();
            threads.spawn(move || run(data, thread))
        };
        let started: Vec<_> = (0..16).map(start).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_count_together() {
    if is_left_out("postgres") {
        return;
    }
    let (name, hosts) = two_hosts().await;
    let increment = |data: &KeyValue| loop {
        let seen = data.get("p", "b", b"k").unwrap();
        let number = seen.as_deref().map_or(0, |seen| std::str::from_utf8(seen).unwrap().parse::<u32>().unwrap());
        let next = (number + 1).to_string();
        if data.compare_and_swap("p", "b", b"k", seen.as_deref(), Some(next.as_bytes()), ANY).unwrap().is_ok() {
            return;
        }
    };
    on_both(&hosts, |data, _| (0..20).for_each(|_| increment(&data)));
    for host in &hosts {
        assert_eq!(get(&host.key_value()).await.as_deref(), Some(b"320".as_slice()));
    }
    assert_usage_is_exact(&name);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_has_ended_writes_no_values() {
    if is_left_out("postgres") {
        return;
    }
    let (name, [ended, other]) = two_hosts().await;
    set(&ended.key_value(), b"1").await.unwrap();
    server::run(&name, "DELETE FROM toolgate.hosts WHERE name = 'a'");
    assert!(set(&ended.key_value(), b"2").await.is_err());
    assert_final(&ended, "another host found that the lease of this host had ended").await;
    assert_eq!(get(&other.key_value()).await.as_deref(), Some(b"1".as_slice()));
    set(&other.key_value(), b"3").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_share_one_quota() {
    if is_left_out("postgres") {
        return;
    }
    let (name, hosts) = two_hosts().await;
    let quota = NamespaceQuota { bytes: u64::MAX, keys: 100 };
    let written: usize = on_both(&hosts, |data, thread| {
        let key = |number: usize| format!("{thread}-{number}").into_bytes();
        let is_full = |done| match done {
            Ok(()) => false,
            Err(KeyValueError::Full { unit: "keys", .. }) => true,
            Err(other) => panic!("{other}"),
        };
        (0..20).filter(|number| !is_full(data.set("p", "b", &key(*number), b"", quota))).count()
    })
    .into_iter()
    .sum();
    // Each host makes one write to a namespace at a time, and both can have the last room.
    assert!((100..=101).contains(&written), "{written} keys");
    assert_eq!(server::run(&name, "SELECT count(*) FROM toolgate.plugin_values"), written.to_string());
    assert_usage_is_exact(&name);
    // A removal at one host makes room at the other.
    let [one, other] = hosts.each_ref().map(PostgresStore::key_value);
    spawn_blocking(move || {
        let keys = one.list("p", "b", b"", None, 2).unwrap().keys;
        keys.iter().for_each(|key| one.delete("p", "b", key).unwrap());
        other.set("p", "b", b"k", b"", quota).unwrap();
    })
    .await
    .unwrap();
}

/// The value, once the server is back.
async fn get_or_fault(data: &KeyValue) -> Option<Vec<u8>> {
    let data = data.clone();
    spawn_blocking(move || data.get("p", "b", b"k").ok().flatten()).await.unwrap()
}
