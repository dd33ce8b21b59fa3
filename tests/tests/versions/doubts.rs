//! A data folder with a request in doubt, about which a person was asked.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_tests::effects::Server;
use toolgate_tests::guests::illegal;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::{Client, path};

use super::folders::{audit_continues, opened_with, packed};
use super::root;

const ARCHIVE: &str = "data-format-7-doubts.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_DOUBTS_ARCHIVE";

pub(crate) fn setup(server: &Server) -> Setup {
    let grants = format!(
        "[plugin.program]\ncomponent = \"any\"\ngrants.keyvalue = true\ngrants.config = {{ region = \"eu\" }}\n\
         grants.http = [{{ url = \"{}\", methods = [\"POST\"], private = true }}]",
        server.url("/")
    );
    Setup::default().settings("expires_ms = 3000000000000").component("program", illegal("program")).tables(&grants)
}

fn asked(by: &Client) -> Value {
    by.until("/v1/pending?conversation=c", |answer| {
        let listed: Value = serde_json::from_str(&answer.text).unwrap();
        listed["suspensions"].get(0).cloned()
    })
}

/// A host that asks about a request which was interrupted by a kill.
fn made() -> Host {
    let server = Server::start();
    server.hold(0);
    let mut host = setup(&server).start();
    let send = json!({"do": "send", "method": "POST", "url": server.url("/add"), "body": "x"});
    let set = json!({"do": "set", "key": "k", "value": "v"});
    let arguments = json!({"program": [set, send]});
    let call = json!({"id": "p", "tool": "run", "arguments": arguments});
    let turn = host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201);
    host.agent.until(&path(&turn), |_| (server.requests().len() == 1).then_some(()));
    host.restart();
    let _ = asked(&host.approver);
    host
}

/// The question is answered, and the call goes on.
fn goes_on(archive: &Path) {
    let server = Server::start();
    let mut host = opened_with(archive.to_str().unwrap(), setup(&server));
    let asked = asked(&host.approver);
    assert_eq!(asked["requests_in_doubt"][0]["entry"], 2, "{asked:#}");
    let done = json!({"decision": "approve", "arguments": {"2": {"status": 201, "body": "x: 1"}}});
    let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), done).ok(200);
    let settled = host.agent.settled(&json!({"conversation": "c", "turn": asked["turn"]}));
    let expected = json!([null, {"status": 201, "text": "x: 1"}]);
    assert_eq!(settled["calls"][0]["content"]["result"], expected, "{settled:#}");
    assert_eq!(server.requests().len(), 0, "it is not sent again");
    audit_continues(&mut host);
}

#[test]
fn folder_with_a_request_in_doubt_is_packed_and_opened() {
    let (_host, archive) = packed(made(), ARCHIVE, KEEP);
    goes_on(&archive);
}

#[test]
fn request_in_doubt_of_an_older_host_is_decided() {
    goes_on(&root().join("tests/fixtures").join(ARCHIVE));
}
