//! Runs the benchmarks of `bench/`, optimised as a release is.

use anyhow::Result;

use crate::build;
use crate::workspace::Invocation;

/// Runs all of them, or those that are named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    build::example_plugins()?;
    let command = Invocation::new("cargo run --locked --release -p toolgate-bench --");
    names.iter().fold(command, |command, name| command.word(name)).run()
}
