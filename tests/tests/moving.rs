//! A store moves between a data folder and a database: `toolgate store export` and `import`, and the tools of PostgreSQL.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "../../host/store/tests/laws/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use dispatch::ports::{Feed, Filter, Indexes as _, Log as _, Position};
use domain::Timestamp;
use serde_json::{Value, json};
use store::StoreSettings;
use toolgate_tests::host::{Host, Said, Setup};
use toolgate_tests::http::{outcomes, suspension_of};
use toolgate_tests::parts::Part;

/// Runs a command that must not fail. Returns its standard output.
fn done(host: &Host, words: &[&str]) -> String {
    let said = host.cli(None, words);
    assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    said.out
}

fn text(host: &Host, file: &str) -> String {
    fs::read_to_string(host.folder().join(file)).unwrap()
}

/// Writes `postgres.toml`, which is the configuration with this database.
fn configure(host: &Host, url: &str) {
    let config = text(host, "toolgate.toml");
    fs::write(host.folder().join("postgres.toml"), format!("store = \"{url}\"\n{config}")).unwrap();
}

/// The host uses another configuration from now on.
fn switch(host: &Host, config: &str) {
    fs::copy(host.folder().join(config), host.folder().join("toolgate.toml")).unwrap();
}

const TO_DATABASE: [&str; 5] = ["store", "import", "moved.jsonl", "--config", "postgres.toml"];

/// A stopped host on an archive of a data folder, in the newest format.
fn unpacked(archive: &str) -> Host {
    let host = Setup::default().prepare();
    fs::remove_dir_all(host.data()).unwrap();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(archive);
    let unpack = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(host.folder()).status();
    assert!(unpack.unwrap().success(), "tar unpacks the archive");
    let _ = done(&host, &["store", "prune"]);
    host
}

fn kinds(export: &str) -> BTreeSet<String> {
    let kind = |line: &str| {
        let line: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        line.keys().next().unwrap().clone()
    };
    export.lines().map(kind).collect()
}

/// The indexes of a store in a data folder, which follow from its logs, and the sizes that principals keep.
async fn indexes(data: &Path) -> ([String; 5], Vec<u64>) {
    let store = store::open(data.join("store"), &StoreSettings::default()).unwrap();
    assert_eq!(store.check().unwrap().problems, []);
    let all = Filter::default();
    let mut kept = Vec::new();
    for (_, owner) in store.conversations(None, usize::MAX).await.unwrap() {
        kept.push(store.kept_bytes(&owner).await.unwrap());
    }
    let unfinished = store.unfinished(None, usize::MAX).await.unwrap();
    let due = store.due(None, Timestamp::from_millis(u64::MAX >> 1), usize::MAX).await.unwrap();
    let (audiences, rows) = (store.audiences(&all).await.unwrap(), store.suspensions(&all, None, 1_000).await.unwrap());
    let feed = store.follow(&Feed::Host, Position(0), usize::MAX, usize::MAX).await.unwrap();
    let audiences: BTreeSet<_> = audiences.counts.iter().map(|count| format!("{count:?}")).collect();
    let rows = format!("{rows:?}");
    ([format!("{unfinished:?}"), format!("{due:?}"), format!("{audiences:?}"), rows, format!("{feed:?}")], kept)
}

#[tokio::test]
async fn stores_move_to_a_database_and_back_unchanged() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let mut found = BTreeSet::new();
    // Hosts of older versions count the journal of a call when its turn ends. These have open turns with such a journal.
    for (archive, uncounted) in [
        ("data-format-3", 782),
        ("data-format-4", 0),
        ("data-format-7", 968),
        ("data-format-7-people", 1247),
        ("data-format-8", 0),
    ] {
        let host = unpacked(&format!("{archive}.tar.gz"));
        configure(&host, &server::database().1);
        let _ = done(&host, &["store", "export", "--output", "moved.jsonl"]);
        let _ = done(&host, &TO_DATABASE);
        let _ = done(&host, &["store", "export", "--config", "postgres.toml", "--output", "from-database.jsonl"]);
        let _ = done(&host, &["store", "import", "from-database.jsonl", "--data", "back"]);
        let exported = text(&host, "moved.jsonl");
        assert!(text(&host, "from-database.jsonl") == exported, "{archive}: the database has the same");
        assert!(done(&host, &["store", "export", "--data", "back"]) == exported, "{archive}: so has the new folder");
        let (expected, kept) = indexes(&host.data()).await;
        let (made, kept_after) = indexes(&host.folder().join("back")).await;
        assert_eq!(made, expected, "{archive}: the indexes are made again");
        let more: Vec<_> = kept_after.iter().zip(&kept).map(|(after, before)| after - before).collect();
        assert_eq!(more, vec![uncounted; kept.len()], "{archive}");
        let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
        let head = format!("{}:{}", first["store"]["position"], first["store"]["hash"].as_str().unwrap());
        let _ = done(&host, &["audit", "verify", "--data", "back", "--head", &head]);
        found.extend(kinds(&exported));
    }
    let expected = [
        "call",
        "commit",
        "delivery",
        "denial",
        "end",
        "ended_turn",
        "journal",
        "journal_entry",
        "owner",
        "retention_time",
        "run_log",
        "standing",
        "store",
        "suspension",
        "value",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "each kind of line was moved");
}

fn balance(host: &Host, account: &str) -> Value {
    let turn = host.agent.call("balances", "ledger_balance", json!({"account": account}));
    turn["calls"][0]["content"]["result"]["balance_cents"].clone()
}

/// A host with two accounts, and two transfers that wait.
fn waiting(setup: Setup) -> (Host, [Value; 2]) {
    let host = setup.start();
    for account in ["alice", "bob"] {
        let opened = host.agent.call("opening", "ledger_open", json!({"account": account, "opening_balance": 1000}));
        assert_eq!(outcomes(&opened), ["ok"], "{opened}");
    }
    let waits = ["first", "second"].map(|id| transfer(&host, id));
    (host, waits)
}

/// Submits a transfer, which waits.
fn transfer(host: &Host, id: &str) -> Value {
    let arguments = json!({"from": "alice", "to": "bob", "amount_cents": 100});
    host.agent.submit("c", json!([{"id": id, "tool": "ledger_transfer", "arguments": arguments}]))
}

fn approve(host: &Host, waits: &Value, left: u64) {
    let _ = host.approver.resolve(&suspension_of(waits), json!({"decision": "approve"})).ok(200);
    let settled = host.agent.settled(waits);
    assert_eq!(outcomes(&settled), ["ok"], "{settled}");
    assert_eq!(balance(host, "alice"), json!(left));
}

/// Rows that follow from others, in one order.
const DERIVED: [&str; 9] = [
    "unfinished_turns ORDER BY turn",
    "audiences ORDER BY digest",
    "audience_counts ORDER BY scope, tool, audience",
    "waiting ORDER BY suspension",
    "suspensions_ended_by ORDER BY principal, suspension",
    "kept ORDER BY principal",
    "open_turns ORDER BY principal",
    "plugin_usage ORDER BY namespace",
    "calls ORDER BY conversation, id",
];

#[test]
fn waiting_calls_are_approved_after_each_move() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (mut host, [first, second]) = waiting(Setup::with(&["ledger"]));
    let (name, url) = server::database();
    configure(&host, &url);
    fs::copy(host.folder().join("toolgate.toml"), host.folder().join("folder.toml")).unwrap();
    let refused = host.cli(None, &["store", "export"]);
    assert!(refused.code == 1 && refused.err.contains("in use by another process"), "{}", refused.err);
    host.kill();
    let _ = done(&host, &["store", "export", "--output", "moved.jsonl"]);
    let _ = done(&host, &TO_DATABASE);
    switch(&host, "postgres.toml");
    fs::rename(host.data().join("store"), host.folder().join("old-store")).unwrap();
    host.start();
    approve(&host, &first, 900);
    let verified = host.cli(Some(&host.admin), &["audit", "verify", "--url", &host.admin.url()]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    let refused = host.cli(None, &["store", "import", "moved.jsonl"]);
    assert!(refused.code == 1 && refused.err.contains("the host `toolgate` uses the database"), "{}", refused.err);

    let third = transfer(&host, "third");

    // A snapshot of a running host is whole. It has the tokens and the component.
    let _ = done(&host, &["store", "export", "--output", "back.jsonl"]);
    let (copy, url_of_copy) = server::database();
    let config = text(&host, "toolgate.toml").replace(&url, &url_of_copy);
    fs::write(host.folder().join("copy.toml"), config).unwrap();
    let _ = done(&host, &["store", "import", "back.jsonl", "--config", "copy.toml"]);
    for rows in DERIVED {
        let rows = format!("SET search_path = toolgate; SELECT * FROM {rows}");
        assert_eq!(server::run(&copy, &rows), server::run(&name, &rows), "the import makes what it left out");
    }
    assert!(kinds(&text(&host, "back.jsonl")).is_superset(&["component", "document"].map(str::to_owned).into()));
    host.kill();
    switch(&host, "folder.toml");
    fs::remove_dir_all(host.data().join("components")).unwrap();
    let _ = done(&host, &["store", "import", "back.jsonl"]);
    assert_eq!(fs::read_dir(host.data().join("components")).unwrap().count(), 2, "the bytes and the record");
    // As a kill leaves it when the new store has just got its name.
    let beside = host.data().join("store/beside");
    fs::create_dir(&beside).unwrap();
    for moved in ["tokens.json", "components"] {
        fs::rename(host.data().join(moved), beside.join(moved)).unwrap();
    }
    host.start();
    assert!(!beside.exists() && host.data().join("tokens.json").exists());
    approve(&host, &second, 800);
    approve(&host, &third, 700);
    host.kill();
    let _ = done(&host, &["audit", "verify"]);
}

/// Runs a program of PostgreSQL on the server of this process.
fn program(name: &str, words: &[&str]) {
    let mut command = Command::new(server::programs().join(name));
    let done = command.args(words).args(["-U", "toolgate", "-h"]).arg(server::folder()).output().unwrap();
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn restored_dump_of_a_database_goes_on() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (name, url) = server::database();
    let (mut host, [first, _]) = waiting(Setup::with(&["ledger"]).settings(&format!("store = \"{url}\"")));
    let head = host.admin.get("/v1/audit").ok(200)["head"].clone();
    let dump = host.folder().join("toolgate.dump");
    // The commands of docs/how-to/use-postgresql.md.
    program("pg_dump", &["-d", &name, "--format=custom", "--file", dump.to_str().unwrap()]);
    host.kill();
    server::run("postgres", &format!("DROP DATABASE {name} WITH (FORCE)"));
    server::run("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
    program("pg_restore", &["-d", &name, "--exit-on-error", dump.to_str().unwrap()]);
    host.start();
    let head = format!("{}:{}", head["position"], head["hash"].as_str().unwrap());
    let verify = ["audit", "verify", "--url", &host.admin.url(), "--head", &head];
    let verified = host.cli(Some(&host.admin), &verify);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    approve(&host, &first, 900);
}

/// The refusals of an import of this text into an empty data folder and into an empty database. Nothing is imported.
fn refused(host: &Host, export: &str) -> [Said; 2] {
    fs::write(host.folder().join("moved.jsonl"), export).unwrap();
    let to_folder = host.cli(None, &["store", "import", "moved.jsonl", "--data", "new"]);
    for folder in ["new/store", "new/store.importing"] {
        assert!(!host.folder().join(folder).exists(), "{folder}: {}", to_folder.err);
    }
    let to_database = host.cli(None, &TO_DATABASE);
    assert!([&to_folder, &to_database].iter().all(|said| said.code == 1), "{to_folder:?} {to_database:?}");
    [to_folder, to_database]
}

#[test]
fn damaged_exports_are_refused_and_leave_nothing() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let host = unpacked("data-format-7.tar.gz");
    let (name, url) = server::database();
    configure(&host, &url);
    let whole = done(&host, &["store", "export"]);
    let lines: Vec<&str> = whole.lines().collect();
    let joined = |lines: &[&str]| lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    let last = lines.len() - 1;
    let without = |line: usize| joined(&[&lines[..line], &lines[line + 1..]].concat());
    let long = |kind: &str| format!("{}\n{{\"{kind}\":{}", lines[0], "x".repeat(68 << 20));
    let newer = whole.replacen("\"format\":1", "\"format\":2", 1);
    let (later, damaged) =
        (whole.replacen("\"version\":1", "\"version\":200", 1), whole.replacen("{\"commit\"", "{\"comet\"", 1));
    let other_head = whole.replacen("\"hash\":\"sha256:", "\"hash\":\"sha256:00", 1);
    for (export, expected) in [
        (joined(&lines[..last]), "it was cut off"),
        (whole[..whole.len() / 2].to_owned(), "it was cut off"),
        (damaged, "is damaged: no kind of line begins with `{\"comet\":`"),
        (long("owner"), "is too long: no toolgate writes a line of the kind `owner` with more than 4096 bytes"),
        (
            long("document"),
            "is too long: no toolgate writes a line of the kind `document` with more than 33558528 bytes",
        ),
        (
            long("commit"),
            "is too long: it has a record of more than 67108864 bytes, and this import takes no larger one",
        ),
        (newer, "the export has the format 2, and this toolgate knows 1"),
        (later, "is of a newer toolgate"),
        (without(last - 1), "the export is not as it was written"),
        (without(5), "line 6 is damaged: its position is"),
        (format!("{whole}{}\n", lines[last]), "it goes on after its last line"),
        (
            whole.replacen("\"bytes\":1", "\"bytes\":2", 1),
            "the export is not as it was written: its lines have the digest",
        ),
        (other_head, "line 1 is damaged"),
        ("nonsense\n".to_owned(), "this is not an export of a store"),
        (String::new(), "this is not an export of a store"),
    ] {
        for said in refused(&host, &export) {
            assert!(
                said.err.contains(expected) && said.err.contains("nothing was imported"),
                "{expected}: {}",
                said.err
            );
        }
    }
    assert_eq!(server::run(&name, "SELECT count(*) FROM toolgate.commits"), "0");
    // These are found even if somebody computes the digest of the lines again.
    let changed = joined(&lines[..last]).replacen("\"at\":1", "\"at\":2", 1);
    let no_tokens = joined(&lines[..last]) + "{\"document\":{\"name\":\"tokens\",\"body\":\"7b\"}}\n";
    for (text, expected) in [
        (changed, "the audit of the export cannot be verified"),
        (no_tokens, "cannot read the tokens in the export: EOF"),
    ] {
        for said in refused(&host, &with_end(&text)) {
            assert!(said.err.contains(expected) && said.err.contains("nothing was imported"), "{}", said.err);
        }
    }
    fs::write(host.folder().join("moved.jsonl"), &whole).unwrap();
    let _ = done(&host, &TO_DATABASE);
    let again = host.cli(None, &TO_DATABASE);
    assert!(again.code == 1 && again.err.contains("the database is not empty: it has commits"), "{}", again.err);
    assert!(again.err.contains("make a new database"), "{}", again.err);
    let again = host.cli(None, &["store", "import", "moved.jsonl"]);
    assert!(again.code == 1 && again.err.contains("is not empty: it has a store"), "{}", again.err);
}

/// The lines with a last line that fits them.
fn with_end(lines: &str) -> String {
    use sha2::Digest as _;
    let digest: String = sha2::Sha256::digest(lines).iter().map(|byte| format!("{byte:02x}")).collect();
    let count = lines.lines().count();
    format!("{lines}{}\n", json!({"end": {"lines": count, "digest": format!("sha256:{digest}")}}))
}

#[test]
fn killed_import_leaves_an_empty_store() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let host = unpacked("data-format-8.tar.gz");
    let (name, url) = server::database();
    configure(&host, &url);
    let whole = done(&host, &["store", "export"]);
    let (before_last, _) = whole.trim_end().rsplit_once('\n').unwrap();
    fs::write(host.folder().join("whole.jsonl"), &whole).unwrap();
    for to in [["--data", "new"], ["--config", "postgres.toml"]] {
        let words = [["store", "import", "-"].as_slice(), &to].concat();
        let mut child = host.command(None, &words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(before_last.as_bytes()).unwrap();
        input.flush().unwrap();
        // It has written something, and waits for the last line.
        loop {
            let is_begun = match to[1] {
                "new" => host.folder().join("new/store.importing/sled/db").exists(),
                _ => server::run(&name, HAS_WRITTEN) == "t",
            };
            if is_begun {
                break;
            }
            assert!(child.try_wait().unwrap().is_none(), "the import goes on");
            std::thread::yield_now();
        }
        if to[1] == "new" {
            let second = host.cli(None, &["store", "import", "whole.jsonl", "--data", "new"]);
            assert!(second.code == 1 && second.err.contains("new is in use by another process"), "{}", second.err);
            assert!(host.folder().join("new/store.importing/sled/db").exists(), "the first one goes on");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        drop(input);
        assert!(!host.folder().join("new/store").exists(), "no host takes it for a whole one");
        let _ = done(&host, &[["store", "import", "whole.jsonl"].as_slice(), &to].concat());
        assert!(done(&host, &[["store", "export"].as_slice(), &to].concat()) == whole, "{to:?}");
        if to[1] == "new" {
            assert!(!host.folder().join("new/store.importing").exists());
            fs::remove_dir_all(host.folder().join("new")).unwrap();
        }
    }
}

/// Whether a transaction has written commits, also one that goes on.
const HAS_WRITTEN: &str = "SELECT coalesce(pg_relation_size(to_regclass('toolgate.commits')), 0) > 0";
