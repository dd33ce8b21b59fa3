//! That what is acknowledged is on the disk, as the kernel sees it: a child process commits under `strace`, and between
//! the last write to sled's file and each acknowledgement there is an `fdatasync` of that file that succeeded. Before
//! the first, the folders that hold the names of the new store's own were synced.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use dispatch::ports::Log as _;

use crate::given::commit;
use crate::machine::is_left_out;
use crate::store::{StoreSettings, open};

const COMMITS: u32 = 20;

/// A file of this name in its working folder tells the test that it is the child.
const CHILD: &str = "this-is-the-traced-child";

/// The work of the child.
fn commit_and_tell() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let store = open("new/store", &StoreSettings::default()).unwrap();
    for number in 0..COMMITS {
        runtime.block_on(store.append(&commit(1, number, 1))).unwrap();
        std::io::stdout().write_all(format!("acknowledged {number}\n").as_bytes()).unwrap();
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn an_acknowledged_commit_was_synced() {
    if Path::new(CHILD).exists() {
        return commit_and_tell();
    }
    if is_left_out("syscalls") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = trace(folder.path());
    let first = trace.lines().position(|line| line.contains("\"acknowledged ")).unwrap();
    let until_then: Vec<_> = trace.lines().take(first).collect();
    let above = std::fs::canonicalize(folder.path()).unwrap();
    for folder in [above.join("new/store"), above.join("new"), above] {
        let synced = |line: &&str| line.contains(" fsync(") && line.contains(&format!("<{}>", folder.display()));
        assert!(until_then.iter().any(synced), "{} was not synced\n{trace}", folder.display());
    }
    let (mut acknowledged, mut syncs, mut syncing, mut unsynced) = (0, 0, false, false);
    for line in trace.lines() {
        let of_file = line.contains("/sled/db>");
        if line.contains("pwrite64(") && of_file {
            unsynced = true;
        } else if line.contains("fdatasync(") && of_file {
            syncing = true;
        }
        // A call during which another thread runs is shown in two lines; the second has the result.
        if syncing && line.contains("fdatasync") && line.ends_with("= 0") {
            (syncing, unsynced) = (false, false);
            syncs += 1;
        }
        if line.contains("\"acknowledged ") {
            acknowledged += 1;
            assert!(!unsynced, "written, acknowledged, and not synced in between: {line}\n{trace}");
            assert!(syncs >= acknowledged, "acknowledged without a sync of its own: {line}\n{trace}");
        }
    }
    assert_eq!(acknowledged, COMMITS);
}

/// The system calls of the child.
fn trace(folder: &Path) -> String {
    let output = folder.join("trace");
    std::fs::write(folder.join(CHILD), "").unwrap();
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=write,pwrite64,fsync,fdatasync", "-o"])
        .arg(&output)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "system_calls::an_acknowledged_commit_was_synced", "--nocapture"])
        .current_dir(folder)
        .output();
    let trace = std::fs::read_to_string(output).unwrap_or_default();
    let Some(traced) = traced.ok().filter(|_| trace.contains("acknowledged")) else {
        panic!(
            "strace is missing or may not trace here: run `apt-get install strace`, or leave this law out with \
             `cargo xtask test --without syscalls`"
        );
    };
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stdout));
    trace
}
