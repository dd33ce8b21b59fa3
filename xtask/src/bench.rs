//! Runs the benchmarks of `bench/` in the release profile.

use anyhow::Result;

use crate::workspace::{Invocation, release_binary};
use crate::{build, languages, setup};

/// Runs all of them, or the named ones.
pub(crate) fn run(names: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    // Some benchmarks start the binary. One build compiles dependencies for one set of features.
    Invocation::new("cargo build --locked --release -p toolgate-cli -p toolgate-bench").run()?;
    if names.iter().all(|name| name.starts_with("--")) || names.iter().any(|name| name == "languages") {
        languages::build(&release_binary("toolgate")?)?;
    }
    // Not with `cargo run`, which would build the benchmarks alone, with another set of features.
    let command = Invocation::new("").program(&release_binary("toolgate-bench")?);
    names.iter().fold(command, |command, name| command.word(name)).run()
}
