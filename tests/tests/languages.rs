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
use toolgate_tests::parts::Part;

/// Whether the part `languages` is left out. Prints a line if so.
fn left_out() -> bool {
    Part::Languages.is_left_out()
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
