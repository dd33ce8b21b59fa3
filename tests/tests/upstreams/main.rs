//! Upstream MCP servers with the real binary: acceptance, gates, bounds, and servers that misbehave.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accepting;
mod calling;
mod hostile;
mod killed;
mod remote;
mod remote_hostile;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolgate_tests::host::{Host, Said, Setup};

/// The table of the server `fake` in this mode, with more keys.
fn table(mode: &str, keys: &str) -> String {
    let server = server();
    format!("[upstream.fake]\ncommand = [{:?}, {mode:?}]\nfolder = \"fake\"\n{keys}", server.display().to_string())
}

/// The program of the tests.
fn server() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let server = test.ancestors().nth(2).unwrap().join("toolgate-test-upstream");
    assert!(server.is_file(), "{} is missing: run `cargo build --workspace --bins`", server.display());
    server
}

/// A host that is not started yet, with its folder for the server.
fn prepared(setup: Setup, mode: &str, keys: &str) -> Host {
    let host = setup.tables(&table(mode, keys)).prepare();
    fs::create_dir(host.folder().join("fake")).unwrap();
    host
}

fn cli(host: &Host, words: &[&str]) -> Said {
    host.cli(None, words)
}

fn review(host: &Host) -> Value {
    let said = cli(host, &["upstream", "review", "fake", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.out).unwrap()
}

fn accept(host: &Host) {
    let digest = review(host)["digest"].as_str().unwrap().to_owned();
    let said = cli(host, &["upstream", "accept", "fake", "--digest", &digest]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// A running host whose operator has accepted the tools of the server, and allows calls without approvals.
fn started(keys: &str) -> Host {
    let mut host = prepared(Setup::default(), "", &format!("approval = \"auto\"\n{keys}"));
    accept(&host);
    host.start();
    host
}

/// The content of one call for the model: its result, or its error.
fn called(host: &Host, tool: &str, arguments: Value) -> Value {
    let turn = host.agent.call(&format!("of-{tool}"), tool, arguments);
    host.agent.settled(&turn)["calls"][0]["content"].clone()
}

fn error(host: &Host, tool: &str) -> (String, String) {
    let result = called(host, tool, json!({}));
    let text = |key: &str| result["error"][key].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
    (text("code"), text("message"))
}

/// Submits a call without waiting for it.
fn submit(host: &Host, tool: &str) -> Value {
    let call = json!({"id": "k", "tool": format!("fake__{tool}"), "arguments": {}});
    host.agent.post("/v1/conversations/c/turns", &json!({"calls": [call]})).ok(201)
}

/// A file in the server's folder.
fn note(host: &Host, file: &str) -> String {
    fs::read_to_string(host.folder().join("fake").join(file)).unwrap_or_default()
}
