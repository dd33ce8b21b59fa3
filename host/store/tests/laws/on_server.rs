//! The store on a PostgreSQL server: what it refuses, and what becomes of commits when the server or the connection fails.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dispatch::ports::{
    AppendError, Audit as _, Commit, FaultKind, Feed, Health as _, Indexes as _, Loaded, Log as _, Position, RowChange,
    StandingApprovals as _, Walk,
};
use domain::suspension::SuspensionState;
use futures::FutureExt as _;

use crate::given::{self, call_of, commit, conversation, owner, row, suspension, turn, with};
use crate::machine::is_left_out;
use crate::proxy::{Cut, Proxy};
use crate::store::{
    ImportError, MAX_RECORD, PostgresError, PostgresSettings, PostgresStore, export_database, import_database,
};
use crate::{server, standing};

pub(crate) fn settings(url: String) -> PostgresSettings {
    PostgresSettings { readers: 4, values: 2, ..PostgresSettings::new(url) }
}

/// A store in a database of its own. `None` if the part is left out.
pub(crate) async fn store() -> Option<PostgresStore> {
    if is_left_out("postgres") {
        return None;
    }
    let (_, url) = server::database();
    Some(PostgresStore::open(&settings(url)).await.unwrap())
}

pub(crate) async fn refusal(settings: &PostgresSettings) -> PostgresError {
    match PostgresStore::open(settings).await {
        Ok(_) => panic!("the database is not refused"),
        Err(error) => error,
    }
}

/// Verifies the whole chain. Returns the last position.
pub(crate) async fn verified(store: &PostgresStore) -> u64 {
    let mut walk = Walk::new(Vec::new());
    for entry in store.chain(Position(0), usize::MAX).await.unwrap() {
        walk.step(&entry).unwrap();
    }
    walk.end(store.head().await.unwrap()).unwrap().position.0
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_there_after_a_restart_of_the_host() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let store = PostgresStore::open(&settings(url.clone())).await.unwrap();
    store.append(&with(commit(1, 0, 1), [owner("ann"), call_of(1, "a")])).await.unwrap();
    let head = store.head().await.unwrap();
    drop(store);
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    assert_eq!(store.head().await.unwrap(), head);
    assert!(matches!(store.append(&commit(1, 0, 2)).await, Err(AppendError::Conflict)));
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn second_host_of_the_same_name_is_refused() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let first = PostgresStore::open(&settings(url.clone())).await.unwrap();
    let hasty = PostgresSettings { lock_wait: Duration::from_millis(10), ..settings(url.clone()) };
    let refused = refusal(&hasty).await.to_string();
    let expected = "another host with the name `toolgate` uses this database (toolgate from the same machine since ";
    assert!(refused.starts_with(expected), "{refused}");
    first.append(&commit(1, 0, 1)).await.unwrap();
    drop(first);
    PostgresStore::open(&settings(url)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unsafe_server_is_refused() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let altered = |alteration: &str| server::run("postgres", &format!("ALTER DATABASE {name} {alteration}"));
    altered("SET synchronous_commit = off");
    let refused = refusal(&settings(url.clone())).await;
    assert!(matches!(refused, PostgresError::Unsafe { setting: "synchronous_commit" }), "{refused}");
    altered("RESET synchronous_commit");
    altered("SET default_transaction_read_only = on");
    assert!(matches!(refusal(&settings(url.clone())).await, PostgresError::ReadOnly));
    server::run(&name, "SELECT 1");
    altered("RESET default_transaction_read_only");
    PostgresStore::open(&settings(url)).await.unwrap();

    server::run("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'");
    let refused = refusal(&settings(server::url(server::folder(), "latin"))).await;
    assert!(matches!(&refused, PostgresError::Encoding(encoding) if encoding == "LATIN1"), "{refused}");

    let without_sync = server::start("-c fsync=off");
    let refused = refusal(&settings(server::url(&without_sync, "postgres"))).await;
    assert!(matches!(refused, PostgresError::Unsafe { setting: "fsync" }), "{refused}");
    let missing = refusal(&settings(server::url(Path::new("/missing"), "postgres"))).await;
    assert!(missing.to_string().starts_with("the database server /missing cannot be reached: "), "{missing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_a_newer_host_is_refused() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    drop(PostgresStore::open(&settings(url.clone())).await.unwrap());
    server::run(&name, "UPDATE toolgate.format SET version = 99, oldest = 99");
    let refused = refusal(&settings(url)).await;
    assert!(matches!(refused, PostgresError::Newer { found: 99, .. }), "{refused}");
}

/// A store behind a proxy.
pub(crate) async fn behind_proxy(deadline: Duration) -> (String, Proxy, PostgresStore) {
    let (name, _) = server::database();
    let proxy = Proxy::start(server::folder()).await;
    let settings = PostgresSettings { deadline, ..settings(server::url(proxy.folder(), &name)) };
    let store = PostgresStore::open(&settings).await.unwrap();
    (name, proxy, store)
}

/// Waits until the store has a failure of this kind, or none.
pub(crate) async fn until_failure_is(store: &PostgresStore, kind: Option<FaultKind>) {
    let reached = async {
        // The store connects while this waits, so it needs the processor.
        let mut looks = tokio::time::interval(LOOK);
        while store.health().failure.map(|failure| failure.kind) != kind {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

/// The time between two looks at the health of a store.
const LOOK: Duration = Duration::from_millis(10);

/// When a store whose health does not change fails a test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of an operator.
const DEADLINE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn commit_whose_answer_is_lost_happens_once() {
    if is_left_out("postgres") {
        return;
    }
    for cut in [Cut::BehindCommit, Cut::BeforeCommit, Cut::BeforeAll] {
        let (_, proxy, store) = behind_proxy(DEADLINE).await;
        store.append(&with(commit(1, 0, 1), [owner("ann")])).await.unwrap();
        proxy.cut(cut, 1);
        let rows = [call_of(1, "a"), RowChange::Suspension(row(1, SuspensionState::Open))];
        let position = store.append(&with(commit(1, 1, 2), rows)).await.unwrap();
        assert_eq!((position, proxy.cuts()), (Position(2), 1), "{cut:?}");
        let Loaded::Found(log) = store.load(turn(1)).await.unwrap() else { panic!("{cut:?}: the turn is lost") };
        assert_eq!(log.events.iter().map(given::number).collect::<Vec<_>>(), [1, 2], "{cut:?}");
        assert!(store.suspension(suspension(1)).await.unwrap().is_some());
        // The committer goes on with its new connection, which has the lock.
        store.append(&commit(1, 2, 3)).await.unwrap();
        assert_eq!(verified(&store).await, 3, "{cut:?}");
        assert!(store.health().failure.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_whose_answer_is_lost_are_written_once() {
    if is_left_out("postgres") {
        return;
    }
    for cut in [Cut::BehindCommit, Cut::BeforeCommit, Cut::BeforeAll] {
        let (_, proxy, store) = behind_proxy(DEADLINE).await;
        let given = standing::row(1, 3);
        store.append(&Commit::rows(vec![RowChange::Standing(Box::new(given.clone()))])).await.unwrap();
        proxy.cut(cut, 1);
        store.append(&Commit::rows(vec![RowChange::StandingUse(given.standing.id)])).await.unwrap();
        assert_eq!(proxy.cuts(), 1, "{cut:?}");
        assert_eq!(store.standing(given.standing.id).await.unwrap().unwrap().used, 1, "{cut:?}");
        store.append(&Commit::rows(vec![RowChange::StandingUse(given.standing.id)])).await.unwrap();
        assert!(store.health().failure.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_never_happens_is_given_up() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(DEADLINE).await;
    proxy.cut(Cut::BeforeCommit, 10);
    let Err(AppendError::Fault(fault)) = store.append(&commit(1, 0, 1)).await else { panic!("each one was cut") };
    assert_eq!((fault.kind, proxy.cuts()), (FaultKind::NoAnswer, 10), "{fault}");
    until_failure_is(&store, None).await;
    store.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(verified(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusal_whose_answer_is_lost_stays_a_refusal() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(DEADLINE).await;
    store.append(&with(commit(1, 0, 1), [call_of(1, "a")])).await.unwrap();
    proxy.cut(Cut::BehindCommit, 1);
    let refused = with(commit(2, 0, 2), [call_of(2, "a")]);
    let next = commit(1, 1, 2);
    let both = tokio::join!(store.append(&next), store.append(&refused));
    assert_eq!(both.0.unwrap(), Position(2));
    assert!(matches!(both.1, Err(AppendError::CallExists(of)) if of == turn(1)));
    assert_eq!(proxy.cuts(), 1);
    assert_eq!(verified(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_without_its_server_says_so_and_recovers() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, store) = behind_proxy(Duration::from_secs(1)).await;
    store.append(&commit(1, 0, 1)).await.unwrap();
    proxy.close(true);
    let Err(AppendError::Fault(fault)) = store.append(&commit(1, 1, 2)).await else { panic!("there is no server") };
    assert_eq!(fault.kind, FaultKind::NoAnswer, "{fault}");
    assert!(store.health().failure.is_some());
    assert!(store.load(turn(1)).await.is_err());
    assert!(store.key_value().set("p", "b", b"k", b"v", crate::store::NamespaceQuota::UNBOUNDED).is_err());
    proxy.close(false);
    // Nobody commits meanwhile.
    until_failure_is(&store, None).await;
    assert_eq!(store.health().failures, 1, "attempts that fail again are the same failure");
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_sessions_lose_and_repeat_nothing() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let store = Arc::new(PostgresStore::open(&settings(url)).await.unwrap());
    let writers: Vec<_> = (1..=8)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                for expected in 0..60 {
                    store.append(&commit(number, expected, u64::from(expected))).await.unwrap();
                }
            })
        })
        .collect();
    let mut ended = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        let end = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}' \
            AND backend_type = 'client backend' AND application_name = 'toolgate'"
        );
        ended += server::run("postgres", &end).parse::<u64>().unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(ended > 0, "the server ended no session");
    assert_eq!(verified(&store).await, 8 * 60);
    let feed = store.follow(&Feed::Conversation(conversation("c")), Position(0), 999, usize::MAX).await.unwrap();
    assert_eq!(feed.len(), 8 * 60);
    for number in 1..=8 {
        assert_eq!(store.load(turn(number)).await.unwrap().found().unwrap().version, 60);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_the_server_refuses_fails_alone() {
    let Some(store) = store().await else { return };
    let store = Arc::new(store);
    // PostgreSQL stores no text with a NUL.
    let bad = RowChange::Suspension(dispatch::ports::SuspensionRow { tool: "\0".into(), ..row(1, given::OPEN) });
    let tasks: Vec<_> = (0..32)
        .map(|number| {
            let (store, bad) = (store.clone(), bad.clone());
            let rows = if number == 7 { vec![bad] } else { Vec::new() };
            tokio::spawn(async move { store.append(&with(commit(number, 0, number), rows)).await })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        refused += u32::from(task.await.unwrap().is_err());
    }
    assert_eq!(refused, 1);
    assert_eq!(verified(&store).await, 31);
    assert_eq!(store.load(turn(7)).await.unwrap(), Loaded::Absent);
    assert!(store.health().failure.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_at_the_same_time_share_transactions() {
    let Some(store) = store().await else { return };
    let store = Arc::new(store);
    let before = store.health().syncs;
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.append(&commit(number, 0, number)).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let syncs = store.health().syncs - before;
    assert!(syncs < 100, "{syncs} transactions for 200 commits");
    assert_eq!(verified(&store).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_records_are_found() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    for number in 0..3 {
        store.append(&commit(1, number, number.into())).await.unwrap();
    }
    store.append(&commit(2, 0, 9)).await.unwrap();
    server::run(&name, "UPDATE toolgate.commits SET record = 'damaged' WHERE position = 2");
    let mut walk = Walk::new(Vec::new());
    let entries = store.chain(Position(0), 9).await.unwrap();
    let found = entries.iter().find_map(|entry| walk.step(entry).err()).unwrap();
    assert_eq!(found.at, Position(2), "{found}");
    assert!(store.load(turn(1)).await.unwrap_err().is_damage());
    assert!(store.load(turn(2)).await.unwrap().found().is_some());
    let feed = store.follow(&Feed::Conversation(conversation("c")), Position(0), 9, usize::MAX).await.unwrap();
    assert_eq!(feed.len(), 4, "a feed goes on without the damaged record");
    assert!(store.health().damaged_records > 0);
    // A record that is removed without a word in the audit.
    let removed =
        "UPDATE toolgate.commits SET record = NULL, digest = sha256(record), removed_by = 4 WHERE position = 1";
    server::run(&name, removed);
    let first = &store.chain(Position(0), 1).await.unwrap()[0];
    assert!(Walk::new(Vec::new()).step(first).unwrap_err().to_string().contains("no later entry says so"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_facts_get_no_position() {
    let Some(store) = store().await else { return };
    store.append(&commit(1, 0, 1)).await.unwrap();
    let rows = Commit::rows(vec![RowChange::RetentionTime(given::time(7))]);
    assert_eq!(store.append(&rows).await.unwrap(), Position(1));
    store.sync().await.unwrap();
    assert_eq!(verified(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_store_makes_its_queued_commits() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let store = PostgresStore::open(&settings(url.clone())).await.unwrap();
    for number in 0..100 {
        let given_up = commit(number, 0, number);
        assert!(store.append(&given_up).now_or_never().is_none(), "a commit takes time");
    }
    drop(store);
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    assert_eq!(verified(&store).await, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_of_the_server_is_verified() {
    if is_left_out("postgres") {
        return;
    }
    // PostgreSQL cannot choose a port, and somebody else may take a free one before it does. Then it does not start.
    let attempt = |_| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        server::started("", Some(port)).map(|folder| (folder, port))
    };
    let (folder, port) = (0..10).find_map(attempt).unwrap();
    let url = |host: &str| format!("postgres://toolgate@{host}:{port}/postgres?hostaddr=127.0.0.1");
    let authorities = format!("&sslrootcert={}", folder.join("certificate.pem").display());
    let unknown = refusal(&settings(url("localhost"))).await.to_string();
    assert!(unknown.contains("invalid peer certificate: UnknownIssuer"), "{unknown}");
    let misnamed = refusal(&settings(format!("{}{authorities}", url("127.0.0.1")))).await.to_string();
    assert!(misnamed.contains("invalid peer certificate: certificate not valid for name"), "{misnamed}");
    let store = PostgresStore::open(&settings(format!("{}{authorities}", url("localhost")))).await.unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(verified(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_does_not_answer_takes_no_time_of_the_next_one() {
    if is_left_out("postgres") {
        return;
    }
    let (name, _) = server::database();
    let silent = tempfile::tempdir().unwrap();
    // Connections are made, and nobody answers.
    let _listener = std::os::unix::net::UnixListener::bind(silent.path().join(".s.PGSQL.5432")).unwrap();
    let [one, other] = [silent.path(), server::folder()].map(|path| path.to_str().unwrap().replace('/', "%2F"));
    let url = format!("postgres://toolgate@{one},{other}/{name}");
    let store =
        PostgresStore::open(&PostgresSettings { deadline: Duration::from_secs(3), ..settings(url) }).await.unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    assert_eq!(verified(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn import_whose_answer_is_lost_is_whole_or_nothing() {
    if is_left_out("postgres") {
        return;
    }
    let (_, url) = server::database();
    let store = PostgresStore::open(&settings(url.clone())).await.unwrap();
    store.append(&given::record(given::plugin(1))).await.unwrap();
    drop(store);
    let mut lines = Vec::new();
    let exported = export_database(&settings(url), &mut lines).await.unwrap();
    for (cut, commits) in [(Cut::BehindCommit, "1"), (Cut::BeforeCommit, "0")] {
        let (name, proxy, store) = behind_proxy(DEADLINE).await;
        drop(store);
        let target = settings(server::url(proxy.folder(), &name));
        proxy.cut(cut, 1);
        let lost = import_database(&target, MAX_RECORD, &mut lines.as_slice(), &|_| Ok(())).await.unwrap_err();
        assert!(matches!(lost, ImportError::Unanswered(_)), "{cut:?}: {lost}");
        assert_eq!(server::run(&name, "SELECT count(*) FROM toolgate.commits"), commits, "{cut:?}");
        match import_database(&target, MAX_RECORD, &mut lines.as_slice(), &|_| Ok(())).await {
            Ok(moved) => assert_eq!((moved, cut), (exported, Cut::BeforeCommit)),
            Err(ImportError::NotEmpty { .. }) => assert_eq!(cut, Cut::BehindCommit),
            Err(error) => panic!("{cut:?}: {error}"),
        }
    }
}
