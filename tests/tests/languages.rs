//! Tools in every language: from a new plugin to a call, and all languages in one turn.
//!
//! The part `languages` of `cargo xtask test` installs the toolchains and builds the examples.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "languages/developing.rs"]
mod developing;
#[path = "languages/durable.rs"]
mod durable;
#[path = "languages/examples.rs"]
mod examples;
#[path = "languages/reaching.rs"]
mod reaching;
#[path = "languages/skeletons.rs"]
mod skeletons;
#[path = "languages/stopping.rs"]
mod stopping;
#[path = "languages/verifying.rs"]
mod verifying;
#[path = "languages/workflows.rs"]
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use toolgate_tests::host::{Host, say};

/// The variable with which `cargo xtask test --without languages` disables these tests.
const WITHOUT: &str = "TOOLGATE_WITHOUT";

/// Whether these tests are disabled. Prints a line if so.
#[expect(clippy::disallowed_methods, reason = "the only input of these tests from outside")]
fn left_out() -> bool {
    let left_out = std::env::var(WITHOUT).is_ok_and(|parts| parts.split(',').any(|part| part == "languages"));
    if left_out {
        say("left out: TOOLGATE_WITHOUT names languages");
    }
    left_out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// A component that the part `languages` built.
fn built(name: &str) -> Vec<u8> {
    let path = root().join("plugins").join(name).join("build").join(format!("{name}.wasm"));
    fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{} cannot be read ({error}): run `toolgate build plugins/{name}`, or the part `languages`",
            path.display()
        )
    })
}

/// Runs the binary in the host's folder, with the installed toolchains.
fn toolgate(host: &Host, words: &[&str]) -> Output {
    let mut command = host.command(None, words);
    command.env("TOOLGATE_CACHE", root().join("target/toolchains"));
    // Kept between runs, so that dependencies are compiled once.
    command.env("CARGO_TARGET_DIR", root().join("plugins/target/new"));
    command.stdin(Stdio::null()).output().unwrap()
}

/// The output of a successful command.
#[track_caller]
fn done(host: &Host, words: &[&str]) -> String {
    let output = toolgate(host, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "toolgate {}: {said}\n(toolchains are installed by `cargo xtask test`; `--without languages` leaves this out)",
        words.join(" ")
    );
    String::from_utf8(output.stdout).unwrap()
}
