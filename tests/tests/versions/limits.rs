//! A durable call keeps the limits with which it was accepted, also in a data folder of an older host.

use std::path::Path;

use serde_json::json;
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::outcomes;
use toolgate_tests::steps::waiting;

use super::folders::{audit_continues, opened_with, packed};
use super::root;

const ARCHIVE: &str = "data-format-7-limits.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_LIMITS_ARCHIVE";

const LOWER: &str = "limits.memory_bytes = 67_108_864";
const HIGHER: &str = "limits.memory_bytes = 536_870_912";

fn setup() -> Setup {
    let grants = "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true\ngrants.config = { region = \"eu\" }\n\
                  grants.http = [{ url = \"https://api.example.com/\" }]";
    Setup::default().settings("expires_ms = 3000000000000").component("program", illegal("program")).tables(grants)
}

/// A host with the default limits, and a call that waits after it has got 100 MB. The next 200 MB are too much.
fn made() -> Host {
    let host = setup().start();
    let allocate = |bytes: usize| json!({"do": "allocate", "bytes": bytes});
    let program = json!([allocate(100_000_000), {"do": "ask", "prompt": "Go on?"}, allocate(200_000_000)]);
    let call = json!({"id": "p", "tool": "run", "arguments": {"program": program}});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    let _ = waiting(&host, &turn, 1);
    host
}

/// The question is answered, and the call has the memory that it would have had.
fn goes_on(host: &Host) {
    let listed = host.approver.get("/v1/pending?conversation=c").ok(200);
    let asked = &listed["suspensions"][0];
    let yes = json!({"decision": "answer", "data": "yes"});
    let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), yes).ok(200);
    let settled = host.agent.settled(&json!({"conversation": "c", "turn": asked["turn"]}));
    assert_eq!(outcomes(&settled), ["ok"], "{settled:#}");
    assert_eq!(settled["calls"][0]["content"]["result"], json!([true, "yes", false]), "{settled:#}");
}

#[test]
fn waiting_call_keeps_its_limits_when_the_operator_changes_them() {
    for changed in [LOWER, HIGHER] {
        let mut host = made();
        host.restart_with(changed);
        goes_on(&host);
    }
}

#[test]
fn folder_with_limits_of_a_call_is_packed_and_opened() {
    let (_host, archive) = packed(made(), ARCHIVE, KEEP);
    goes_on_in(&archive);
}

#[test]
fn call_of_an_older_host_keeps_its_limits() {
    goes_on_in(&root().join("tests/fixtures").join(ARCHIVE));
}

fn goes_on_in(archive: &Path) {
    let mut host = opened_with(archive.to_str().unwrap(), setup().settings(LOWER));
    goes_on(&host);
    audit_continues(&mut host);
}
