//! Databases of older hosts, as dumps. A newer host migrates them, nothing is lost, and what waits goes on.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{outcomes, path, suspension_of};
use toolgate_tests::parts::Part;
use toolgate_tests::steps::open_step;

use super::{named, server};

/// With this variable, the test that dumps a database keeps the dump as this file in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_DUMP";

/// The rule gates one of the calls.
const TABLES: &str = r#"
[plugin.program]
component = "any"
grants.keyvalue = true
grants.config = {}
grants.http = [{ url = "https://api.example.com/" }]

[[policy]]
name = "gate"
tools = "run"
plugin = "program"
rule = "ask"
arguments = [{ pointer = "/program/0/do", equals = "log" }]
"#;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn call(id: &str, program: &[Value]) -> Value {
    json!([{"id": id, "tool": "run", "arguments": {"program": program}}])
}

/// Adds to the number that all calls count with.
fn count(by: u64) -> Value {
    json!({"do": "increment", "key": "n", "by": by})
}

/// The call that has ended.
fn done() -> Value {
    call("done", &[json!({"do": "set", "key": "k", "value": "v"}), count(1)])
}

/// The setup of a host of a name on a database.
fn setup(url: &str, name: &str, beside: Option<&Host>) -> Setup {
    named::setup(url, name, 3, &[], beside).settings("expires_ms = 3000000000000").tables(TABLES)
}

/// Two hosts with calls that wait, and with a token that was revoked.
fn made(url: &str) -> [Host; 2] {
    let a = setup(url, "a", None).component("program", illegal("program")).start();
    let b = setup(url, "b", Some(&a)).component("program", illegal("program")).start();
    let submit = |at: &Host, id: &str, program: &[Value]| at.agent.submit("c", call(id, program));
    let ask = json!({"do": "ask", "prompt": "Go on?"});
    assert_eq!(outcomes(&a.agent.submit("c", done())), ["ok"]);
    let asks = submit(&b, "asks", &[count(10), ask.clone(), json!({"do": "get", "key": "k"}), count(100)]);
    let _ = open_step(&b.agent, &asks, 1);
    let counts = submit(&b, "counts", &[ask, count(0)]);
    let _ = open_step(&b.agent, &counts, 1);
    let signals = submit(&a, "signals", &[json!({"do": "await", "signal": "paid"})]);
    let _ = open_step(&a.agent, &signals, 1);
    let _ = submit(&b, "waits", &[json!({"do": "log", "line": "approved"}), count(1000)]);
    let _ = submit(&a, "sleeps", &[json!({"do": "sleep", "ms": 2000}), count(10_000)]);
    let gone = a.token("gone", &["caller"], None);
    let revoked = a.cli(None, &["token", "revoke", "gone"]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    gone.get("/v1/tools").problem(401, "unauthorized");
    [a, b]
}

/// Kills the hosts and dumps their database. Returns one of the hosts, whose folder has the dump.
fn dumped(mut hosts: [Host; 2], database: &str) -> (Host, PathBuf) {
    hosts.iter_mut().for_each(Host::kill);
    let [host, _] = hosts;
    #[expect(clippy::disallowed_methods, reason = "a dump is kept on request")]
    let kept = std::env::var_os(KEEP).map(|name| fixtures().join(name));
    let dump = kept.unwrap_or_else(|| host.folder().join("dump.sql.gz"));
    // Newer versions of `pg_dump` write commands that older versions of `psql` do not know.
    let script = "\"$1/pg_dump\" -h \"$2\" -U toolgate -d \"$3\" --no-owner --no-privileges \
        | grep -a -v -E '^\\\\(un)?restrict ' | gzip -9 -n >\"$4\"";
    run(script, &[server::programs(), server::folder(), Path::new(database), &dump]);
    (host, dump)
}

/// A new database from a dump. Returns its name and its connection string.
fn restored(dump: &Path) -> (String, String) {
    let (name, url) = server::database();
    let script = "gzip -dc \"$4\" | \"$1/psql\" -h \"$2\" -U toolgate -d \"$3\" -X -q -1 -v ON_ERROR_STOP=1 >/dev/null";
    run(script, &[server::programs(), server::folder(), Path::new(&name), dump]);
    (name, url)
}

fn run(script: &str, words: &[&Path]) {
    let done = Command::new("bash").args(["-o", "pipefail", "-c", script, "script"]).args(words).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A host that only has what is in the database, with new tokens for its principals.
fn opened(url: &str) -> Host {
    let stranger = Setup::default().prepare();
    let mut host = setup(url, "a", Some(&stranger)).start();
    for name in ["root", "agent", "alice"] {
        let said = host.cli(None, &["token", "revoke", name]);
        assert_eq!(said.code, 0, "the database knows the token of {name}: {}", said.err);
    }
    host.admin = host.token("root", &["admin"], None);
    (host.agent, host.approver) = (host.token("agent", &["caller"], None), host.token("alice", &["approver"], None));
    host
}

/// Everything that waits in the dump goes on, with the component and the values in it. The database gets the newest format.
fn goes_on(dump: &Path) {
    let (name, url) = restored(dump);
    let head = server::run(&name, "SELECT position || ':sha256:' || encode(hash, 'hex') FROM toolgate.head");
    let host = opened(&url);
    let turns = host.agent.get("/v1/conversations/c/turns").ok(200)["turns"].clone();
    let turn = |call: &str| {
        let turn = turns.as_array().unwrap().iter().find(|turn| turn["calls"][0]["id"] == call);
        let turn = turn.unwrap_or_else(|| panic!("{call} is not in {turns}"));
        json!({"conversation": "c", "turn": turn["turn"]})
    };
    let result = |call: &str| host.agent.settled(&turn(call))["calls"][0]["content"]["result"].clone();
    let resolve = |call: &str, answer: Value| {
        let open = host.agent.get(&path(&turn(call))).ok(200);
        let _ = host.approver.resolve(&suspension_of(&open), answer).ok(200);
    };
    assert_eq!(result("done"), json!([null, 1]));
    resolve("asks", json!({"decision": "answer", "data": "yes"}));
    let asked = result("asks");
    assert_eq!((&asked[0], &asked[1], &asked[2]), (&json!(11), &json!("yes"), &json!("v")), "{asked}");
    let _ = host.agent.post("/v1/conversations/c/signals/paid", &json!("in full")).ok(200);
    assert_eq!(result("signals"), json!(["in full"]));
    resolve("waits", json!({"decision": "approve"}));
    assert!([result("waits"), result("sleeps")].iter().all(Value::is_array), "they end");
    resolve("counts", json!({"decision": "answer", "data": "yes"}));
    assert_eq!(result("counts"), json!(["yes", 11_111]), "each call has counted once");
    let again = host.agent.post("/v1/conversations/c/turns", &json!({"calls": done()})).ok(200);
    assert_eq!(again["replayed"], json!(true), "the call id is known");
    let verify = ["audit", "verify", "--url", &host.admin.url(), "--head", &head];
    let verified = host.cli(Some(&host.admin), &verify);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    // The lease of the other host has ended, so this one removes it.
    host.admin.until("/v1/hosts", |answer| (answer.json()["hosts"].as_array()?.len() == 1).then_some(()));
    let hosts =
        server::run(&name, "SELECT format.version, name, hosts.format FROM toolgate.format CROSS JOIN toolgate.hosts");
    assert_eq!(hosts, "7|a|7");
}

#[test]
fn dump_of_a_database_is_restored_and_goes_on() {
    if Part::Postgres.is_left_out() {
        return;
    }
    let (name, url) = server::database();
    let (_host, dump) = dumped(made(&url), &name);
    goes_on(&dump);
}

#[test]
fn dump_of_an_older_host_is_migrated_and_goes_on() {
    if Part::Postgres.is_left_out() {
        return;
    }
    for format in [5, 6] {
        goes_on(&fixtures().join(format!("database-format-{format}.sql.gz")));
    }
}
