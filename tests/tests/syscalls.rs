//! Acknowledged means on disk, as the kernel sees it: between the write of a turn's record into the store's file and the
//! bytes of the HTTP response that acknowledges it there is an `fdatasync` of that file which succeeded.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what a test is made of fails by panicking, as a test does"
)]

use std::fs;
use std::process::Command;

use serde_json::json;
use toolgate_tests::host::{Host, Setup, say};
use toolgate_tests::http::waits;

/// What is traced: everything that writes to files or sockets, and what makes it durable.
const CALLS: &str = "trace=write,writev,pwrite64,pwritev,sendto,sendmsg,fdatasync,fsync,sync_file_range";

/// The variable by which `cargo xtask test --without syscalls` says that nobody may trace here.
const WITHOUT: &str = "TOOLGATE_WITHOUT";

#[test]
fn a_turn_and_an_answer_are_synced_before_they_are_acknowledged() {
    if left_out() {
        return say("left out: TOOLGATE_WITHOUT names syscalls");
    }
    can_trace();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace");
    let output = output.to_str().unwrap();
    let strace = ["strace", "-f", "-y", "-s", "65536", "-e", CALLS, "-o", output];
    let mut host = Setup::with(&["lab"]).around(&strace).start();
    let gated = json!([{"id": "call-with-a-marker", "tool": "gated_echo", "arguments": {"value": "first-marker"}}]);
    let turn = host.agent.submit("conversation-with-a-marker", gated);
    let answer = json!({"decision": "deny", "comment": "second-marker"});
    assert_eq!(host.approver.resolve(&waits(&turn), answer).ok(200)["ok"], true);
    stop(&mut host, output);

    let trace = fs::read_to_string(output).unwrap();
    let calls: Vec<&str> = trace.lines().collect();
    synced(&calls, "first-marker", "HTTP/1.1 201 Created");
    synced(&calls, "second-marker", r#"{\"ok\":true,\"replayed\":false"#);
}

/// Between the first write of the record to the store's file and the first response with this text: a sync of that file
/// that began after the last write to it, and succeeded.
fn synced(calls: &[&str], record: &str, response: &str) {
    let is_write = |line: &str| ["write(", "pwrite64(", "writev(", "pwritev("].iter().any(|name| line.contains(name));
    let to_store = |line: &str| is_write(line) && line.contains("/sled/db>");
    let written = calls.iter().position(|line| to_store(line) && line.contains(record));
    let written = written.unwrap_or_else(|| panic!("the record with {record} was not written to the store's file"));
    let to_socket = |line: &str| line.contains("<TCP") || line.contains("<socket:");
    let told = calls.iter().position(|line| to_socket(line) && line.contains(response));
    let told = told.unwrap_or_else(|| panic!("no response with {response} was sent"));
    assert!(written < told, "{record} was acknowledged before it was written");
    let mut durable = false;
    let mut syncing = None;
    for line in &calls[written..told] {
        let process = line.split_whitespace().next();
        if to_store(line) {
            (durable, syncing) = (false, None);
        } else if line.contains("fdatasync(") && line.contains("/sled/db>") {
            // A call during which another thread ran stands in two lines, the second with the result.
            (durable, syncing) = (line.ends_with("= 0"), process);
        } else if line.contains("<... fdatasync resumed>") && syncing == process {
            durable = line.ends_with("= 0");
        }
    }
    assert!(durable, "{record} was acknowledged without a sync:\n{}", calls[written..=told].join("\n"));
}

/// Ends the traced host; its tracer ends with it.
fn stop(host: &mut Host, trace: &str) {
    let trace = fs::read_to_string(trace).unwrap();
    let process = trace.split_whitespace().next().expect("each line begins with a process");
    let killed = Command::new("kill").args(["-KILL", process]).status().unwrap();
    assert!(killed.success());
    host.wait();
}

/// # Panics
/// When nothing can be traced here.
fn can_trace() {
    let traced = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let traced = traced.is_ok_and(|output| output.status.success());
    assert!(
        traced,
        "strace is missing or may not trace here: run `apt-get install strace`, or leave this test out with \
         `cargo xtask test --without syscalls`"
    );
}

#[expect(clippy::disallowed_methods, reason = "the one thing that is said to this test from outside")]
fn left_out() -> bool {
    std::env::var(WITHOUT).is_ok_and(|parts| parts.split(',').any(|part| part == "syscalls"))
}
