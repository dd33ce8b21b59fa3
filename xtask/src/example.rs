//! Builds the host in the profile of the tests, and runs an example of the package `toolgate-tests` against it.

use anyhow::Result;

use crate::workspace::{Invocation, binary};
use crate::{build, setup};

/// Runs an example with these arguments.
pub(crate) fn run(name: &str, words: &[String]) -> Result<()> {
    setup::guest_target()?;
    build::guest_commands().try_for_each(|command| command.run())?;
    // Builds the whole workspace with its examples. Dependencies then have the same features as in the tests, and are not built
    // twice.
    Invocation::new("cargo build --locked --workspace --bins --examples").run()?;
    let example = binary(name)?;
    let example = example.with_file_name("examples").join(example.file_name().unwrap_or_default());
    words.iter().fold(Invocation::new("").program(&example), |command, word| command.word(word)).run()
}
