//! A data folder with a call that waits after a request, whose bytes its journal has.

use std::path::Path;

use serde_json::json;
use toolgate_tests::effects::Server;
use toolgate_tests::host::Host;
use toolgate_tests::steps::waiting;

use super::doubts::setup;
use super::folders::{audit_continues, opened_with, packed};
use super::root;

const ARCHIVE: &str = "data-format-8-requests.tar.gz";

/// With this variable, the test that makes a folder keeps its archive in `tests/fixtures`.
const KEEP: &str = "TOOLGATE_KEEP_REQUESTS_ARCHIVE";

/// A host whose call has sent a request and asks.
fn made() -> Host {
    let server = Server::start();
    let host = setup(&server).start();
    let send = json!({"do": "send", "method": "POST", "url": server.url("/add"), "body": "x"});
    let program = json!([{"do": "set", "key": "k", "value": "v"}, send, {"do": "ask", "prompt": "Go on?"}]);
    let turn = host.agent.submit("c", json!([{"id": "p", "tool": "run", "arguments": {"program": program}}]));
    let _ = waiting(&host, &turn, 1);
    host
}

/// The question is answered, and the call goes on with the recorded answer of the server.
fn goes_on(archive: &Path) {
    let server = Server::start();
    let mut host = opened_with(archive.to_str().unwrap(), setup(&server));
    let asked = host.approver.get("/v1/pending?conversation=c").ok(200)["suspensions"][0].clone();
    let yes = json!({"decision": "answer", "data": "yes"});
    let _ = host.approver.resolve(asked["suspension"].as_str().unwrap(), yes).ok(200);
    let settled = host.agent.settled(&json!({"conversation": "c", "turn": asked["turn"]}));
    let expected = json!([null, {"status": 200, "text": "x: 1"}, "yes"]);
    assert_eq!(settled["calls"][0]["content"]["result"], expected, "{settled:#}");
    assert_eq!(server.requests().len(), 0, "it is not sent again");
    audit_continues(&mut host);
}

#[test]
fn folder_with_a_sent_request_is_packed_and_opened() {
    let (_host, archive) = packed(made(), ARCHIVE, KEEP);
    goes_on(&archive);
}

#[test]
fn call_of_an_older_host_goes_on_after_its_request() {
    goes_on(&root().join("tests/fixtures").join(ARCHIVE));
}
