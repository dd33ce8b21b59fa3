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
#[cfg(target_os = "linux")]
#[path = "languages/sharing.rs"]
mod sharing;
#[path = "languages/skeletons.rs"]
mod skeletons;
#[path = "languages/stopping.rs"]
mod stopping;
#[path = "languages/verifying.rs"]
mod verifying;
#[path = "languages/workflows.rs"]
mod workflows;

use std::fs;

use toolgate_tests::dev::{done, root, toolgate};
use toolgate_tests::host::say;

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
