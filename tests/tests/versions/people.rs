//! A data folder with what people gave before the host stopped: votes, delegations and standing approvals. The tokens of its
//! principals are beside it, because what a principal gave ends with its token.

use serde_json::{Value, json};
use toolgate_tests::host::Host;
use toolgate_tests::http::{Client, outcomes};

use super::folders::{client, step, with_tokens};

const RULES: &str = r#"
[[policy]]
name = "two-of-three"
tools = "old_gated"
rule = "ask"
arguments = [{ pointer = "/value", equals = "votes" }]

[[policy.needs]]
who = ["principal:ann", "principal:bob", "principal:cid", "principal:carol"]
quorum = 3

[[policy]]
name = "lent"
tools = "old_gated"
rule = "ask"
arguments = [{ pointer = "/value", equals = "lent" }]

[[policy.needs]]
who = ["principal:bob"]
escalate = { after_ms = 1, to = ["principal:cid"] }
"#;

/// The head of the audit in the archive.
const HEAD: &str = "34:sha256:8af3047973be2e64e65a24b6178efb40d9a5031833761cd2759bbc1693b37130";

/// A host on the folder, and the tokens of its principals by their names.
fn opened() -> (Host, Value) {
    with_tokens("data-format-7-people.tar.gz", RULES)
}

/// The open suspension of a call.
fn open(by: &Client, call: &str) -> String {
    let listed = by.get(&format!("/v1/pending?conversation=people&call={call}")).ok(200);
    listed["suspensions"][0]["suspension"].as_str().unwrap_or_else(|| panic!("{call} waits: {listed}")).to_owned()
}

/// The turn of a call.
fn turn_of(agent: &Client, conversation: &str, call: &str) -> Value {
    let turns = agent.get(&format!("/v1/conversations/{conversation}/turns?limit=100")).ok(200)["turns"].clone();
    let turn = turns.as_array().unwrap().iter().find(|turn| turn["calls"][0]["id"] == call);
    let turn = turn.unwrap_or_else(|| panic!("{call} is not in {turns}"));
    json!({"conversation": conversation, "turn": turn["turn"]})
}

fn gated(agent: &Client, id: &str, value: &str) -> Value {
    agent.submit("people", json!([{"id": id, "tool": "old_gated", "arguments": {"value": value}}]))
}

#[test]
fn votes_and_delegations_of_an_older_host_count() {
    let (host, tokens) = opened();
    let [agent, bob, cid, dan] = ["agent", "bob", "cid", "dan"].map(|name| client(&host, &tokens, name));
    let votes = open(&host.admin, "votes");
    let seen = bob.get(&format!("/v1/suspensions/{votes}")).ok(200);
    assert_eq!(seen["needs"][0]["votes"], 1, "carol is revoked: {seen:#}");
    for (by, state) in [(&cid, "open"), (&bob, "approve")] {
        assert_eq!(by.resolve(&votes, json!({"decision": "approve"})).ok(200)["state"], state);
    }
    let lent = open(&host.admin, "lent");
    bob.resolve(&lent, json!({"decision": "approve"})).problem(403, "not-allowed");
    assert_eq!(dan.resolve(&lent, json!({"decision": "approve"})).ok(200)["state"], "approve");
    for (call, approvers) in [("votes", json!(["ann", "cid", "bob"])), ("lent", Value::Null)] {
        let turn = agent.settled(&turn_of(&agent, "people", call));
        assert_eq!((outcomes(&turn), &turn["calls"][0]["approvers"]), (vec!["ok".to_owned()], &approvers), "{turn:#}");
    }
}

#[test]
fn standing_approval_of_an_older_host_is_used() {
    let (host, tokens) = opened();
    let agent = client(&host, &tokens, "agent");
    for (id, value, asks) in [
        ("second-use", "standing", false),
        ("last-use", "standing", false),
        ("used-up", "standing", true),
        ("revoked", "revoked", true),
        ("of-a-revoked-giver", "carols", true),
    ] {
        let turn = gated(&agent, id, value);
        let is_asked = turn["pending"].as_array().is_some_and(|pending| !pending.is_empty());
        assert_eq!(is_asked, asks, "{id}: {turn:#}");
    }
}

#[test]
fn checkpoint_and_waiting_calls_of_an_older_host_are_read() {
    let (mut host, tokens) = opened();
    let [agent, ann] = ["agent", "ann"].map(|name| client(&host, &tokens, name));
    let verify = ["audit", "verify", "--head", HEAD, "--checkpoint", "checkpoint.json"];
    let said = host.cli(None, &verify);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);

    let linked = ann.get(&format!("/v1/suspensions/{}", open(&host.admin, "linked"))).ok(200);
    assert_eq!(linked["deliveries"][0]["webhook"], "pager", "{linked:#}");
    let located = agent.settled(&turn_of(&agent, "people", "located"));
    assert_eq!(outcomes(&located), ["expired"], "its client left: {located:#}");

    let journals = turn_of(&agent, "steps", "journals");
    let asked = step(&agent, &journals, 1);
    let _ = ann.resolve(asked["suspension"].as_str().unwrap(), json!({"decision": "answer", "data": "yes"})).ok(200);
    let settled = agent.settled(&journals);
    assert_eq!(settled["calls"][0]["content"]["result"], json!([1, "yes", 2]), "{settled:#}");
    let journal = agent.get("/v1/conversations/steps/calls/limited/journal").ok(200);
    let states: Vec<_> = journal["entries"].as_array().unwrap().iter().take(3).map(|entry| &entry["state"]).collect();
    assert_eq!(states, ["done", "begun", "refused"], "{journal:#}");
    assert_eq!(journal["steps"][0]["kind"], "rate_limit", "{journal:#}");
    host.kill();
    let said = host.cli(None, &verify);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}
