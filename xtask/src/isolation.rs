//! Runs the hostile suite against a host built as the tests build it, and publishes what became of each attack. The suite
//! itself is `tests/hostile`, and what runs it an example of that package.

use anyhow::Result;

use crate::workspace::Invocation;
use crate::{build, setup};

/// Runs all of it, or what the words name.
pub(crate) fn run(words: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    // The whole workspace, so that the features of dependencies are those of the tests, and nothing is built twice.
    Invocation::new("cargo build --locked --workspace --bins").run()?;
    let command = Invocation::new("cargo run --locked --workspace --example isolation --");
    words.iter().fold(command, |command, word| command.word(word)).run()
}
