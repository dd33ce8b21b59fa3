//! A host whose disk does not answer. `host/store/tests/laws/slow_disk.rs` explains the named pipes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use store::StoreSettings;

use crate::world::TestServer;

/// When a host that does not go on fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

async fn until(world: &TestServer, path: &str, by: &str, code: &str) -> String {
    let reached = async {
        loop {
            let reply = world.get(by, path).await;
            if reply.code() == code {
                return reply.text;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn stuck_disk_is_reported_until_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let settings = StoreSettings { disk_deadline: Duration::from_millis(500), ..StoreSettings::default() };
    let world = TestServer::with_store(Arc::new(store::open(folder.path(), &settings).unwrap()));
    let text = "x".repeat(200 << 10);
    let body = format!(r#"{{"calls":[{{"id":"1","tool":"echo","arguments":{{"s":"{text}"}}}}]}}"#);
    let first = world.submit("?wait_ms=60000", &body).await;
    let turn = format!("/v1/conversations/c/turns/{}", first.at("/turn"));
    until(&world, &turn, "alice", "200").await;
    let records: Vec<PathBuf> =
        fs::read_dir(folder.path().join("blobs")).unwrap().map(|record| record.unwrap().path()).collect();
    for record in &records {
        fs::rename(record, record.with_extension("kept")).unwrap();
        assert!(Command::new("mkfifo").arg(record).status().unwrap().success());
    }

    let problem = until(&world, &turn, "alice", "503 store-failed").await;
    assert!(problem.contains("does not answer in time"), "{problem}");
    let problem = until(&world, "/healthz", "", "503 store-failed").await;
    assert!(problem.contains("does not answer in time"), "{problem}");
    let metrics = world.get("root", "/metrics").await.text;
    let timed_out = metrics.lines().find_map(|line| line.strip_prefix("toolgate_store_reads_timed_out_total "));
    assert!(timed_out.is_some_and(|count| count != "0"), "{metrics}");

    // The disk answers. A pipe that a read waits for can be opened; another one is not waited for.
    for record in &records {
        let waiting = record.with_extension("waiting");
        fs::rename(record, &waiting).unwrap();
        fs::rename(record.with_extension("kept"), record).unwrap();
        std::thread::spawn(move || drop(fs::OpenOptions::new().write(true).open(waiting)));
    }
    until(&world, "/healthz", "", "200").await;
    until(&world, &turn, "alice", "200").await;
}
