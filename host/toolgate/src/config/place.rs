//! Where something stands in the configuration, for what is found wrong only after the file was read.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::ConfigError;
use super::error::line_and_column;

/// The file that a configuration was read from.
#[derive(Clone, Default)]
pub(super) struct Source {
    file: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn new(file: &Path, text: &str) -> Self {
        Self { file: file.to_owned(), text: text.to_owned() }
    }

    /// The folder that paths in it are relative to.
    pub(super) fn beside(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Where what stands at the end of these keys begins: `file:line:column`.
    pub(super) fn place(&self, keys: &[&str]) -> String {
        let (line, column) = line_and_column(&self.text, offset(&self.text, keys).unwrap_or_default());
        format!("{}:{line}:{column}", self.file.display())
    }

    /// What is wrong with what stands at the end of these keys.
    pub(super) fn error(&self, keys: &[&str], message: String, hint: Option<String>) -> ConfigError {
        let offset = offset(&self.text, keys).unwrap_or_default();
        ConfigError::found(&self.file, &self.text, offset, message, hint)
    }
}

/// What it holds is the operator's, and long.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.file.display())
    }
}

/// Where the last of the keys begins that are there; a number is a position in a list.
fn offset(text: &str, keys: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut found = None;
    let mut keys = keys.iter();
    while let Some(key) = keys.next() {
        let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref() == key) else { break };
        found = Some(name.span().start);
        let mut value = value;
        if let DeValue::Array(items) = value.get_ref() {
            let position = keys.next().and_then(|position| position.parse::<usize>().ok());
            let Some(item) = position.and_then(|position| items.get(position)) else { break };
            found = Some(item.span().start);
            value = item;
        }
        let DeValue::Table(inner) = value.get_ref() else { break };
        table = inner;
    }
    found
}
