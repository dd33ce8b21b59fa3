//! Runs the test of losses of power with more contents of the disk than `cargo xtask test`, and with another seed.

use std::hash::{BuildHasher as _, RandomState};

use anyhow::Result;

use crate::console;
use crate::setup;
use crate::workspace::Invocation;

/// Tries this many contents. The same seed makes the same choices, but each run records another load.
pub(crate) fn run(contents: u32, seed: Option<u64>) -> Result<()> {
    setup::strace()?;
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(contents));
    console::line(&format!("{contents} contents, seed {seed}"));
    Invocation::new("cargo test --locked --workspace --test power_loss -- --nocapture")
        .variable("TOOLGATE_POWER_LOSS", format!("{contents} {seed}"))
        .run()
}
