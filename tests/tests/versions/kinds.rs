//! A salvaged store with the kinds of records that no other archive has. A salvage writes format 3, and the next start makes its
//! indexes.

use serde_json::{Value, json};
use toolgate_tests::host::Host;
use toolgate_tests::http::{Client, outcomes};

use super::folders::{client, with_tokens};

const RULE: &str = r#"
[[policy]]
name = "two"
tools = "old_gated"
rule = "ask"
arguments = [{ pointer = "/value", equals = "votes" }]

[[policy.needs]]
who = ["principal:ann", "principal:bob", "principal:cid"]
quorum = 2
"#;

/// The head of the audit in the archive.
const HEAD: &str = "85:sha256:794097306e43ae4dc6a1818e4647f69cf58f333a79c55c087c173bc738801b6c";

/// A host on the folder, and the tokens of its principals by their names.
fn opened() -> (Host, Value) {
    with_tokens("data-format-3.tar.gz", RULE)
}

/// The open suspension of a call, and its turn.
fn open(by: &Client, conversation: &str, call: &str) -> (String, Value) {
    let listed = by.get(&format!("/v1/pending?conversation={conversation}&call={call}")).ok(200);
    let row = &listed["suspensions"][0];
    let id = row["suspension"].as_str().unwrap_or_else(|| panic!("{call} waits: {listed}"));
    (id.to_owned(), json!({"conversation": conversation, "turn": row["turn"]}))
}

#[test]
fn salvaged_store_is_whole_and_lists_only_those_who_are_asked() {
    let (mut host, _) = opened();
    // The second start checks the indexes that the first one made.
    host.restart();
    assert_eq!(host.admin.get("/v1/status").ok(200)["store"], "ok");
    let counts = host.admin.get("/v1/pending/counts?conversation=kinds").ok(200);
    let rows = host.admin.get("/v1/pending?conversation=kinds&state=open").ok(200)["suspensions"].clone();
    let calls: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["call"].as_str().unwrap()).collect();
    assert!(!calls.contains(&"busy"), "a wait for a server asks nobody: {calls:?}");
    assert_eq!(counts["open"].as_u64().map(|open| open as usize), Some(calls.len()), "{counts} {calls:?}");
    host.kill();
    let said = host.cli(None, &["audit", "verify", "--head", HEAD]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

#[test]
fn calls_of_the_salvaged_store_are_answered() {
    let (host, tokens) = opened();
    let [agent, alice, bob, cid] = ["agent", "alice", "bob", "cid"].map(|name| client(&host, &tokens, name));
    let call = |id: &str, tool: &str, value: Value| json!([{"id": id, "tool": tool, "arguments": {"value": value}}]);
    let lost = call("lost", "old_count", json!("y".repeat(200_000)));
    agent.post("/v1/conversations/kinds/turns", &json!({"calls": lost})).problem(410, "removed");

    let (asks, turn) = open(&host.admin, "kinds", "asks");
    let _ = alice.resolve(&asks, json!({"decision": "answer", "data": 42})).ok(200);
    let asked = agent.settled(&turn);
    assert_eq!((outcomes(&asked), &asked["calls"][0]["content"]["result"]), (vec!["ok".to_owned()], &json!(42)));

    // Votes count on, but not those of somebody who was revoked.
    let (by_link, turn) = open(&host.admin, "links", "votes-by-link");
    let seen = bob.get(&format!("/v1/suspensions/{by_link}")).ok(200);
    assert_eq!(seen["needs"][0]["votes"], 0, "ann is revoked: {seen:#}");
    for (by, state) in [(&bob, "open"), (&cid, "approve")] {
        assert_eq!(by.resolve(&by_link, json!({"decision": "approve"})).ok(200)["state"], state);
    }
    assert_eq!(outcomes(&agent.settled(&turn)), ["ok"]);
    let (votes, turn) = open(&host.admin, "kinds", "votes");
    assert_eq!(cid.resolve(&votes, json!({"decision": "approve"})).ok(200)["state"], "approve", "bob has voted");
    assert_eq!(outcomes(&agent.settled(&turn)), ["ok"]);

    let covered = call("covered", "old_gated", json!("standing"));
    assert_eq!(outcomes(&agent.post("/v1/conversations/kinds/turns", &json!({"calls": covered})).ok(200)), ["ok"]);
    let written = agent.get("/v1/conversations/kinds/calls/written/journal").ok(200);
    assert_eq!(written["entries"].as_array().map(Vec::len), Some(2), "{written:#}");
}
