//! What is wrong with a configuration, where, and what was probably meant.

use std::path::{Path, PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        reason: std::io::Error,
    },
    /// Something in it means nothing.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Meaningless {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// What was probably meant.
        hint: Option<String>,
    },
}

impl ConfigError {
    pub(super) fn at(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        // The parser's messages have several lines; ours is one.
        let message = error.message().trim().replace('\n', "; ");
        let hint = nearest(&message);
        Self::found(file, text, error.span().map_or(0, |span| span.start), message, hint)
    }

    /// What is wrong at a place in the text.
    pub(super) fn found(file: &Path, text: &str, offset: usize, message: String, hint: Option<String>) -> Self {
        let (line, column) = line_and_column(text, offset);
        Self::Meaningless { file: file.to_owned(), line, column, message, hint }
    }

    /// What was probably meant.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Meaningless { hint, .. } => hint.as_deref(),
        }
    }
}

/// The line of a place in a text and the character in it, both from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

/// Messages about unknown names quote the name first and then those that exist: "unknown field `a`, expected `b` or `c`".
fn nearest(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    quoted
        .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
        .filter(|(distance, known)| *distance <= 2 || known.starts_with(wrong) || wrong.starts_with(known))
        .min()
        .map(|(_, known)| format!("did you mean `{known}`?"))
}
