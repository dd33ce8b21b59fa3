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

/// The kibibytes that a file of the store may have: two segments of sled and a part of the third. With half a segment, five of
/// eighty disks were unreadable: sled cannot read a page that it has to split first, and all turns were below that page. With
/// this limit, it was one of 160.
const KIBIBYTES: usize = 17_408;

/// The disks that a test fills. The host must be able to read most of them.
const DISKS: usize = 3;

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
        .args(["-c", &format!("trap '' XFSZ; ulimit -S -f {KIBIBYTES}; exec \"$@\""), "bash"])
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

/// Fills disks. Most of them must let the host read the majority of the turns. Returns such a one.
async fn fill_up() -> Full {
    let mut readable = Vec::new();
    for disk in 0..DISKS {
        let full = Full::new(&format!("store-{disk}")).await;
        let reads = full.reads().await;
        if reads.iter().filter(|code| *code == "200").count() * 2 > reads.len() {
            readable.push(full);
        }
    }
    assert!(readable.len() * 2 > DISKS, "the host could read {} of {DISKS} full disks", readable.len());
    readable.swap_remove(0)
}

/// A host that filled its disk with turns.
struct Full {
    world: TestServer,
    folder: String,
    /// The paths of the turns that the host accepted.
    turns: Vec<String>,
}

impl Full {
    async fn new(folder: &str) -> Full {
        let store = store::open(folder, &store::StoreSettings::default()).unwrap();
        let world = TestServer::with_store(Arc::new(store));
        let first = world.submit("?wait_ms=60000", &large(0)).await;
        let path = |reply: &Reply| format!("/v1/conversations/c/turns/{}", reply.at("/turn"));
        let mut turns = vec![path(&first)];
        assert_eq!(world.get("", "/healthz").await.code(), "200");

        has_metrics(&world, ["toolgate_store_failed 0", "toolgate_store_failures_total 0"]).await;
        let refused = loop {
            let reply = world.submit("", &large(turns.len())).await;
            if reply.status != 202 && reply.status != 200 && reply.status != 201 {
                break reply;
            }
            turns.push(path(&reply));
        };
        assert_eq!(refused.code(), "507 no-space");
        assert!(refused.at("/detail").contains("once there is space"), "{}", refused.text);
        for path in ["/healthz", "/readyz"] {
            assert_eq!(world.get("", path).await.code(), "507 no-space", "{path}");
        }
        assert_eq!(world.get("root", "/v1/status").await.at("/store"), "full");
        has_metrics(&world, ["toolgate_store_failed 1", "toolgate_store_failures_total 1"]).await;
        Full { world, folder: folder.to_owned(), turns }
    }

    /// Reads everything. Each read gives its value, or says why it cannot. Returns the codes of the reads of turns.
    async fn reads(&self) -> Vec<String> {
        let turns = self.turns.iter().map(|turn| ("alice", format!("{turn}?format=anthropic")));
        let lists = [("alice", "/v1/conversations"), ("bob", "/v1/pending")].map(|(by, path)| (by, path.to_owned()));
        let mut codes = Vec::new();
        for (by, path) in turns.chain(lists) {
            let read = self.world.get(by, &path).await;
            let says_so = read.code() == "507 no-space" && read.at("/detail").contains("Most reads go on");
            let given = matches!(&*read.code(), "200" | "409 not-settled");
            assert!(given || says_so, "{path}: {}", read.text);
            codes.push(read.code());
        }
        codes.truncate(self.turns.len());
        codes
    }
}

/// The database cannot be opened again, because its configuration is damaged.
async fn fail_for_good() {
    let Full { world, folder, turns } = fill_up().await;
    std::fs::write(format!("{folder}/sled/conf"), [7; 32]).unwrap();
    lift_the_limit();
    until_it_is(&world, "503 store-failed").await;
    let refused = [
        world.submit("", &large(turns.len())).await,
        world.get("alice", &turns[0]).await,
        world.get("bob", "/v1/pending").await,
    ];
    for refused in refused {
        assert_eq!(refused.code(), "503 store-failed");
        assert!(refused.at("/detail").contains("Restart the host"), "{}", refused.text);
    }
    assert_eq!(world.get("root", "/v1/status").await.at("/store"), "failed");
    has_metrics(&world, ["toolgate_store_failed 1", "toolgate_store_failures_total 2"]).await;
}

async fn recover() {
    let Full { world, turns, .. } = fill_up().await;
    lift_the_limit();
    until_it_is(&world, "200").await;
    assert_eq!(world.submit("", &large(turns.len())).await.status, 201);
    for (by, path) in [("", "/healthz"), ("alice", turns[0].as_str()), ("bob", "/v1/pending")] {
        assert_eq!(world.get(by, path).await.code(), "200", "{path}");
    }
    has_metrics(&world, ["toolgate_store_failed 0", "toolgate_store_failures_total 1"]).await;
}
