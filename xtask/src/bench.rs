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
    if names.is_empty() || names.iter().any(|name| name == "languages") {
        languages::build(&release_binary("toolgate")?)?;
    }
    let command = Invocation::new("cargo run --locked --release -p toolgate-bench --");
    names.iter().fold(command, |command, name| command.word(name)).run()
}
