//! A bounded run of every fuzz target. Only our crates are instrumented. Profile and features are those of the tests, so that the
//! engine is not compiled again.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::console;
use crate::workspace::{Invocation, Running, root};

/// The limits of each target: seconds, and inputs.
const LIMITS: (u32, u32) = (10, 5_000_000);

/// The number of targets that run at once.
const AT_ONCE: usize = 2;

/// Builds the targets and runs them.
pub(crate) fn run() -> Result<()> {
    let targets = targets()?;
    let programs = targets.iter().fold(cargo().word("--no-run"), |build, target| build.word("--bin").word(target));
    console::aside(&format!("$ {programs}"));
    programs.run().context("libFuzzer needs a C++ compiler (`apt-get install g++`)")?;
    targets.chunks(AT_ONCE).try_for_each(|targets| {
        let running = targets.iter().map(|target| Ok((target, start(target)?))).collect::<Result<Vec<_>>>()?;
        // All of them end before a failure does.
        let ended: Vec<_> = running.into_iter().map(|(target, running)| finish(target, running)).collect();
        ended.into_iter().collect()
    })
}

/// Builds the targets as tests, so that dependencies have the features that the tests compiled them with.
fn cargo() -> Invocation {
    Invocation::new("cargo test --quiet --locked --workspace --features toolgate-fuzz/libfuzzer")
        .variable("RUSTC_WORKSPACE_WRAPPER", root().join("fuzz/instrumented").display().to_string())
}

/// The names of the targets' programs.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    let mut targets: Vec<String> = names.collect();
    targets.sort();
    if targets.is_empty() {
        bail!("{} holds no fuzz target", folder.display());
    }
    Ok(targets)
}

fn start(target: &str) -> Result<Running> {
    let (seconds, inputs) = LIMITS;
    // Every run starts with the same inputs and the same seed, so new inputs are not kept.
    let (found, artifacts) = (root().join("target/fuzzed").join(target), root().join("fuzz/artifacts").join(target));
    let _ = fs::remove_dir_all(&found);
    for folder in [&found, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
    }
    // Cargo runs the target in the folder of its package.
    let mut run = cargo().word("--bin").word(target).word("--").word(&found.display().to_string());
    for inputs in ["seeds", "regressions"] {
        let inputs = format!("{inputs}/{target}");
        if root().join("fuzz").join(&inputs).is_dir() {
            run = run.word(&inputs);
        }
    }
    run = run
        .words(&format!("-max_total_time={seconds} -runs={inputs} -seed=1 -timeout=10 -rss_limit_mb=2048 -verbosity=0"))
        .words("-print_final_stats=1")
        .word(&format!("-artifact_prefix={}/", artifacts.display()));
    console::aside(&format!("$ {run}"));
    run.start(&format!("fuzzed/{target}.log"))
}

fn finish(target: &str, running: Running) -> Result<()> {
    running.wait().with_context(|| {
        format!(
            "the fuzz target `{target}` found a fault. Its input is in fuzz/artifacts/{target}; to repeat it alone, give its \
             path instead of the folders. Fix the fault and keep the input as fuzz/regressions/{target}/NAME, which \
             `cargo test --test replay` runs"
        )
    })
}
