//! Errors in a configuration: the position, the reason, and a hint.

use std::path::{Path, PathBuf};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        #[source]
        reason: std::io::Error,
    },
    /// The file is invalid.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
        /// The reason.
        message: String,
        /// The remedy.
        hint: Option<String>,
    },
}

impl ConfigError {
    pub(super) fn at(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        // The parser's messages can have several lines. Ours have one.
        let message = error.message().trim().replace('\n', "; ");
        let hint = nearest(&message);
        Self::found(file, text, error.span().map_or(0, |span| span.start), message, hint)
    }

    /// An error at an offset in the text.
    pub(super) fn found(file: &Path, text: &str, offset: usize, message: String, hint: Option<String>) -> Self {
        let (line, column) = line_and_column(text, offset);
        Self::Invalid { file: file.to_owned(), line, column, message, hint }
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Unreadable { .. } => Some("correct the path, or make the file readable"),
            Self::Invalid { hint, .. } => hint.as_deref(),
        }
    }
}

/// The line of an offset and the character in the line, both from 1.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line, column)
}

/// The known name that is most similar to an unknown one. The parser's message is "unknown field `a`, expected `b` or `c`".
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
