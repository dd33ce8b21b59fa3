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
        return recover().await;
    }
    under_a_limit("full_disk::full_disk_is_reported_until_there_is_space");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_store_is_reported_until_a_restart() {
    if Path::new(CHILD).exists() {
        return fail_for_good().await;
    }
    under_a_limit("full_disk::failed_store_is_reported_until_a_restart");
}

/// Runs a test again, in an empty folder and with a limit on the size of files.
fn under_a_limit(test: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test.replace("::", "-"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(CHILD), "").unwrap();
    let child = Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -S -f 20480; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
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

fn lift_the_limit() {
    let this = std::process::id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &this, "--fsize=unlimited:"]).status().unwrap().success());
}

async fn until_it_is(world: &TestServer, code: &str) {
    let reached = async {
        while world.get("", "/healthz").await.code() != code {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

async fn has_metrics(world: &TestServer, lines: [&str; 2]) {
    let metrics = world.get("root", "/metrics").await.text;
    for line in lines {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
}

fn large(id: usize) -> String {
    let text = "x".repeat(50 << 10);
    format!(r#"{{"calls":[{{"id":"{id}","tool":"echo","arguments":{{"s":"{text}"}}}}]}}"#)
}

/// Submits turns until the disk is full. Returns the path of the first turn, and the number of the refused one.
async fn fill_up() -> (TestServer, String, usize) {
    let store = store::open("store", &store::StoreSettings::default()).unwrap();
    let world = TestServer::with_store(Arc::new(store));
    let first = world.submit("?wait_ms=60000", &large(0)).await;
    let turn = format!("/v1/conversations/c/turns/{}", first.at("/turn"));
    assert_eq!(world.get("", "/healthz").await.code(), "200");

    has_metrics(&world, ["toolgate_store_failed 0", "toolgate_store_failures_total 0"]).await;
    let (mut id, mut turns) = (0, vec![turn.clone()]);
    let refused = loop {
        id += 1;
        let reply = world.submit("", &large(id)).await;
        if reply.status != 202 && reply.status != 200 && reply.status != 201 {
            break reply;
        }
        turns.push(format!("/v1/conversations/c/turns/{}", reply.at("/turn")));
    };
    assert_eq!(refused.code(), "507 no-space");
    assert!(refused.at("/detail").contains("once there is space"), "{}", refused.text);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.get("", path).await.code(), "507 no-space", "{path}");
    }
    assert_eq!(world.get("root", "/v1/status").await.at("/store"), "full");
    for (by, path) in [("alice", &*turn), ("alice", "/v1/conversations"), ("bob", "/v1/pending")] {
        let read = world.get(by, path).await;
        // sled cannot read a page whose split it has not finished. A law of the store reads what is on another page.
        let says_so = read.code() == "507 no-space" && read.at("/detail").contains("Most reads go on");
        assert!(read.code() == "200" || says_so, "{path}: {}", read.text);
    }
    // The few pages that have such a split have the minority of the turns. In this format, nothing else is read.
    let mut reads = Vec::new();
    for turn in &turns {
        reads.push(world.get("alice", &format!("{turn}?format=anthropic")).await.code());
    }
    let read = reads.iter().filter(|code| *code == "200").count();
    assert!(read * 2 > reads.len(), "{reads:?}");
    has_metrics(&world, ["toolgate_store_failed 1", "toolgate_store_failures_total 1"]).await;
    (world, turn, id)
}

/// The database cannot be opened again, because its configuration is damaged.
async fn fail_for_good() {
    let (world, turn, id) = fill_up().await;
    std::fs::write("store/sled/conf", [7; 32]).unwrap();
    lift_the_limit();
    until_it_is(&world, "503 store-failed").await;
    let refused =
        [world.submit("", &large(id)).await, world.get("alice", &turn).await, world.get("bob", "/v1/pending").await];
    for refused in refused {
        assert_eq!(refused.code(), "503 store-failed");
        assert!(refused.at("/detail").contains("Restart the host"), "{}", refused.text);
    }
    assert_eq!(world.get("root", "/v1/status").await.at("/store"), "failed");
    has_metrics(&world, ["toolgate_store_failed 1", "toolgate_store_failures_total 2"]).await;
}

async fn recover() {
    let (world, turn, id) = fill_up().await;
    lift_the_limit();
    until_it_is(&world, "200").await;
    assert_eq!(world.submit("", &large(id)).await.status, 201);
    for (by, path) in [("", "/healthz"), ("alice", turn.as_str()), ("bob", "/v1/pending")] {
        assert_eq!(world.get(by, path).await.code(), "200", "{path}");
    }
    has_metrics(&world, ["toolgate_store_failed 0", "toolgate_store_failures_total 1"]).await;
}
