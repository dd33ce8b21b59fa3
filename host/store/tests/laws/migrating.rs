//! Databases of older formats. They are made from the files of those formats, with rows that a store wrote.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dispatch::ports::{
    AppendError, Audit as _, Commit, Footprint, Health as _, Indexes as _, LivePlugins, Log as _, Peers as _,
    RowChange, SuspensionRow,
};
use domain::{Digest, Event, Json, PluginName, SignalName, event::Rejection, suspension::SuspensionKind};

use crate::given::{
    OPEN, call_of, commit, conversation, due, due_of, events, owner, principal, row, suspension, time, turn, with,
};
use crate::hosts::{LONG, of, until};
use crate::machine::is_left_out;
use crate::on_server::{settings, verified};
use crate::server;
use crate::store::{Documents, NamespaceQuota, PostgresError, PostgresSettings, PostgresStore};

const FORMATS: [&str; 6] = [
    include_str!("../../src/postgres/schema/1.sql"),
    include_str!("../../src/postgres/schema/2.sql"),
    include_str!("../../src/postgres/schema/3.sql"),
    include_str!("../../src/postgres/schema/4.sql"),
    include_str!("../../src/postgres/schema/5.sql"),
    include_str!("../../src/postgres/schema/6.sql"),
];

/// Tables with records. Their columns are the same in all formats, and later ones have more. The last one exists since format 3.
const TABLES: [&str; 7] =
    ["commits", "conversations", "calls", "suspensions", "unfinished_turns", "plugin_values", "open_turns"];

/// A database of this format, in which these commits were made. Returns its connection string.
async fn database(format: usize, commits: &[Commit]) -> (String, String) {
    let (name, url) = server::database();
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    for commit in commits {
        store.append(commit).await.unwrap();
    }
    for key in [b"key".as_slice(), b"another"] {
        store.key_value().set("plugin", "bucket", key, b"value", NamespaceQuota::UNBOUNDED).unwrap();
    }
    drop(store);
    let (old, url) = server::database();
    let tables = format!(
        "CREATE SCHEMA toolgate; SET search_path = toolgate; \
         CREATE TABLE format (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT NULL); \
         INSERT INTO format (version) VALUES ({format}); {}",
        FORMATS[..format].concat()
    );
    server::run(&old, &tables);
    for table in &TABLES[..if format < 3 { 6 } else { 7 }] {
        let rows = server::run(&name, &format!("SELECT coalesce(json_agg(t), '[]') FROM toolgate.{table} AS t"));
        let copied = format!(
            "INSERT INTO toolgate.{table} SELECT * FROM json_populate_recordset(NULL::toolgate.{table}, $rows${rows}$rows$)"
        );
        server::run(&old, &copied);
    }
    let head = "UPDATE toolgate.head SET (position, hash) = \
        (SELECT position, hash FROM toolgate.commits ORDER BY position DESC LIMIT 1)";
    server::run(&old, head);
    (old, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn database_of_each_older_format_is_migrated() {
    if is_left_out("postgres") {
        return;
    }
    let signal = SignalName::new("paid").unwrap();
    let open = |number| {
        let external =
            SuspensionRow { kind: SuspensionKind::External, signal: Some(signal.clone()), ..row(number, OPEN) };
        RowChange::Suspension(external)
    };
    let start = |number| Event::TurnStarted {
        turn: turn(number),
        conversation: conversation("c"),
        caller: principal("ann"),
        rejection: Rejection::default(),
        context: Some(Json::unchecked(r#"{"n":1}"#)),
        parent: None,
        at: time(1),
    };
    let unfinished = |number| due_of(number, None, Some(due(9, false)));
    // Migrations from the formats before 3 count the open turns.
    let counted = || {
        let more = Footprint { turns: 1, bytes: 7, suspensions: 0 };
        RowChange::Open { principal: principal("ann"), less: Footprint::default(), more }
    };
    for format in 1..=FORMATS.len() {
        let first =
            with(events(1, 0, vec![start(1)]), [owner("ann"), call_of(1, "a"), open(1), unfinished(1), counted()]);
        let second = with(events(2, 0, vec![start(2)]), [call_of(2, "x"), unfinished(2), counted()]);
        let (name, url) = database(format, &[first, second]).await;
        let of_command = Documents::connect(&settings(url.clone())).await.map(drop).unwrap_err();
        let found = i32::try_from(format).unwrap();
        assert!(
            matches!(of_command, PostgresError::NotMigrated { found: said, known: 7 } if said == found),
            "{of_command}"
        );
        let store = PostgresStore::open(&settings(url)).await.unwrap();
        let used = Footprint { turns: 2, bytes: 14, suspensions: 0 };
        assert_eq!(store.open_turns(Some(&principal("ann"))).await.unwrap(), Some(used), "{format}");
        assert!(matches!(store.append(&with(commit(3, 0, 1), [open(3)])).await, Err(AppendError::Conflict)));
        store.append(&with(commit(1, 1, 3), [call_of(1, "b")])).await.unwrap();
        assert_eq!(verified(&store).await, 3, "{format}");
        let usage = "SELECT encode(namespace, 'escape'), bytes, keys FROM toolgate.plugin_usage";
        assert_eq!(server::run(&name, usage), "plugin|32|2", "{format}");
        assert!(store.suspension(suspension(1)).await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn format_5_under_the_number_of_an_unreleased_version() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = database(5, &[commit(1, 0, 1)]).await;
    server::run(&name, "UPDATE toolgate.format SET version = 3");
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
    assert_eq!(server::run(&name, "SELECT version, oldest FROM toolgate.format"), "7|6");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_not_migrated_while_older_hosts_run() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = database(5, &[commit(1, 0, 1)]).await;
    let old = "INSERT INTO toolgate.hosts (name, owner, position, hash, lease_until, version, config, key) \
        SELECT unnest('{toolgate,old,ended}'::text[]), gen_random_uuid(), position, hash, 'infinity', '1', '', '' \
        FROM toolgate.head";
    server::run(&name, old);
    server::run(&name, "UPDATE toolgate.hosts SET lease_until = '-infinity' WHERE name = 'ended'");
    // The first one has the name of the host that starts, so it has ended.
    let refused = PostgresStore::open(&settings(url.clone())).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("hosts of an older version use them: `old`"), "{refused}");
    assert_eq!(server::run(&name, "SELECT version FROM toolgate.format"), "5");
    // It was killed, and its lease still goes on when the next start looks for older hosts.
    server::run(
        &name,
        "UPDATE toolgate.hosts SET lease_until = clock_timestamp() + interval '1 second' WHERE name = 'old'",
    );
    let store = PostgresStore::open(&settings(url)).await.unwrap();
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
    assert_eq!(server::run(&name, "SELECT name, format FROM toolgate.hosts"), "toolgate|7", "the others have ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn host_of_format_6_goes_on_beside_a_newer_one() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = database(6, &[commit(1, 0, 1)]).await;
    let begins = "INSERT INTO toolgate.hosts (name, owner, position, hash, lease_until, version, config, key, format) \
        SELECT 'old', gen_random_uuid(), position, hash, 'infinity', '1', sha256(''), sha256(''), 6 FROM toolgate.head";
    server::run(&name, begins);
    let lease = Duration::from_millis(600);
    let store = PostgresStore::open(&PostgresSettings { lease, ..settings(url) }).await.unwrap();
    assert_eq!(server::run(&name, "SELECT version, oldest FROM toolgate.format"), "7|6");
    let live = LivePlugins([(PluginName::new("p").unwrap(), Digest::of("component"))].into());
    store.report_plugins(live.clone());
    let renews = "UPDATE toolgate.hosts SET renewed_at = clock_timestamp(), running = running + 1 WHERE name = 'old'";
    let hosts = until(async || {
        server::run(&name, renews);
        let hosts = store.hosts().await.unwrap();
        hosts[1].plugins.is_some().then_some(hosts)
    })
    .await;
    assert_eq!((&hosts[0].plugins, hosts[0].running_calls > 0, &hosts[1].plugins), (&None, true, &Some(live)));
    // The two versions may make different digests of the same configuration.
    assert_eq!((hosts[0].config.is_some(), hosts[1].config.is_some()), (false, true));
    store.append(&commit(1, 1, 2)).await.unwrap();
    assert_eq!(verified(&store).await, 2);
    // One of format 6 with the name of a newer one replaces its row.
    drop(store);
    server::run(
        &name,
        "DELETE FROM toolgate.value_terms WHERE host = 'old'; UPDATE toolgate.hosts SET name = 'newer' WHERE name = 'old'",
    );
    server::run(&name, "INSERT INTO toolgate.live_plugins VALUES ('newer', '{p}', '{x}')");
    server::run(&name, "DELETE FROM toolgate.hosts WHERE name = 'newer'");
    server::run(&name, &begins.replace("'old'", "'newer'"));
    assert_eq!(
        server::run(&name, "SELECT name, names FROM toolgate.hosts LEFT JOIN toolgate.live_plugins ON host = name"),
        "newer|"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_migrated_while_a_host_commits() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let old = PostgresStore::open(&of(&url, "old", LONG)).await.unwrap();
    let older = "DROP TABLE toolgate.live_plugins; UPDATE toolgate.format SET version = 6; UPDATE toolgate.hosts SET format = 6";
    server::run(&name, older);
    let is_migrated = AtomicBool::new(false);
    let of_old = async {
        let (mut made, mut left) = (0, 20);
        while left > 0 {
            old.append(&commit(1, made, made.into())).await.unwrap();
            made += 1;
            left -= i32::from(is_migrated.load(Ordering::Relaxed));
        }
        u64::from(made)
    };
    let of_new = async {
        until(async || (old.head().await.unwrap().position.0 >= 20).then_some(())).await;
        let new = PostgresStore::open(&of(&url, "new", LONG)).await.unwrap();
        is_migrated.store(true, Ordering::Relaxed);
        for number in 0..20 {
            new.append(&commit(2, number, number.into())).await.unwrap();
        }
        new
    };
    let (made, new) = tokio::join!(of_old, of_new);
    assert_eq!(server::run(&name, "SELECT version, oldest FROM toolgate.format"), "7|6");
    assert_eq!(server::run(&name, "SELECT name, format FROM toolgate.hosts ORDER BY name"), "new|7\nold|6");
    for store in [&old, &new] {
        assert_eq!(verified(store).await, made + 20);
        assert!(store.health().failure.is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn host_uses_tables_of_a_newer_format_that_allows_it() {
    if is_left_out("postgres") {
        return;
    }
    let (name, url) = server::database();
    let first = PostgresStore::open(&settings(url.clone())).await.unwrap();
    server::run(&name, "UPDATE toolgate.format SET version = 9");
    let mut second = settings(url.clone());
    second.host.name = "second".to_owned();
    let store = PostgresStore::open(&second).await.unwrap();
    store.append(&commit(1, 0, 1)).await.unwrap();
    first.append(&commit(1, 1, 2)).await.unwrap();
    drop((first, store));
    server::run(&name, "UPDATE toolgate.format SET oldest = 8");
    let refused = PostgresStore::open(&settings(url)).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("has the format 9 and this host knows 7"), "{refused}");
}
