//! Runs the hostile suite against a host in the profile of the tests, and publishes the outcome of each attack. The suite is
//! `tests/hostile`, and an example of that package runs it.

use anyhow::Result;

use crate::workspace::{Invocation, binary};
use crate::{build, setup};

/// Runs all of it, or the named classes and cases.
pub(crate) fn run(words: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    // Builds the whole workspace with its examples. Dependencies then have the same features as in the tests, and are not built
    // twice.
    Invocation::new("cargo build --locked --workspace --bins --examples").run()?;
    let suite = binary("isolation")?;
    let suite = suite.with_file_name("examples").join(suite.file_name().unwrap_or_default());
    words.iter().fold(Invocation::new("").program(&suite), |command, word| command.word(word)).run()
}
