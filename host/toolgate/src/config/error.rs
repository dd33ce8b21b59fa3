//! Errors in a configuration: the position, the reason, and a hint.

use std::ops::Range;
use std::path::{Path, PathBuf};

use escape::{Refusal, names};

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
        let said = error.message().trim().replace('\n', "; ");
        let span = error.span().unwrap_or_default();
        let refusal = Refusal::of(&said);
        let hint = nearest(&refusal);
        Self::found(file, text, span.start, plain(refusal, text, &span), hint)
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

/// Says what is wrong, with the key, the value and what is allowed.
fn plain(refusal: Refusal<'_>, text: &str, span: &Range<usize>) -> String {
    let subject = key_before(text, span.start).map_or_else(|| "the value".to_owned(), |key| format!("`{key}`"));
    match refusal {
        Refusal::UnknownName { name, known } => {
            format!("there is no key `{name}` here; the keys are {}", names(&known))
        }
        Refusal::UnknownWord { word, known } => {
            format!("{subject} is \"{word}\", and it must be one of {}", names(&known))
        }
        Refusal::Missing { name } => format!("the key `{name}` is missing"),
        Refusal::Twice { name } => format!("the key `{name}` is there twice"),
        Refusal::Wrong { given, expected } => {
            let written = text.get(span.clone()).filter(|_| given.is_empty()).unwrap_or(&given);
            format!("{subject} is {written}, and it must be {expected}")
        }
        Refusal::Other(said) => match said.strip_prefix("the value is ") {
            Some(rest) => format!("{subject} is {rest}"),
            None => said.to_owned(),
        },
    }
}

/// The key before the value at an offset, if it is on the same line.
fn key_before(text: &str, offset: usize) -> Option<&str> {
    let (before, _) = text.get(..offset)?.rsplit('\n').next()?.rsplit_once('=')?;
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = before.trim_end().rsplit(|c| !is_of_key(c)).next()?;
    (!key.is_empty()).then_some(key)
}

/// The known name that is most similar to an unknown one.
fn nearest(refusal: &Refusal<'_>) -> Option<String> {
    let (Refusal::UnknownName { name: wrong, known } | Refusal::UnknownWord { word: wrong, known }) = refusal else {
        return None;
    };
    known
        .iter()
        .copied()
        .map(|known| (strsim::damerau_levenshtein(wrong, known), known))
        .filter(|(distance, known)| *distance <= 2 || known.starts_with(wrong) || wrong.starts_with(known))
        .min()
        .map(|(_, known)| format!("did you mean `{known}`?"))
}
