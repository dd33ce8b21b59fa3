//! Runs the benchmarks of `bench/`, optimised as a release is.

use anyhow::Result;

use crate::workspace::Invocation;
use crate::{build, languages, setup};

/// Runs all of them, or those that are named.
pub(crate) fn run(names: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    if names.is_empty() || names.iter().any(|name| name == "languages") {
        build::host()?;
        languages::build()?;
    }
    // The binary too, which some of them start; in one build, so that nothing is compiled for two sets of features.
    Invocation::new("cargo build --locked --release -p toolgate-cli -p toolgate-bench").run()?;
    let command = Invocation::new("cargo run --locked --release -p toolgate-bench --");
    names.iter().fold(command, |command, name| command.word(name)).run()
}
