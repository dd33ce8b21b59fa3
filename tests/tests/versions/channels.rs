//! A data folder with the channels of answers, votes and delegations, and with a need that demands channels.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolgate_tests::browser::Browser;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, outcomes, suspension_of};

use super::folders::{audit_continues, client, packed, unpacked};
use super::{old, root};

const ARCHIVE: &str = "data-format-7-channels.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_CHANNELS_ARCHIVE";

const RULE: &str = r#"
[[policy]]
name = "three-at-the-console"
tools = "old_gated"
rule = "ask"
arguments = [{ pointer = "/value", equals = "people" }]
needs = [{ who = ["principal:alice", "principal:bob", "principal:cid"], quorum = 3, via = ["console"] }]
"#;

fn setup() -> Setup {
    Setup::default().settings("expires_ms = 3000000000000").component("old", old()).tables(RULE)
}

fn gated(agent: &Client, value: &str) -> Value {
    agent.submit("c", json!([{"id": value, "tool": "old_gated", "arguments": {"value": value}}]))
}

/// A host with an approved call, and one that has a vote and a delegation. The tokens of its principals are in the data folder.
fn made() -> Host {
    let host = setup().start();
    let [bob, cid, dan] = ["bob", "cid", "dan"].map(|name| host.token(name, &["approver"], None));
    let free = gated(&host.agent, "free");
    let _ = host.approver.resolve(&suspension_of(&free), json!({"decision": "approve"})).ok(200);
    assert_eq!(outcomes(&host.agent.settled(&free)), ["ok"]);
    let waits = suspension_of(&gated(&host.agent, "people"));
    let at = |by: &Client| Browser::log_in(&host.stranger(), by.token());
    assert_eq!(at(&host.approver).resolve(&waits, &json!({"decision": "approve"})).ok(200)["state"], "open");
    let delegated = at(&bob).send("POST", &format!("/v1/suspensions/{waits}/delegate"), &json!({"to": "dan"}));
    let _ = delegated.ok(200);
    let tokens =
        json!({"root": host.admin.token(), "agent": host.agent.token(), "cid": cid.token(), "dan": dan.token()});
    fs::write(host.data().join("tokens-of-test.json"), tokens.to_string()).unwrap();
    host
}

/// Earlier votes and delegations still count, with their channels.
fn goes_on(archive: &Path) {
    let mut host = unpacked(archive.to_str().unwrap(), setup());
    let tokens: Value = serde_json::from_slice(&fs::read(host.data().join("tokens-of-test.json")).unwrap()).unwrap();
    host.admin = client(&host, &tokens, "root");
    host.start();
    let [agent, cid, dan] = ["agent", "cid", "dan"].map(|name| client(&host, &tokens, name));
    let row = host.admin.get("/v1/pending?conversation=c&state=open").ok(200)["suspensions"][0].clone();
    let waits = row["suspension"].as_str().unwrap().to_owned();
    assert_eq!(
        (&row["votes"][0]["via"], &row["delegations"][0]["via"]),
        (&json!("console"), &json!("console")),
        "{row:#}"
    );
    cid.resolve(&waits, json!({"decision": "approve"})).problem(403, "not-allowed");
    for (by, state) in [(&cid, "open"), (&dan, "approve")] {
        let browser = Browser::log_in(&host.stranger(), by.token());
        assert_eq!(browser.resolve(&waits, &json!({"decision": "approve"})).ok(200)["state"], state);
    }
    assert_eq!(outcomes(&agent.settled(&row)), ["ok"]);
    let free = host.admin.get("/v1/pending?conversation=c&call=free&state=closed").ok(200)["suspensions"][0].clone();
    assert_eq!(free["closed"]["via"], "api", "{free:#}");
    audit_continues(&mut host);
}

#[test]
fn folder_with_channels_is_packed_and_opened() {
    let (_host, archive) = packed(made(), ARCHIVE, KEEP);
    goes_on(&archive);
}

#[test]
fn channels_of_an_older_host_count() {
    goes_on(&root().join("tests/fixtures").join(ARCHIVE));
}
