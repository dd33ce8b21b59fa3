//! Why a call has no result.

use std::error::Error;

/// Why a call has no result. The text is for the model: what was wrong, and what it can do instead.
///
/// With `?`, every [`Error`] becomes [`Failure::Failed`]. So `Failure` itself is not an `Error`: the two conversions
/// would conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The arguments fit the schema but make no sense.
    InvalidArguments(String),
    /// The attempt failed. Repeating it the same way will not help.
    Failed(String),
    /// Something that the tool needs is unavailable. Trying again later may help.
    Unavailable(String),
}

impl Failure {
    /// The arguments fit the schema but make no sense.
    pub fn invalid_arguments(why: impl Into<String>) -> Self {
        Self::InvalidArguments(why.into())
    }

    /// The attempt failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    /// Something that the tool needs is unavailable.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }
}

impl<E: Error> From<E> for Failure {
    /// The error and its sources, joined by colons.
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::Failed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_becomes_a_failure_under_the_question_mark() {
        fn parse(text: &str) -> Result<u8, Failure> {
            Ok(text.parse::<u8>()?)
        }
        assert_eq!(parse("7"), Ok(7));
        assert_eq!(parse("x"), Err(Failure::failed("invalid digit found in string")));
    }
}
