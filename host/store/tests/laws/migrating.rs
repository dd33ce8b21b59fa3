//! Databases of older formats. They are made from the files of those formats, with rows that a store wrote.

use dispatch::ports::{AppendError, Commit, Footprint, Indexes as _, Log as _, Peers as _, RowChange, SuspensionRow};
use domain::{Event, Json, SignalName, event::Rejection, suspension::SuspensionKind};

use crate::given::{
    OPEN, call_of, commit, conversation, due, due_of, events, owner, principal, row, suspension, time, turn, with,
};
use crate::machine::is_left_out;
use crate::on_server::{settings, verified};
use crate::server;
use crate::store::{NamespaceQuota, PostgresStore};

const FORMATS: [&str; 2] =
    [include_str!("../../src/postgres/schema/1.sql"), include_str!("../../src/postgres/schema/2.sql")];

/// Tables with records. Their columns are the same in all formats, and later ones have more.
const TABLES: [&str; 6] = ["commits", "conversations", "calls", "suspensions", "unfinished_turns", "plugin_values"];

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
    for table in TABLES {
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
    for format in 1..=FORMATS.len() {
        let first = with(events(1, 0, vec![start(1)]), [owner("ann"), call_of(1, "a"), open(1), unfinished(1)]);
        let second = with(events(2, 0, vec![start(2)]), [call_of(2, "x"), unfinished(2)]);
        let (name, url) = database(format, &[first, second]).await;
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
