//! A host whose disk is full or almost full. The test of a full one simulates it by a limit on the size of files, as
//! `host/store/tests/laws/full_disk.rs` does.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use dispatch::Bounds;

use crate::world::{Reply, TestServer};

/// The file that tells the test that it is the child, in its working folder.
const CHILD: &str = "under-a-limit";

/// When a host that does not go on fails the test. The store tries again ten times a second.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn full_disk_is_reported_until_there_is_space() {
    if Path::new(CHILD).exists() {
        return fill_up().await;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("full-disk");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(CHILD), "").unwrap();
    let child = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 20480; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "full_disk::full_disk_is_reported_until_there_is_space", "--nocapture"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(child.status.success(), "{}\n{}", text(&child.stdout), text(&child.stderr));
}

#[tokio::test]
async fn low_disk_refuses_new_turns_and_nothing_else() {
    let world = TestServer::new();
    let body = |id: &str, tool: &str| format!(r#"{{"calls":[{{"id":"{id}","tool":"{tool}","arguments":{{}}}}]}}"#);
    let [first, second] = [world.submit("", &body("1", "pay")).await, world.submit("", &body("2", "pay")).await];
    let turn = |reply: &Reply| format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
    let suspension = first.at("/calls/0/suspension");
    let reserve = Bounds::default().disk_reserve;
    world.disk.leave(reserve);
    assert_eq!(world.get("", "/healthz").await.at("/status"), "ok");
    assert_eq!(world.submit("", &body("3", "pay")).await.code(), "201");

    world.disk.leave(reserve - 1);
    for refused in [
        world.submit("", &body("4", "pay")).await,
        world.submit("", &body("4", "echo")).await,
        world.submit("", r#"{"ephemeral":true,"calls":[{"id":"5","tool":"echo","arguments":{}}]}"#).await,
    ] {
        assert_eq!(refused.code(), "507 no-space");
        assert!(refused.at("/detail").contains("almost full"), "{}", refused.text);
    }
    assert_eq!(world.submit("", &body("1", "pay")).await.code(), "200", "a recorded turn is read");
    assert_eq!(world.resolve("bob", &suspension, r#"{"decision":"approve"}"#).await.code(), "200");
    assert_eq!(world.post("alice", &format!("{}/cancel", turn(&second)), "").await.code(), "200");
    assert_eq!(world.get("alice", &turn(&first)).await.code(), "200");
    let health = world.get("", "/healthz").await;
    assert_eq!((health.code().as_str(), health.at("/status").as_str()), ("200", "disk-low"));
    assert_eq!(world.get("root", "/v1/status").await.at("/store"), "disk-low");
    let metrics = world.get("root", "/metrics").await.text;
    for line in ["toolgate_disk_low 1".to_owned(), format!("toolgate_disk_free_bytes {}", reserve - 1)] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }

    world.disk.leave(reserve);
    assert_eq!(world.submit("", &body("4", "pay")).await.code(), "201");
    assert!(world.get("root", "/metrics").await.text.contains("toolgate_disk_low 0"));
}

async fn fill_up() {
    let store = store::open("store", &store::StoreSettings::default()).unwrap();
    let world = TestServer::with_store(Arc::new(store));
    let body = |id: usize| {
        let text = "x".repeat(50 << 10);
        format!(r#"{{"calls":[{{"id":"{id}","tool":"echo","arguments":{{"s":"{text}"}}}}]}}"#)
    };
    let first = world.submit("?wait_ms=60000", &body(0)).await;
    let turn = format!("/v1/conversations/c/turns/{}", first.at("/turn"));
    assert_eq!(world.get("", "/healthz").await.code(), "200");

    let mut id = 0;
    let refused = loop {
        id += 1;
        let reply = world.submit("", &body(id)).await;
        if reply.status != 202 && reply.status != 200 && reply.status != 201 {
            break reply;
        }
    };
    assert_eq!(refused.code(), "507 no-space");
    assert!(refused.at("/detail").contains("as soon as there is space"), "{}", refused.text);
    assert_eq!(world.get("", "/healthz").await.code(), "507 no-space");
    assert_eq!(world.get("root", "/v1/status").await.at("/store"), "full");
    for (by, path) in [("alice", turn.as_str()), ("alice", "/v1/conversations"), ("bob", "/v1/pending")] {
        // sled cannot read a page whose split it has not finished.
        let read = world.get(by, path).await.code();
        assert!(read == "200" || read == "507 no-space", "{path}: {read}");
    }
    assert!(world.get("root", "/metrics").await.text.contains("toolgate_store_failed 1"));

    let this = std::process::id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &this, "--fsize=unlimited:"]).status().unwrap().success());
    let goes_on = async {
        while world.submit("", &body(id)).await.status == 507 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, goes_on).await.unwrap();
    for (by, path) in [("", "/healthz"), ("alice", turn.as_str()), ("bob", "/v1/pending")] {
        assert_eq!(world.get(by, path).await.code(), "200", "{path}");
    }
    assert!(world.get("root", "/metrics").await.text.contains("toolgate_store_failed 0"));
}
