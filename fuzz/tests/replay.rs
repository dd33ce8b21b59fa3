//! Replays every seed and every input that once broke a target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toolgate_fuzz::TARGETS;

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind)
}

/// The names in a folder. Empty if the folder does not exist.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name != "README.md").collect()
}

#[test]
fn every_seed_and_regression_keeps_the_invariants() {
    for (name, target) in TARGETS {
        let seeds = names(&folder("seeds").join(name));
        assert!(seeds.len() >= 5, "{name} begins with {} seeds", seeds.len());
        for kind in ["seeds", "regressions"] {
            let inputs = folder(kind).join(name);
            for input in names(&inputs) {
                let bytes = fs::read(inputs.join(&input)).unwrap_or_else(|error| panic!("{input}: {error}"));
                target(&bytes);
                // A fuzzer's first changes: the input truncated, and with one byte changed.
                for at in 0..bytes.len().min(200) {
                    target(&bytes[..at]);
                    let mut changed = bytes.clone();
                    changed[at] ^= 0x5a;
                    target(&changed);
                }
            }
        }
    }
}

#[test]
fn every_input_has_a_target_and_every_target_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names(&folder("seeds")), targets);
    assert!(names(&folder("regressions")).is_subset(&targets));
    let programs: BTreeSet<String> = names(&folder("fuzz_targets"));
    assert_eq!(programs, targets.iter().map(|name| format!("{name}.rs")).collect());
}
