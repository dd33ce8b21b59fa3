//! A host that is killed while an upstream call runs.

use serde_json::Value;
use toolgate_tests::host::Host;

use super::{note, started};

/// Waits until the server has got the call.
fn begun(host: &Host, tool: &str) {
    while !note(host, "called").contains(tool) {
        std::thread::yield_now();
    }
}

/// A call whose host is killed while it runs, after the restart.
fn interrupted(host: &mut Host, tool: &str) -> Value {
    let turn = super::submit(host, tool);
    begun(host, tool);
    host.restart();
    std::fs::write(host.folder().join("fake/go"), "").unwrap();
    host.agent.settled(&turn)
}

#[test]
fn interrupted_call_is_in_doubt_and_not_repeated() {
    // The server calls `slow` not idempotent; the operator has not said it of `slow_repeatable`.
    for (tool, keys) in [("slow", "idempotent = true\n"), ("slow_repeatable", "")] {
        let mut host = started(keys);
        let turn = interrupted(&mut host, tool);
        assert_eq!(turn["calls"][0]["outcome"], "in_doubt", "{tool}: {turn}");
        assert_eq!(note(&host, "called").lines().count(), 1, "{tool}");
    }
}

#[test]
fn idempotent_call_is_repeated_with_its_key() {
    let mut host = started("tools.slow_repeatable.idempotent = true\n");
    let turn = interrupted(&mut host, "slow_repeatable");
    assert_eq!(turn["calls"][0]["outcome"], "ok", "{turn}");
    assert_eq!(note(&host, "called").lines().count(), 2);
}

#[test]
fn killed_host_leaves_no_process() {
    let mut host = started("");
    let _turn = super::submit(&host, "hang");
    begun(&host, "hang");
    assert!(!processes(&host).is_empty());
    host.kill();
    while !processes(&host).is_empty() {
        std::thread::yield_now();
    }
}

/// The processes that run in the server's folder.
fn processes(host: &Host) -> Vec<String> {
    let folder = host.folder().join("fake").canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let of_server = all.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|at| at == folder));
    of_server.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
