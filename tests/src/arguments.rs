//! Arguments and exit codes of the programs that `cargo xtask` starts.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

/// The seed if none is given.
const SEED: u64 = 1;

/// The exit code of such a program. Prints the error, if there is one.
#[expect(clippy::disallowed_macros, reason = "these programs print reports")]
#[must_use]
pub fn exit_code(ended: Result<()>) -> ExitCode {
    let Err(error) = ended else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

/// The arguments that nobody has read yet.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// The arguments of this process.
    #[must_use]
    pub fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    /// The number after this option, or the default.
    ///
    /// # Errors
    /// When it is not a number.
    pub fn number(&mut self, option: &str, default: u64) -> Result<u64> {
        let Some(at) = self.0.iter().position(|word| word == option) else { return Ok(default) };
        let value = self.0.get(at + 1).with_context(|| format!("{option} needs a number"))?;
        let number = value.parse().with_context(|| format!("{option} needs a number, not {value:?}"))?;
        self.0.drain(at..at + 2);
        Ok(number)
    }

    /// The number after `--seed`.
    ///
    /// # Errors
    /// When it is not a number.
    pub fn seed(&mut self) -> Result<u64> {
        self.number("--seed", SEED)
    }

    /// Checks that all were read.
    ///
    /// # Errors
    /// When one is left.
    pub fn end(self) -> Result<()> {
        match self.0.first() {
            None => Ok(()),
            Some(word) => bail!("the argument {word:?} is not expected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_numbers_and_defaults() {
        let of = |line: &str| Arguments(line.split_whitespace().map(str::to_owned).collect());
        let mut arguments = of("--seed 7 --turns 5");
        assert_eq!((arguments.number("--turns", 1).ok(), arguments.seed().ok()), (Some(5), Some(7)));
        assert!(arguments.end().is_ok());
        assert_eq!(of("").seed().ok(), Some(SEED));
        for (line, mistake) in [("--seed", "--seed needs a number"), ("--seed x", "--seed needs a number, not \"x\"")] {
            assert_eq!(of(line).seed().expect_err(line).to_string(), mistake);
        }
        assert!(of("--seed 7 more").end().is_err());
    }
}
