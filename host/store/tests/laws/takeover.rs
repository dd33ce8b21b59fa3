//! A database that is not as the host left it: a server without the last commits, another run of the host, and writes that arrive late.

use std::time::Duration;

use dispatch::ports::{AppendError, Audit as _, FaultKind, Health as _, Log as _, Position};

use tempfile::TempDir;

use crate::given::commit;
use crate::machine::is_left_out;
use crate::on_server::{behind_proxy, refusal, settings, until_failure_is, verified};
use crate::proxy::{Cut, Proxy};
use crate::server;
use crate::store::{KeyValue, KeyValueError, NamespaceQuota, PostgresError, PostgresSettings, PostgresStore};

/// Short, because these tests wait until it is over. A busy machine connects within it.
const DEADLINE: Duration = Duration::from_secs(2);

/// Sets a value on a thread that may block.
pub(crate) async fn set(data: &KeyValue, value: &'static [u8]) -> Result<(), KeyValueError> {
    let data = data.clone();
    let set = move || data.set("p", "b", b"k", value, NamespaceQuota::UNBOUNDED);
    tokio::task::spawn_blocking(set).await.unwrap()
}

pub(crate) async fn get(data: &KeyValue) -> Option<Vec<u8>> {
    let data = data.clone();
    tokio::task::spawn_blocking(move || data.get("p", "b", b"k")).await.unwrap().unwrap()
}

/// Ends the session that has the lock of the host.
fn end_writer(name: &str) {
    let ended = server::run(
        "postgres",
        &format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted \
            AND database = (SELECT oid FROM pg_database WHERE datname = '{name}')"
        ),
    );
    assert_eq!(ended, "1");
}

/// The store takes no commits and no values, although it had time to try again, and says what to do.
pub(crate) async fn assert_final(store: &PostgresStore, reason: &str) {
    until_failure_is(store, Some(FaultKind::Disk)).await;
    let failure = store.health().failure.unwrap();
    assert_eq!(store.final_failure().borrow().as_ref().map(ToString::to_string), Some(failure.to_string()));
    assert!(failure.reason.contains(reason) && failure.reason.contains("start the host again"), "{failure}");
    // Another store fails later, and tries again.
    let (_, proxy, other) = behind_proxy(DEADLINE).await;
    proxy.close(true);
    assert!(other.append(&commit(1, 0, 1)).await.is_err());
    proxy.close(false);
    until_failure_is(&other, None).await;
    let Err(AppendError::Fault(fault)) = store.append(&commit(9, 0, 9)).await else { panic!("the store goes on") };
    assert_eq!(fault.to_string(), failure.to_string());
    assert!(set(&store.key_value(), b"refused").await.is_err());
    assert!(store.sync().await.is_err());
}

/// Saves what the last transaction wrote beside its commits.
fn save(name: &str, table: &str) {
    let saved = "SELECT hosts.position, hosts.hash, mark FROM toolgate.head, toolgate.hosts";
    server::run(name, &format!("CREATE TABLE {table} AS {saved}"));
}

fn restore(name: &str, table: &str) {
    let set = "SET (position, hash) = (SELECT position, hash FROM";
    server::run(name, &format!("UPDATE toolgate.head {set} {table})"));
    server::run(name, &format!("UPDATE toolgate.hosts {set} {table}), mark = (SELECT mark FROM {table})"));
}

/// The settings of a host with a data folder, which it keeps over its starts.
fn with_folder(database: &str) -> (TempDir, PostgresSettings) {
    let folder = tempfile::tempdir().unwrap();
    let left = Some(folder.path().join("left"));
    (folder, PostgresSettings { left, ..settings(server::url(server::folder(), database)) })
}

/// A start is refused until the file is removed. Then the host goes on.
async fn goes_on_without_the_file(settings: &PostgresSettings, (left, found): (u64, u64)) -> PostgresStore {
    for _ in 0..2 {
        let refused = refusal(settings).await;
        let PostgresError::LostCommits { left: of_host, found: of_database, file } = refused else {
            panic!("{refused}")
        };
        assert_eq!((of_host, of_database, Some(&file)), (left, found, settings.left.as_ref()));
    }
    std::fs::remove_file(settings.left.as_ref().unwrap()).unwrap();
    PostgresStore::open(settings).await.unwrap()
}

/// Two commits, of which the database then loses the second.
async fn rewound(between: impl FnOnce(&str)) -> (String, PostgresStore, (TempDir, PostgresSettings)) {
    let (name, _) = server::database();
    let of_host = with_folder(&name);
    let store = PostgresStore::open(&of_host.1).await.unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    save(&name, "earlier");
    store.append(&commit(1, 1, 2)).await.unwrap();
    save(&name, "later");
    server::run(&name, "CREATE TABLE removed AS SELECT * FROM toolgate.commits WHERE position = 2");
    server::run(&name, "DELETE FROM toolgate.commits WHERE position = 2");
    restore(&name, "earlier");
    between(&name);
    (name, store, of_host)
}

const CHANGED: &str = "it is at position 1 of the audit, and this host left it at 2";

#[tokio::test(flavor = "multi_thread")]
async fn idle_host_notices_that_commits_are_lost() {
    if is_left_out("postgres") {
        return;
    }
    let (name, store, (_folder, settings)) = rewound(end_writer).await;
    until_failure_is(&store, Some(FaultKind::Disk)).await;
    // It is too late now: only a person knows what has happened.
    restore(&name, "later");
    assert_final(&store, CHANGED).await;
    assert_eq!(store.health().failures, 1);
    drop(store);
    // The right database is back, so nobody has to decide anything.
    server::run(&name, "INSERT INTO toolgate.commits SELECT * FROM removed");
    PostgresStore::open(&settings).await.unwrap();
    assert!(!settings.left.unwrap().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_commit_follows_on_lost_commits() {
    if is_left_out("postgres") {
        return;
    }
    let (_, store, (_folder, settings)) = rewound(|_| {}).await;
    assert!(store.append(&commit(1, 2, 3)).await.is_err());
    assert_final(&store, CHANGED).await;
    drop(store);
    let store = goes_on_without_the_file(&settings, (2, 1)).await;
    store.append(&commit(1, 1, 3)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_rows_are_noticed() {
    if is_left_out("postgres") {
        return;
    }
    let (name, _) = server::database();
    let (_folder, settings) = with_folder(&name);
    let store = PostgresStore::open(&settings).await.unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    save(&name, "earlier");
    // A transaction without facts leaves the position and the hash as they are.
    store.sync().await.unwrap();
    restore(&name, "earlier");
    assert!(store.append(&commit(1, 1, 2)).await.is_err());
    assert_final(&store, "it is at position 1 of the audit, and this host left it at 1").await;
    drop(store);
    goes_on_without_the_file(&settings, (1, 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_was_answered_with_an_error_is_noticed() {
    if is_left_out("postgres") {
        return;
    }
    for cut in [Cut::BeforeCommit, Cut::BehindCommit] {
        let (name, _) = server::database();
        let (_folder, settings) = with_folder(&name);
        let proxy = Proxy::start(server::folder()).await;
        let url = server::url(proxy.folder(), &name);
        let store =
            PostgresStore::open(&PostgresSettings { url, deadline: DEADLINE, ..settings.clone() }).await.unwrap();
        store.append(&commit(1, 0, 1)).await.unwrap();
        proxy.cut_and_close(cut);
        let Err(AppendError::Fault(fault)) = store.append(&commit(1, 1, 2)).await else { panic!("no server answers") };
        assert_eq!(fault.kind, FaultKind::NoAnswer, "{fault}");
        proxy.close(false);
        if cut == Cut::BehindCommit {
            assert_final(&store, "it is at position 2 of the audit, and this host left it at 1").await;
            drop(store);
            let store = PostgresStore::open(&settings).await.unwrap();
            assert_eq!(store.head().await.unwrap().position, Position(2));
        } else {
            until_failure_is(&store, None).await;
            store.append(&commit(1, 1, 2)).await.unwrap();
            assert_eq!(verified(&store).await, 2);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn late_write_of_a_value_does_not_happen() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(DEADLINE).await;
    let data = store.key_value();
    proxy.hold(b"straggler");
    assert!(set(&data, b"straggler").await.is_err(), "the write takes too long");
    assert_eq!(get(&data).await, None);
    set(&data, b"later").await.unwrap();
    proxy.release().await;
    assert_eq!(get(&data).await.as_deref(), Some(b"later".as_slice()));
    assert!(store.health().failure.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_lost_its_lock_writes_nothing() {
    if is_left_out("postgres") {
        return;
    }
    let (name, proxy, first) = behind_proxy(DEADLINE).await;
    first.append(&commit(1, 0, 1)).await.unwrap();
    proxy.hold(b"straggler");
    let data = first.key_value();
    let late = tokio::spawn(async move { set(&data, b"straggler").await });
    proxy.held().await;
    let url = server::url(server::folder(), &name);
    // More than this test takes, also on a busy machine.
    let patient = PostgresSettings { lock_wait: Duration::from_secs(60), ..settings(url) };
    let opening = tokio::spawn(async move { PostgresStore::open(&patient).await });
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while server::run(&name, &format!("{waits} AND database = (SELECT oid FROM pg_database WHERE datname = '{name}')"))
        != "1"
    {
        assert!(!opening.is_finished(), "it does not wait for the lock of the first");
    }
    end_writer(&name);
    let second = opening.await.unwrap().unwrap();
    second.append(&commit(1, 1, 2)).await.unwrap();
    set(&second.key_value(), b"of the second").await.unwrap();
    proxy.release().await;
    assert_eq!(get(&second.key_value()).await.as_deref(), Some(b"of the second".as_slice()));
    assert!(first.append(&commit(1, 2, 3)).await.is_err());
    assert!(late.await.unwrap().is_err());
    assert_final(&first, "another host found that the lease of this host had ended").await;
    assert_eq!(verified(&second).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_lost_values_is_noticed() {
    if is_left_out("postgres") {
        return;
    }
    for is_answer_lost in [false, true] {
        let (name, url) = server::database();
        let store = PostgresStore::open(&settings(url)).await.unwrap();
        let data = store.key_value();
        set(&data, b"kept").await.unwrap();
        end_writer(&name);
        store.append(&commit(1, 0, 1)).await.unwrap();
        set(&data, b"lost").await.unwrap();
        server::run(&name, "UPDATE toolgate.value_writes SET writes = writes - 1");
        server::run(&name, "TRUNCATE toolgate.value_terms");
        if is_answer_lost {
            // The server begins a term, and the host does not get the answer.
            let begun = "INSERT INTO toolgate.value_terms (host, term, base) \
                SELECT name, gen_random_uuid(), writes FROM toolgate.hosts, toolgate.value_writes";
            server::run(&name, begun);
        }
        end_writer(&name);
        assert_final(&store, "has lost data of plugins").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_server_takes_commits_when_it_has_space() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let store =
        std::sync::Arc::new(PostgresStore::open(&PostgresSettings { readers: 2, ..settings(url) }).await.unwrap());
    store.append(&commit(99, 0, 1)).await.unwrap();
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END $$; \
        CREATE TRIGGER full_disk BEFORE UPDATE ON toolgate.head FOR EACH ROW EXECUTE FUNCTION full_disk()";
    server::run(&name, full);
    let commits: Vec<_> = (0..32)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.append(&commit(number, 0, number)).await })
        })
        .collect();
    for refused in commits {
        let Err(AppendError::Fault(fault)) = refused.await.unwrap() else { panic!("the server is full") };
        assert_eq!(fault.kind, FaultKind::NoSpace, "{fault}");
    }
    assert_eq!(store.health().failure.unwrap().kind, FaultKind::NoSpace);
    server::run(&name, "DROP TRIGGER full_disk ON toolgate.head");
    until_failure_is(&store, None).await;
    assert_eq!(store.health().failures, 1);
    store.append(&commit(99, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
}
