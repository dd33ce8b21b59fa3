//! Runs the benchmarks of `bench/`, optimised as a release is.

use anyhow::Result;

use crate::workspace::Invocation;
use crate::{build, languages};

/// Runs all of them, or those that are named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    build::example_plugins()?;
    if names.is_empty() || names.iter().any(|name| name == "languages") {
        build::host()?;
        languages::build()?;
    }
    let command = Invocation::new("cargo run --locked --release -p toolgate-bench --");
    names.iter().fold(command, |command, name| command.word(name)).run()
}
