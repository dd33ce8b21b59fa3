//! Hosts that the database cannot hear, that cannot commit, or whose commits wait for a standby.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use dispatch::ports::{Health as _, Log as _};

use crate::given::commit;
use crate::hosts::{LONG, SHORT, of, until};
use crate::machine::is_left_out;
use crate::on_server::{behind_proxy, refusal, settings, until_failure_is, verified};
use crate::server;
use crate::store::{PostgresError, PostgresSettings, PostgresStore};

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
