//! Data folders of older versions. They open, nothing is lost, and open suspensions can still be answered.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, path};

use super::{old, root};

/// The grants of a durable call in one of the folders. The configuration is another one than that of its first run.
pub(crate) const OF_PROGRAM: &str = "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true\ngrants.config = { region = \"us\" }\n\
    grants.http = [{ url = \"https://api.example.com/\" }]";

/// A stopped host on the unpacked folder.
pub(crate) fn unpacked(archive: &str, setup: Setup) -> Host {
    let host = setup.prepare();
    fs::remove_dir_all(host.data()).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(root().join("tests/fixtures").join(archive)).arg("-C").arg(host.folder());
    assert!(unpack.status().unwrap().success(), "tar unpacks the archive");
    host
}

/// A host on the unpacked folder with these rules, and the tokens of its principals by their names. They are beside the folder,
/// because what a principal gave ends with its token.
pub(crate) fn with_tokens(archive: &str, rules: &str) -> (Host, Value) {
    let mut host = unpacked(archive, Setup::default().component("old", old()).tables(OF_PROGRAM).tables(rules));
    let tokens: Value = serde_json::from_slice(&fs::read(host.folder().join("tokens.json")).unwrap()).unwrap();
    host.admin = client(&host, &tokens, "root");
    host.start();
    (host, tokens)
}

pub(crate) fn client(host: &Host, tokens: &Value, name: &str) -> Client {
    host.client(tokens[name].as_str().unwrap())
}

/// A host on the unpacked folder, with new tokens for its principals.
fn opened(archive: &str) -> (Host, Client, Client) {
    let host = opened_with(archive, Setup::default().tables(OF_PROGRAM));
    let (agent, alice) = (host.agent.clone(), host.approver.clone());
    (host, agent, alice)
}

/// The same with this setup.
pub(crate) fn opened_with(archive: &str, setup: Setup) -> Host {
    let mut host = unpacked(archive, setup);
    for name in ["root", "agent", "alice"] {
        let said = host.cli(None, &["token", "revoke", name]);
        assert_eq!(said.code, 0, "the folder knows the token of {name}: {}", said.err);
    }
    host.admin = host.token("root", &["admin"], None);
    (host.agent, host.approver) = (host.token("agent", &["caller"], None), host.token("alice", &["approver"], None));
    host.start();
    host
}

/// Whether this variable is set, with which a test keeps its archive in `tests/fixtures`.
#[expect(clippy::disallowed_methods, reason = "an archive is kept on request")]
pub(crate) fn is_kept(keep: &str) -> bool {
    std::env::var_os(keep).is_some()
}

/// Kills a host, and packs its data folder and the head of its audit, without machine code, keys, checkpoints and lock
/// files. With the variable `keep`, the archive is kept in `tests/fixtures`. Its last commit must be on disk.
pub(crate) fn packed(mut host: Host, name: &str, keep: &str) -> (Host, PathBuf) {
    let head = host.admin.get("/v1/audit").ok(200)["head"].clone();
    host.kill();
    fs::write(host.folder().join("head"), format!("{}:{}", head["position"], head["hash"].as_str().unwrap())).unwrap();
    let folder = if is_kept(keep) { root().join("tests/fixtures") } else { host.folder().into() };
    let archive = folder.join(name);
    let mut pack = Command::new("tar");
    let locks = ["lock", "store/lock", "tokens.lock"];
    let keys = ["audit-key", "mcp-key", "session-key", "admin-token"];
    for left_out in locks.iter().chain(&keys).chain(&["compiled", "address", "checkpoints"]) {
        pack.arg(format!("--exclude=data/{left_out}"));
    }
    pack.arg("-czf").arg(&archive).arg("-C").arg(host.folder()).args(["data", "head"]);
    assert!(pack.status().unwrap().success(), "tar packs the folder");
    (host, archive)
}

/// The audit of an opened archive continues that of the host that made it.
pub(crate) fn audit_continues(host: &mut Host) {
    host.restart();
    let head = fs::read_to_string(host.folder().join("head")).unwrap();
    let said = host.cli(None, &["audit", "verify", "--head", &head]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// The outcome of a call, by its turn.
fn outcome(turn: &Value, call: &str) -> Value {
    let calls = turn["calls"].as_array().unwrap();
    calls.iter().find(|known| known["id"] == call).unwrap_or_else(|| panic!("{call} is not in {turn}"))["outcome"]
        .clone()
}

#[test]
fn folder_of_0_1_0_opens_and_its_call_is_answered() {
    let (mut host, agent, alice) = opened("data-0.1.0.tar.gz");
    let rows = host.admin.get("/v1/pending?conversation=kept&state=open").ok(200)["suspensions"].clone();
    let open: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["call"]).collect();
    assert!(open.contains(&&json!("waits")), "{rows}");
    let counts = host.admin.get("/v1/pending/counts?conversation=kept").ok(200);
    assert_eq!(counts["open"].as_u64().map(|open| open as usize), rows.as_array().map(Vec::len), "{counts}");
    let waits = rows.as_array().unwrap().iter().find(|row| row["call"] == "waits").unwrap().clone();

    // The same ids return the recorded turn with its large results.
    let big = json!([{"id": "open", "tool": "ledger_open", "arguments": {"account": "ann", "opening_balance": 10_000}},
        {"id": "big", "tool": "echo", "arguments": {"value": "x".repeat(200_000)}}]);
    let turn = agent.post("/v1/conversations/kept/turns", &json!({"calls": big})).ok(200);
    assert_eq!(
        [&turn["replayed"], &outcome(&turn, "open"), &outcome(&turn, "big")],
        [&json!(true), &json!("ok"), &json!("ok")]
    );
    assert_eq!(turn["calls"][1]["content"]["result"].as_str().map(str::len), Some(200_000));

    // The component is not in the folder of plugins. The data folder keeps the bytes that the call is pinned to.
    let _ = alice.resolve(waits["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
    let turn = agent.settled(&json!({"conversation": "kept", "turn": waits["turn"]}));
    assert_eq!((outcome(&turn, "waits"), outcome(&turn, "beside")), (json!("ok"), json!("ok")));
    assert_eq!(turn["calls"][0]["content"]["result"], "still here");

    let said = host.cli(None, &["audit", "verify"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    host.restart();
    let turn = agent.settled(&json!({"conversation": "kept", "turn": waits["turn"]}));
    assert_eq!(outcome(&turn, "waits"), "ok");

    // Retention removes what both versions wrote, and the audit still holds.
    host.kill();
    let config = host.folder().join("toolgate.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[retention]\nturns_bytes = 1\nturns_bytes_minutes = 0\n")).unwrap();
    let files = || fs::read_dir(host.data().join("store/blobs")).unwrap().count();
    assert!(files() > 0);
    let said = host.cli(None, &["store", "prune"]);
    assert!(said.code == 0 && said.out.contains("at most 1 bytes of ended turns are kept"), "{}{}", said.out, said.err);
    assert_eq!(files(), 0, "large records go with their turns");
    host.start_at_the_same_address();
    let _ = agent.post("/v1/conversations/kept/turns", &json!({"calls": big})).problem(410, "removed");
    let said = host.cli(None, &["audit", "verify"]);
    assert!(said.code == 0 && said.out.starts_with("verified"), "{}{}", said.out, said.err);
    let said = host.cli(None, &["audit", "--action", "turn.removed", "--turn", waits["turn"].as_str().unwrap()]);
    assert!(said.out.ends_with("by the rule: at most 1 bytes of ended turns are kept\n"), "{}{}", said.out, said.err);
}

#[test]
fn export_refuses_an_older_folder_until_it_is_migrated() {
    for archive in ["data-0.1.0", "data-format-4", "data-format-5", "data-format-6", "data-format-7"] {
        let host = unpacked(&format!("{archive}.tar.gz"), Setup::default().tables(OF_PROGRAM));
        // The first one changes nothing, so the others are refused too.
        for words in [&["store", "export"][..], &["store", "prune", "--dry-run"], &["store", "export"]] {
            let said = host.cli(None, words);
            assert!(said.code == 1 && said.out.is_empty(), "{archive} {words:?}: {}{}", said.out, said.err);
            let advice = "then start the host, or run `toolgate store prune`";
            assert!(said.err.contains("does not migrate it") && said.err.contains(advice), "{archive}: {}", said.err);
        }
        let said = host.cli(None, &["store", "prune"]);
        assert_eq!(said.code, 0, "{archive}: {}", said.err);
        let said = host.cli(None, &["store", "export"]);
        assert!(said.code == 0 && !said.out.is_empty(), "{archive}: {}", said.err);
    }
}

/// The head of the audit in the archive of format 4.
const HEAD_OF_4: &str = "84:sha256:e9ec6010b805c09cbebac134277eda7d07c4e3ad3ca8c77fc3268db182a688a9";

#[test]
fn turns_that_format_4_removed_stay_removed() {
    let (mut host, agent, alice) = opened("data-format-4.tar.gz");
    for number in [0, 7, 19] {
        let call =
            json!({"id": format!("gone-{number}"), "tool": "old_gated", "arguments": {"value": format!("v{number}")}});
        let _ = agent.post("/v1/conversations/gone/turns", &json!({"calls": [call]})).problem(410, "removed");
    }
    let rows = host.admin.get("/v1/pending?conversation=kept&state=open").ok(200)["suspensions"].clone();
    assert_eq!((rows.as_array().map(Vec::len), &rows[0]["call"]), (Some(1), &json!("waits")), "{rows}");
    let _ = alice.resolve(rows[0]["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
    let turn = agent.settled(&json!({"conversation": "kept", "turn": rows[0]["turn"]}));
    assert_eq!(turn["calls"][0]["content"]["result"], "still here");

    let verify = ["audit", "verify", "--head", HEAD_OF_4];
    for is_running in [true, false] {
        let said = host.cli(None, &verify);
        assert_eq!(said.code, 0, "{is_running}: {}{}", said.out, said.err);
        if is_running {
            host.kill();
        }
    }
    let said = host.cli(None, &["store", "export"]);
    let removed = said.out.lines().filter(|line| line.contains("\"content\":{\"removed\"")).count();
    assert_eq!(removed, 70, "the digest of each record is kept: {}", said.err);
}

/// The head of the audit in the archive of format 5.
const HEAD_OF_5: &str = "38:sha256:d74a3554688d4a2ae483ad1dce4c0603f549e49046355f50749b13d7d4056eea";

#[test]
fn turns_that_ended_in_format_5_are_in_the_feeds() {
    let (host, agent, alice) = opened("data-format-5.tar.gz");
    let ended = |client: &Client, count: usize| {
        let mut stream = client.events("/v1/events");
        let ended = [(); 5].iter().take(count).map(|()| stream.named("turn.settled").data);
        ended.map(|end| format!("{} {} {}", end["conversation"], end["caller"], end["state"])).collect::<Vec<_>>()
    };
    let [first, second, roots, cancelled] = [
        "\"kept\" \"agent\" \"settled\"",
        "\"kept\" \"agent\" \"settled\"",
        "\"roots\" \"root\" \"settled\"",
        "\"kept\" \"agent\" \"cancelled\"",
    ];
    assert_eq!(ended(&host.admin, 4), [first, second, roots, cancelled]);

    let mine = |by: &Client| {
        let rows = by.get("/v1/pending?mine=true").ok(200)["suspensions"].as_array().unwrap().clone();
        rows.iter().map(|row| row["conversation"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(mine(&alice), ["kept", "roots"]);
    assert_eq!(mine(&host.admin), ["kept"], "nobody answers for its own call");
    assert_eq!(mine(&agent), [""; 0]);
    let waits = host.admin.get("/v1/pending?conversation=kept").ok(200)["suspensions"][0].clone();
    let _ = alice.resolve(waits["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
    let turn = agent.settled(&json!({"conversation": "kept", "turn": waits["turn"]}));
    assert_eq!(turn["calls"][0]["content"]["result"], "still here");
    assert_eq!(mine(&alice), ["roots"]);
    assert_eq!(ended(&agent, 4), [first, second, cancelled, first]);
    let call = json!([{"id": "gone-0", "tool": "old_gated", "arguments": {"value": "v0"}}]);
    let _ = agent.post("/v1/conversations/gone/turns", &json!({"calls": call})).problem(410, "removed");
    let said = host.cli(None, &["audit", "verify", "--head", HEAD_OF_5]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// The head of the audit in the archive of format 6.
const HEAD_OF_6: &str = "41:sha256:b5a6267acad6e360c0ec81829b5030df02dd9224912fa05bfb636aa725c9a863";

#[test]
fn folder_of_format_6_opens_and_its_calls_are_answered() {
    let (mut host, agent, alice) = opened("data-format-6.tar.gz");
    let mut stream = host.admin.events("/v1/events");
    let ended = [(); 5].map(|()| stream.named("turn.settled").data);
    let ended =
        ended.map(|end| format!("{} {}", end["conversation"].as_str().unwrap(), end["state"].as_str().unwrap()));
    assert_eq!(ended, ["kept settled", "kept settled", "roots settled", "kept settled", "kept cancelled"]);
    let calls = json!([{"id": "big", "tool": "old_count", "arguments": {"value": "x".repeat(200_000)}}]);
    let turn = agent.post("/v1/conversations/kept/turns", &json!({"calls": calls})).ok(200);
    assert_eq!((&turn["replayed"], outcome(&turn, "big")), (&json!(true), json!("failed")));
    let call = json!([{"id": "gone-5", "tool": "old_gated", "arguments": {"value": "v5"}}]);
    let _ = agent.post("/v1/conversations/gone/turns", &json!({"calls": call})).problem(410, "removed");
    let log = agent.get("/v1/conversations/kept/calls/small/log").ok(200);
    assert!(!log["runs"][0]["lines"].as_array().unwrap().is_empty(), "{log}");

    let rows = alice.get("/v1/pending?mine=true").ok(200)["suspensions"].as_array().unwrap().clone();
    let calls: Vec<_> = rows.iter().map(|row| format!("{} {}", row["conversation"], row["call"])).collect();
    assert_eq!(calls, ["\"kept\" \"waits\"", "\"roots\" \"waits\""]);
    for row in &rows {
        let _ = alice.resolve(row["suspension"].as_str().unwrap(), json!({"decision": "approve"})).ok(200);
        let turn = host.admin.settled(row);
        assert_eq!(turn["calls"][0]["content"]["result"], "still here");
    }
    host.restart();
    let said = host.cli(None, &["audit", "verify", "--head", HEAD_OF_6]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// The open step of a durable call, once it has one from this number on.
pub(crate) fn step(agent: &Client, turn: &Value, number: u64) -> Value {
    agent.until(&path(turn), |answer| {
        let turn: Value = serde_json::from_str(&answer.text).unwrap();
        turn["pending"].as_array().unwrap().iter().find(|open| open["step"].as_u64() >= Some(number)).cloned()
    })
}

/// Answers the open suspension of a step once, and refuses a second answer.
fn answer(alice: &Client, step: &Value, given: Value) {
    let id = step["suspension"].as_str().unwrap();
    let other = if given["decision"] == "deny" { "approve" } else { "deny" };
    let _ = alice.resolve(id, given).ok(200);
    let _ = alice.resolve(id, json!({"decision": other})).problem(409, "stale");
}

/// The turn of a durable call.
fn turn_of(agent: &Client, call: &str) -> Value {
    let turns = agent.get("/v1/conversations/steps/turns").ok(200)["turns"].clone();
    let turn = turns.as_array().unwrap().iter().find(|turn| turn["calls"][0]["id"] == call);
    let turn = turn.unwrap_or_else(|| panic!("{call} is not in {turns}"));
    json!({"conversation": "steps", "turn": turn["turn"]})
}

/// Durable calls that an older host left waiting in the middle of their code go on, and each ends with one outcome.
fn durable_calls_go_on(archive: &str, head: &str) {
    let (mut host, agent, alice) = opened(archive);
    let [done, asks, plans, sleeps] = ["done", "asks", "plans", "sleeps"].map(|call| turn_of(&agent, call));
    let live = json!({"version": "1.4.2", "environment": "live", "instances": 3});
    let result = |turn: &Value| agent.settled(turn)["calls"][0]["content"]["result"].clone();
    assert_eq!(result(&done), json!({"state": "done", "plan": live}));

    answer(&alice, &step(&agent, &asks, 1), json!({"decision": "answer", "data": {"environment": "test"}}));
    let proposed = step(&agent, &asks, 2);
    assert_eq!(proposed["arguments"]["environment"], "test", "{proposed:#}");
    answer(&alice, &proposed, json!({"decision": "deny", "comment": "not today"}));
    assert_eq!(result(&asks), json!({"state": "rejected", "comment": "not today"}));

    let proposed = step(&agent, &plans, 2);
    assert_eq!(proposed["arguments"], live, "{proposed:#}");
    answer(&alice, &proposed, json!({"decision": "approve"}));
    for turn in [&plans, &sleeps] {
        answer(&alice, &step(&agent, turn, 4), json!({"decision": "healthy"}));
        assert_eq!(result(turn), json!({"state": "done", "plan": live}));
    }
    host.restart();
    for turn in [&done, &asks, &plans, &sleeps] {
        let turn = agent.settled(turn);
        assert_eq!((outcomes(&turn), &turn["calls"][0]["attempt"]), (vec!["ok".to_owned()], &json!(1)), "{turn:#}");
    }
    let said = host.cli(None, &["audit", "verify", "--head", head]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

/// Who ended what is found by these filters, also in a folder that did not index it.
fn ends_are_found(archive: &str) {
    let (host, _, _) = opened(archive);
    let calls = |query: &str| {
        let rows = host.admin.get(&format!("/v1/pending?{query}")).ok(200)["suspensions"].as_array().unwrap().clone();
        rows.iter().map(|row| row["call"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(calls("decision=deny"), ["denied"]);
    assert_eq!(calls("decision=approve&conversation=kept"), ["approved"]);
    assert_eq!(calls("by=alice&tool=old_gated"), ["denied", "approved"]);
    assert_eq!(calls("decision=withdrawn"), ["cancelled"]);
    assert_eq!(calls("by=system"), ["cancelled"], "the host withdraws what a cancelled call waits for");
    assert_eq!(calls("by=agent"), [""; 0]);
    assert_eq!(calls("by=bob"), [""; 0]);
}

/// The head of the audit in the archive of format 6 with durable calls.
const HEAD_OF_6_DURABLE: &str = "45:sha256:f0cc63be124cffa69424d2205f194d062c5b73ffb448df4ec66e20b39195b4bf";

#[test]
fn durable_calls_of_format_6_go_on() {
    durable_calls_go_on("data-format-6-durable.tar.gz", HEAD_OF_6_DURABLE);
}

#[test]
fn ends_of_format_6_are_found() {
    ends_are_found("data-format-6-durable.tar.gz");
}

/// The head of the audit in the archive of format 7.
const HEAD_OF_7: &str = "59:sha256:7174d7442af8669122c1c47e1102f6716248d5376c7633054ba0698ed7f07840";

#[test]
fn folder_of_format_7_opens_and_its_calls_go_on() {
    durable_calls_go_on("data-format-7.tar.gz", HEAD_OF_7);
    ends_are_found("data-format-7.tar.gz");
}

#[test]
fn signal_and_journal_of_format_7_are_used() {
    let (mut host, agent, alice) = opened("data-format-7.tar.gz");
    let [signals, journals] = ["signals", "journals"].map(|call| turn_of(&agent, call));
    let result = |turn: &Value| agent.settled(turn)["calls"][0]["content"]["result"].clone();
    let _ = agent.post("/v1/conversations/steps/signals/health", &json!({"healthy": false})).ok(200);
    assert_eq!(result(&signals)["state"], "rolled back");

    answer(&alice, &step(&agent, &journals, 2), json!({"decision": "answer", "data": "yes"}));
    assert_eq!(result(&journals), json!(["eu", 1, "a", "a", "yes", 11, "yes", ["log", "n"], 111]));
    host.restart();
    let said = host.cli(None, &["audit", "verify", "--head", HEAD_OF_7]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}
