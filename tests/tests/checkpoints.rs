//! Signed checkpoints of the real host: it writes them by itself, also for removals after which it was killed.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use serde_json::json;
use toolgate_tests::host::{Host, Setup};
use toolgate_tests::http::path;

const RETENTION: &str = "[retention]\nturns_bytes = 1\nturns_bytes_minutes = 0\ninterval_ms = 100";

/// Reads until the answer has this status.
fn until(host: &Host, path: &str, status: u16) {
    host.admin.until(path, |answer| (answer.status == status).then_some(()));
}

fn verified(host: &Host, words: &[&str], file: &Path, key: &str) {
    let words = [&["audit", "verify", "--checkpoint", file.to_str().unwrap(), "--key", key], words].concat();
    let said = host.cli(None, &words);
    assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    assert!(said.out.contains("  1 turn removed, positions "), "{}", said.out);
}

#[test]
fn removal_before_a_kill_is_signed_at_the_next_start() {
    let mut host = Setup::with(&["textkit"]).tables(RETENTION).start();
    let status = host.admin.get("/v1/status").ok(200);
    let key = status["audit_key"].as_str().unwrap();
    host.admin.get("/v1/audit/checkpoint").problem(404, "not-found");
    let turn = host.agent.call("c", "text_stats", json!({"text": "to be"}));
    until(&host, &path(&turn), 410);
    host.kill();
    // The removal is on disk. Its checkpoint may be, if the kill came late.
    let folder = host.data().join("checkpoints");
    let _ = fs::remove_dir_all(&folder);

    // The next host removes nothing, so nothing but its start makes a checkpoint.
    let config = host.folder().join("toolgate.toml");
    fs::write(&config, fs::read_to_string(&config).unwrap().replace(RETENTION, "")).unwrap();
    host.start();
    until(&host, "/v1/audit/checkpoint", 200);
    assert_eq!(host.admin.get("/v1/status").ok(200)["audit_key"], key, "the key is that of the first start");
    let said = host.cli(None, &["audit", "checkpoint"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let kept = host.folder().join("kept.json");
    fs::write(&kept, said.out).unwrap();
    verified(&host, &["--url", &host.admin.url()], &kept, key);

    // A backup has the checkpoint and not the key.
    let (backup, restored) = (host.folder().join("host.backup"), host.folder().join("restored"));
    let [backup, to] = [&backup, &restored].map(|path| path.to_str().unwrap());
    assert_eq!(host.cli(None, &["backup", backup]).code, 0);
    assert_eq!(host.cli(None, &["restore", backup, to]).code, 0);
    let names = |folder: &Path| fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!((names(&restored.join("checkpoints")), names(&folder).len()), (names(&folder), 1));
    assert!(host.data().join("audit-key").exists() && !restored.join("audit-key").exists());
    host.kill();
    for data in [host.data(), restored.clone()] {
        verified(&host, &["--data", data.to_str().unwrap()], &kept, key);
    }

    // Nothing was removed since, so a start writes no other one.
    host.start();
    host.kill();
    assert_eq!(names(&folder).len(), 1);
}
