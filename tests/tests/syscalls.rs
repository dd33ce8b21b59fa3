//! An acknowledged turn is on disk, according to the kernel. Between the write of its record to the store's file and
//! the HTTP response there is a successful `fdatasync` of that file.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::process::Command;

use serde_json::json;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::suspension_of;
use toolgate_tests::parts::Part;
use toolgate_tests::strace;

/// The traced system calls: those that write to files or sockets, and those that sync.
const CALLS: &str = "trace=write,writev,pwrite64,pwritev,sendto,sendmsg,fdatasync,fsync,sync_file_range";

#[test]
fn a_turn_and_an_answer_are_synced_before_they_are_acknowledged() {
    if Part::Syscalls.is_left_out() {
        return;
    }
    strace::check();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace");
    let output = output.to_str().unwrap();
    let around = ["strace", "-f", "-y", "-s", "65536", "-e", CALLS, "-o", output];
    let mut host = Setup::with(&["lab"]).around(&around).start();
    let gated = json!([{"id": "call-with-a-marker", "tool": "gated_echo", "arguments": {"value": "first-marker"}}]);
    let turn = host.agent.submit("conversation-with-a-marker", gated);
    let answer = json!({"decision": "deny", "comment": "second-marker"});
    assert_eq!(host.approver.resolve(&suspension_of(&turn), answer).ok(200)["ok"], true);
    stop(&mut host, output);

    let trace = fs::read_to_string(output).unwrap();
    let calls: Vec<&str> = trace.lines().collect();
    synced(&calls, "first-marker", "HTTP/1.1 201 Created");
    synced(&calls, "second-marker", r#"{\"ok\":true,\"replayed\":false"#);
}

/// Checks that a sync of the store's file succeeded between the write of the record and the first response with this
/// text. The sync must begin after the last write to the file.
fn synced(calls: &[&str], record: &str, response: &str) {
    let is_write = |line: &str| ["write(", "pwrite64(", "writev(", "pwritev("].iter().any(|name| line.contains(name));
    let to_store = |line: &str| is_write(line) && line.contains("/sled/db>");
    let written = calls.iter().position(|line| to_store(line) && line.contains(record));
    let written = written.unwrap_or_else(|| panic!("the record with {record} was not written to the store's file"));
    let to_socket = |line: &str| line.contains("<TCP") || line.contains("<socket:");
    let sent = calls.iter().position(|line| to_socket(line) && line.contains(response));
    let sent = sent.unwrap_or_else(|| panic!("no response with {response} was sent"));
    assert!(written < sent, "{record} was acknowledged before it was written");
    let mut durable = false;
    let mut syncing = None;
    for line in &calls[written..sent] {
        let process = line.split_whitespace().next();
        if to_store(line) {
            (durable, syncing) = (false, None);
        } else if line.contains("fdatasync(") && line.contains("/sled/db>") {
            // If another thread ran during a system call, it has two lines, and the second has the result.
            (durable, syncing) = (line.ends_with("= 0"), process);
        } else if line.contains("<... fdatasync resumed>") && syncing == process {
            durable = line.ends_with("= 0");
        }
    }
    assert!(durable, "{record} was acknowledged without a sync:\n{}", calls[written..=sent].join("\n"));
}

/// Ends the traced host. Its tracer ends with it.
fn stop(host: &mut Host, trace: &str) {
    let trace = fs::read_to_string(trace).unwrap();
    let process = trace.split_whitespace().next().expect("each line begins with a process");
    let killed = Command::new("kill").args(["-KILL", process]).status().unwrap();
    assert!(killed.success());
    host.wait();
}
