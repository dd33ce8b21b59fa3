//! A loss of power loses nothing that was acknowledged. The store runs under load while `strace` records its writes and
//! syncs, through several starts and kills. From the record come many contents that the disk can have after a loss of
//! power. Each must open, have everything that was acknowledged before, and have a chain that verifies.
//!
//! `cargo xtask power-loss` tries more contents, with another seed.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

#[path = "power_loss/load.rs"]
mod load;
#[path = "power_loss/verdict.rs"]
mod verdict;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use store::StoreSettings;
use toolgate_tests::host::say;
use toolgate_tests::parts::Part;
use toolgate_tests::power_loss::{Recording, traced};
use toolgate_tests::random::Random;
use toolgate_tests::strace;

/// The number of contents that are tried, unless [`MORE`] says another.
const CONTENTS: usize = 400;
const SEED: u64 = 0x7001_6a7e;

/// The variable with the number of contents and the seed, such as `20000 7`.
const MORE: &str = "TOOLGATE_POWER_LOSS";

/// How often the store is opened for the record.
const LIVES: u32 = 4;

/// A file of this name in its working folder tells the test that it is the recorded program. Its content is the number
/// of times that the store was opened before.
const CHILD: &str = "recorded";

/// Small segments: the log soon fills some and writes over others.
const SETTINGS: StoreSettings = StoreSettings {
    cache_bytes: 1 << 20,
    migrates: true,
    disk_deadline: Duration::from_secs(60),
    segment_bytes: 128 << 10,
    reading_runtime: None,
};

#[test]
fn power_loss_loses_nothing_acknowledged() {
    if let Ok(life) = fs::read_to_string(CHILD) {
        return load::run(Path::new("data/store"), life.parse().unwrap());
    }
    if Part::Syscalls.is_left_out() {
        return;
    }
    strace::check();
    let folder = tempfile::tempdir().unwrap();
    let recording = record(folder.path());
    let (contents, seed) = more().unwrap_or((CONTENTS, SEED));
    let (next, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures: Vec<String> = thread::scope(|threads| {
        let attempts = || {
            let mut failures = Vec::new();
            while failures.is_empty() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= contents {
                    break;
                }
                match attempt(&recording, seed, number) {
                    Ok(some_lost) => drop(lost.fetch_add(some_lost.into(), Ordering::Relaxed)),
                    Err(failure) => failures.push(failure),
                }
            }
            failures
        };
        let workers: Vec<_> = (0..2).map(|_| threads.spawn(attempts)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "seed {seed:#x}: {}", failures.join("\n\n"));
    let lost = lost.into_inner();
    assert!(lost > contents / 4, "only {lost} of {contents} contents lacked something that was written");
    say(&format!(
        "{contents} contents of the disk (seed {seed:#x}), {lost} of them without something that was written; {} \
         acknowledgements",
        recording.acknowledged_before(usize::MAX).count()
    ));
}

/// Runs the load several times in the same folder.
fn record(folder: &Path) -> Recording {
    let above = fs::canonicalize(folder).unwrap();
    fs::create_dir(above.join("data")).unwrap();
    let mut recording = Recording::of(&above.join("data"));
    for life in 0..LIVES {
        fs::write(above.join(CHILD), life.to_string()).unwrap();
        let output = above.join("trace");
        let child = traced(&output)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "power_loss_loses_nothing_acknowledged", "--nocapture"])
            .current_dir(&above)
            .output()
            .unwrap();
        let killed = child.status.signal().is_some();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(killed, load::is_killed(life), "{}\n{}", text(&child.stdout), text(&child.stderr));
        recording.add(&fs::read_to_string(output).unwrap());
    }
    recording
}

/// Opens one content. Returns whether it lacks something that was written.
fn attempt(recording: &Recording, seed: u64, number: usize) -> Result<bool, String> {
    let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let moments = if random.once_in(4) { recording.after_acknowledgements() } else { recording.after_changes() };
    let moment = *random.pick(&moments);
    let content = recording.after_loss(moment, &mut random);
    let folder = memory_folder().expect("a folder");
    content.write_to(folder.path()).unwrap();
    let acknowledged: Vec<_> = recording.acknowledged_before(moment).collect();
    verdict::check(&folder.path().join("store"), &acknowledged).map_err(|problem| {
        let (kept, files) = (folder.keep(), content.listing());
        let (lost, unsynced) = (content.lost, content.unsynced);
        // Opening has changed the files.
        let before = kept.with_extension("before");
        let written = fs::create_dir(&before).and_then(|()| content.write_to(&before));
        format!(
            "content {number}, moment {moment} of {}: {problem}\n{lost} of {unsynced} unsynced writes were lost; the \
             content is in {} ({written:?}): {files}\n{}",
            recording.moments(),
            before.display(),
            recording.last_before(moment, 60)
        )
    })?;
    Ok(content.lost > 0)
}

/// A folder in memory where there is one: syncs take long on a disk, and none of them matters here.
fn memory_folder() -> std::io::Result<tempfile::TempDir> {
    let memory = PathBuf::from("/dev/shm");
    tempfile::tempdir_in(&memory).or_else(|_| tempfile::tempdir())
}

#[expect(clippy::disallowed_methods, reason = "the only input of this test from outside")]
fn more() -> Option<(usize, u64)> {
    let text = std::env::var(MORE).ok()?;
    let (contents, seed) = text.split_once(' ').expect("a number of contents and a seed");
    Some((contents.parse().expect("a number"), seed.parse().expect("a seed")))
}
