//! Hosts that the database cannot hear or does not answer, that cannot commit, or whose commits wait for a standby.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dispatch::ports::{Audit as _, FaultKind, Health as _, Log as _, News};
use domain::Digest;
use futures::future::join_all;

use crate::given::commit;
use crate::hosts::{LONG, SHORT, news, of, until};
use crate::machine::is_left_out;
use crate::on_server::{behind_proxy, refusal, settings, until_failure_is, verified};
use crate::proxy::Proxy;
use crate::server;
use crate::store::{PostgresError, PostgresSettings, PostgresStore};
use crate::takeover::{get, set};

const DEADLINE: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn session_that_a_host_left_behind_is_ended() {
    if is_left_out("postgres") {
        return;
    }
    let (name, proxy, a) = behind_proxy(DEADLINE).await;
    a.append(&commit(1, 0, 1)).await.unwrap();
    proxy.leave_behind();
    a.append(&commit(1, 1, 2)).await.unwrap();
    assert!(a.health().failure.is_none());
    // The next host of that name finds another one.
    proxy.leave_behind();
    proxy.close(true);
    let next = settings(server::url(server::folder(), &name));
    let hasty = PostgresSettings { lock_wait: Duration::from_millis(10), ..next.clone() };
    assert!(matches!(refusal(&hasty).await, PostgresError::InUse { .. }), "the lease has not ended");
    server::run(&name, "UPDATE toolgate.hosts SET lease_until = clock_timestamp() - interval '1 hour'");
    let next = PostgresStore::open(&next).await.unwrap();
    next.append(&commit(1, 2, 3)).await.unwrap();
    assert_eq!(verified(&next).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_stops_in_a_transaction_lets_others_commit() {
    if is_left_out("postgres") {
        return;
    }
    let (name, proxy, a) = behind_proxy(Duration::from_secs(4)).await;
    let b = PostgresStore::open(&of(&server::url(server::folder(), &name), "b", LONG)).await.unwrap();
    proxy.hold(b"COMMIT\0");
    let of_a = commit(1, 0, 1);
    let of_b = async {
        proxy.held().await;
        b.append(&commit(2, 0, 2)).await.unwrap();
    };
    let (of_a, ()) = tokio::join!(a.append(&of_a), of_b);
    of_a.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_cannot_commit_lets_its_lease_end() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let a = PostgresStore::open(&of(&url, "a", SHORT)).await.unwrap();
    // Its lease can be renewed, and its commits find no space.
    server::run(
        &name,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE 'no space' USING ERRCODE = 'disk_full'; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE ON toolgate.hosts FOR EACH ROW \
         WHEN (NEW.mark <> OLD.mark) EXECUTE FUNCTION refuse()",
    );
    assert!(a.append(&commit(1, 0, 1)).await.is_err());
    let ended = "SELECT lease_until < clock_timestamp() - interval '1 second' FROM toolgate.hosts";
    until(async || (server::run(&name, ended) == "t").then_some(())).await;
    server::run(&name, "DROP TRIGGER refuse ON toolgate.hosts");
    until_failure_is(&a, None).await;
    a.append(&commit(1, 0, 1)).await.unwrap();
    until(async || {
        (server::run(&name, "SELECT lease_until > clock_timestamp() FROM toolgate.hosts") == "t").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn host_that_cannot_renew_its_lease_does_not_start() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    drop(PostgresStore::open(&of(&url, "a", LONG)).await.unwrap());
    server::run(
        &name,
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no renewal'; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE ON toolgate.hosts FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let hasty = PostgresSettings { deadline: Duration::from_secs(3), ..of(&url, "a", LONG) };
    let refused = refusal(&hasty).await.to_string();
    assert!(refused.contains("renew the lease of the host") && refused.contains("no renewal"), "{refused}");
    server::run(&name, "DROP TRIGGER refuse ON toolgate.hosts");
    PostgresStore::open(&of(&url, "a", LONG)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answer_waits_for_the_standby() {
    if is_left_out("postgres") {
        return;
    }
    let folder = server::start("");
    let run = |statement: &str| server::run_at(&folder, "postgres", statement);
    let standby = |names: &str| {
        run(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
        run("SELECT pg_reload_conf()");
    };
    let store = PostgresStore::open(&of(&server::url(&folder, "postgres"), "a", LONG)).await.unwrap();
    standby("missing");
    let (acknowledged, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    // The first commits may happen before the server has read its setting.
    let commits = async {
        while !is_over.load(Ordering::SeqCst) {
            let number = acknowledged.load(Ordering::SeqCst);
            store.append(&commit(1, number, number.into())).await.unwrap();
            acknowledged.fetch_add(1, Ordering::SeqCst);
        }
    };
    // The session that commits.
    let waiting = async || {
        let found = run("SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) \
             WHERE wait_event = 'SyncRep' AND locktype = 'advisory' AND granted");
        (!found.is_empty()).then_some(found)
    };
    let between = async {
        let first = until(waiting).await;
        run(&format!("SELECT pg_terminate_backend({first})"));
        // The commit has happened, and only this server has it.
        until(async || waiting().await.filter(|other| *other != first)).await;
        let happened = acknowledged.load(Ordering::SeqCst) + 1;
        assert_eq!(run("SELECT position FROM toolgate.head"), happened.to_string());
        is_over.store(true, Ordering::SeqCst);
        standby("");
    };
    tokio::join!(commits, between);
    assert!(store.health().failure.is_none());
    let number = acknowledged.into_inner();
    store.append(&commit(1, number, number.into())).await.unwrap();
}

/// Uses all connections for reads, documents, components and data of plugins at once. Returns how many of these uses fail.
async fn uses_that_fail(store: &PostgresStore) -> usize {
    const EACH: usize = 4;
    let (documents, components, data) = (store.documents(), store.components(), store.key_value());
    let uses = join_all((0..EACH).map(async |_| {
        let (head, versions, bytes, value) =
            tokio::join!(store.head(), documents.versions(), components.bytes(Digest::of("none")), set(&data, b"v"));
        [head.is_err(), versions.is_err(), bytes.is_err(), value.is_err()].into_iter().filter(|failed| *failed).count()
    }));
    uses.await.into_iter().sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_never_answer_are_given_up() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let proxy = Proxy::start(server::folder()).await;
    let fast = PostgresSettings {
        deadline: Duration::from_secs(1),
        poll: Duration::from_millis(10),
        ..of(&server::url(proxy.folder(), &name), "a", SHORT)
    };
    let a = PostgresStore::open(&fast).await.unwrap();
    // It removes nobody.
    let b = PostgresStore::open(&of(&url, "b", LONG)).await.unwrap();
    assert_eq!(uses_that_fail(&a).await, 0);
    proxy.fall_silent();
    // Meanwhile, the host polls and tries to renew its lease.
    assert_eq!(uses_that_fail(&a).await, 16);
    assert!(a.append(&commit(1, 0, 1)).await.is_err());
    proxy.answer_new_connections();
    until(async || (uses_that_fail(&a).await == 0).then_some(())).await;
    until_failure_is(&a, None).await;
    a.append(&commit(1, 0, 1)).await.unwrap();
    let renewed = format!(
        "SELECT renewed_at > '{}' FROM toolgate.hosts WHERE name = 'a'",
        server::run(&name, "SELECT clock_timestamp()")
    );
    until(async || (server::run(&name, &renewed) == "t").then_some(())).await;
    b.append(&commit(2, 0, 2)).await.unwrap();
    while !matches!(news(&a).await, News::Commits(_)) {}
    assert_eq!(get(&a.key_value()).await.as_deref(), Some(b"v".as_slice()));
    assert_eq!(verified(&a).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_attempt_to_connect_is_given_up() {
    if is_left_out("postgres") {
        return;
    }
    let (_, proxy, a) = behind_proxy(Duration::from_secs(1)).await;
    // The new connection waits forever in the middle of its preparation.
    proxy.hold(b"pg_advisory_lock");
    proxy.close(true);
    proxy.close(false);
    proxy.held().await;
    until_failure_is(&a, Some(FaultKind::NoAnswer)).await;
    until_failure_is(&a, None).await;
    a.append(&commit(1, 0, 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_no_longer_keeps_commits_gets_none() {
    if is_left_out("postgres") {
        return;
    }
    let folder = server::start("");
    let run = |statement: &str| server::run_at(&folder, "postgres", statement);
    let store = PostgresStore::open(&of(&server::url(&folder, "postgres"), "a", LONG)).await.unwrap();
    let number = AtomicU32::new(0);
    let append = async || {
        let next = number.load(Ordering::SeqCst);
        let refused = store.append(&commit(1, next, next.into())).await.err();
        number.fetch_add(u32::from(refused.is_none()), Ordering::SeqCst);
        refused
    };
    let set = |change: &str| {
        run(&format!("ALTER SYSTEM {change}"));
        run("SELECT pg_reload_conf()");
    };
    for setting in ["synchronous_commit", "fsync"] {
        set(&format!("SET {setting} = off"));
        // The first commits may happen before the session has read the setting.
        let refused = until(append).await.to_string();
        assert!(refused.contains(&format!("`{setting} = off`, so a crash of it can undo")), "{refused}");
        let written = number.load(Ordering::SeqCst).to_string();
        assert_eq!(run("SELECT position FROM toolgate.head"), written, "nothing is written");
        assert_eq!(store.health().failure.unwrap().kind, FaultKind::Disk);
        set(&format!("RESET {setting}"));
        until_failure_is(&store, None).await;
        assert!(append().await.is_none());
    }
    assert_eq!(verified(&store).await, u64::from(number.into_inner()));
}
