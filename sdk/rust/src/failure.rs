//! Why a call has no result.

use std::error::Error;

/// Why a call has no result. The text is for the model: what was wrong, and what it could do instead.
///
/// Every [`Error`] becomes [`Failure::Failed`] under `?`. `Failure` itself is therefore no `Error`: it is the end of the
/// road, not a link of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The arguments fit the schema and still make no sense.
    InvalidArguments(String),
    /// It was tried and did not work; trying again in the same way will not help.
    Failed(String),
    /// What the tool needs cannot be reached now; trying again later may help.
    Unavailable(String),
}

impl Failure {
    /// The arguments fit the schema and still make no sense.
    pub fn invalid_arguments(why: impl Into<String>) -> Self {
        Self::InvalidArguments(why.into())
    }

    /// It was tried and did not work.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    /// What the tool needs cannot be reached now.
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
