//! Tools in every language: from nothing to a call, and all of them in one turn.
//!
//! The toolchains are those that the part `languages` of `cargo xtask test` installed, and the components of the examples those
//! that it built.

#![expect(clippy::unwrap_used, reason = "what a test is made of fails by panicking, as a test does")]

#[path = "languages/developing.rs"]
mod developing;
#[path = "languages/examples.rs"]
mod examples;
#[path = "languages/reaching.rs"]
mod reaching;
#[path = "languages/skeletons.rs"]
mod skeletons;
#[path = "languages/stopping.rs"]
mod stopping;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use toolgate_tests::host::{Host, say};

/// The variable by which `cargo xtask test --without languages` says that there are no toolchains.
const WITHOUT: &str = "TOOLGATE_WITHOUT";

/// Whether these tests are left out, which is said.
#[expect(clippy::disallowed_methods, reason = "the one thing that is said to these tests from outside")]
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

/// The binary in the host's folder, with the toolchains that are there.
fn toolgate(host: &Host, words: &[&str]) -> Output {
    let mut command = host.command(None, words);
    command.env("TOOLGATE_CACHE", root().join("target/toolchains"));
    // Kept between runs, so that dependencies are compiled once.
    command.env("CARGO_TARGET_DIR", root().join("plugins/target/new"));
    command.stdin(Stdio::null()).output().unwrap()
}

/// What it printed, if it went well.
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
