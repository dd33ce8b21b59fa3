//! Runs the hostile suite against a host built as the tests build it, and publishes what became of each attack. The suite
//! itself is `tests/hostile`, and what runs it an example of that package.

use anyhow::Result;

use crate::workspace::{Invocation, binary};
use crate::{build, setup};

/// Runs all of it, or what the words name.
pub(crate) fn run(words: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    // The whole workspace with its examples, so that the features of dependencies are those of the tests, and nothing is
    // built twice.
    Invocation::new("cargo build --locked --workspace --bins --examples").run()?;
    let suite = binary("isolation")?;
    let suite = suite.with_file_name("examples").join(suite.file_name().unwrap_or_default());
    words.iter().fold(Invocation::new("").program(&suite), |command, word| command.word(word)).run()
}
