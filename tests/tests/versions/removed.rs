//! A data folder with a removed turn of very many commits, and with the newest record of every kind.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, suspension_of};
use toolgate_tests::steps::waiting;

use super::folders::{OF_PROGRAM, audit_continues, client, is_kept, packed, unpacked};
use super::{old, root};

const ARCHIVE: &str = "data-format-8.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_REMOVED_ARCHIVE";

/// The number of questions of the removed turn in the archive. Each is two commits.
const QUESTIONS: u64 = 850;

const PAGER: &str = "[[webhook]]\nname = \"pager\"\nurl = \"http://127.0.0.1:9/\"\nsecret_file = \"pager.secret\"\nprivate = true\n\
                     tools = \"old_gated\"";

fn setup() -> Setup {
    Setup::default()
        .settings("expires_ms = 3000000000000")
        .component("old", old())
        .component("program", illegal("program"))
        .tables(OF_PROGRAM)
        .tables(PAGER)
        .tables("[approvals]\nstanding_max_ms = 3153600000000")
}

fn with_secret(host: Host) -> Host {
    fs::write(host.folder().join("pager.secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    host
}

/// A call that asks this many questions.
fn asking(questions: u64) -> Value {
    let program = vec![json!({"do": "ask", "prompt": "Go on?"}); usize::try_from(questions).unwrap()];
    json!([{"id": "long", "tool": "run", "arguments": {"program": program}}])
}

fn gated(agent: &Client, id: &str, value: &str) -> Value {
    agent.submit("c", json!([{"id": id, "tool": "old_gated", "arguments": {"value": value}}]))
}

/// A call that this answer approves and also gives a standing approval for later calls.
fn approved_for_later(host: &Host, value: &str) {
    let turn = gated(&host.agent, value, value);
    let standing = json!({"ttl_ms": 3_000_000_000_000_u64, "uses": 9, "pin": "all"});
    let _ = host.approver.resolve(&suspension_of(&turn), json!({"decision": "approve", "standing": standing})).ok(200);
    assert_eq!(outcomes(&host.agent.settled(&turn)), ["ok"]);
}

/// Removes every turn that has ended.
fn prune(host: &mut Host) {
    host.kill();
    let config = host.folder().join("toolgate.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[retention]\nturns_bytes = 1\nturns_bytes_minutes = 0\n")).unwrap();
    let said = host.cli(None, &["store", "prune"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    fs::write(&config, text).unwrap();
    host.start_at_the_same_address();
}

/// A host with the removed turn, and with calls that wait. The tokens of its principals are in the data folder.
fn made(questions: u64) -> Host {
    let mut host = with_secret(setup().prepare());
    host.start();
    let gone = host.agent.submit("gone", asking(questions));
    for number in 1..=questions {
        let asked = waiting(&host, &gone, number);
        let yes = json!({"decision": "answer", "data": "yes"});
        let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), yes).ok(200);
    }
    assert_eq!(outcomes(&host.agent.settled(&gone)), ["ok"]);
    prune(&mut host);

    assert_eq!(outcomes(&host.agent.settled(&host.agent.call("c", "old_count", json!({"value": 3})))), ["ok"]);
    approved_for_later(&host, "standing");
    approved_for_later(&host, "revoked");
    let given = host.approver.get("/v1/standing-approvals").ok(200)["standing_approvals"].clone();
    let revoked = given.as_array().unwrap().last().unwrap()["id"].as_str().unwrap();
    let _ = host.approver.delete(&format!("/v1/standing-approvals/{revoked}")).ok(200);
    let _ = gated(&host.agent, "waits", "waits");
    let program = json!({"program": [{"do": "set", "key": "k", "value": "v"}, {"do": "ask", "prompt": "Go on?"}]});
    let asks = host.agent.submit("c", json!([{"id": "asks", "tool": "run", "arguments": program}]));
    let _ = waiting(&host, &asks, 1);
    let tokens = json!({"root": host.admin.token(), "agent": host.agent.token(), "alice": host.approver.token()});
    fs::write(host.data().join("tokens-of-test.json"), tokens.to_string()).unwrap();
    host
}

/// The turn stays removed, and all else goes on. Returns the number of commits of the removed turn.
fn goes_on(archive: &Path, questions: u64) -> u64 {
    let mut host = with_secret(unpacked(archive.to_str().unwrap(), setup()));
    let tokens: Value = serde_json::from_slice(&fs::read(host.data().join("tokens-of-test.json")).unwrap()).unwrap();
    host.admin = client(&host, &tokens, "root");
    host.start();
    let [agent, alice] = ["agent", "alice"].map(|name| client(&host, &tokens, name));
    let _ = agent.post("/v1/conversations/gone/turns", &json!({"calls": asking(questions)})).problem(410, "removed");

    let open = |call: &str| {
        host.admin.get(&format!("/v1/pending?conversation=c&call={call}")).ok(200)["suspensions"][0].clone()
    };
    let (waits, asks) = (open("waits"), open("asks"));
    let id = |row: &Value| row["suspension"].as_str().unwrap().to_owned();
    let seen = alice.get(&format!("/v1/suspensions/{}", id(&waits))).ok(200);
    assert_eq!(seen["deliveries"][0]["webhook"], "pager", "{seen:#}");
    let _ = alice.resolve(&id(&waits), json!({"decision": "approve"})).ok(200);
    assert_eq!(outcomes(&agent.settled(&waits)), ["ok"]);
    let _ = alice.resolve(&id(&asks), json!({"decision": "answer", "data": "yes"})).ok(200);
    let settled = agent.settled(&asks);
    assert_eq!(settled["calls"][0]["content"]["result"][1], "yes", "{settled:#}");
    for (value, is_asked) in [("standing", false), ("revoked", true)] {
        let turn = gated(&agent, &format!("{value}-again"), value);
        assert_eq!(turn["pending"] != json!([]), is_asked, "{turn:#}");
    }
    audit_continues(&mut host);
    host.kill();
    let said = host.cli(None, &["store", "export"]);
    assert_eq!(said.code, 0, "{}", said.err);
    said.out.lines().filter(|line| line.contains("\"content\":{\"removed\"")).map(|_| 1).sum()
}

#[test]
fn folder_with_a_long_removed_turn_is_packed_and_opened() {
    let questions = if is_kept(KEEP) { QUESTIONS } else { 3 };
    let (_host, archive) = packed(made(questions), ARCHIVE, KEEP);
    assert!(goes_on(&archive, questions) > 2 * questions);
}

#[test]
fn long_removed_turn_of_an_older_host_stays_removed() {
    let commits = goes_on(&root().join("tests/fixtures").join(ARCHIVE), QUESTIONS);
    assert!(commits > 1_600, "its remains are several entries: {commits} commits");
}
