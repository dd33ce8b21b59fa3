//! The text of a configuration. Errors that are found after parsing use it to name the line and column of a key.

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

    /// The file, if the configuration comes from one.
    pub(super) fn file(&self) -> Option<&Path> {
        Some(&*self.file).filter(|file| !file.as_os_str().is_empty())
    }

    #[cfg(feature = "postgres")]
    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    #[cfg(feature = "postgres")]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The folder of the file. Paths in the file are relative to it.
    pub(super) fn beside(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The position of the value under these keys: `file:line:column`.
    pub(super) fn position(&self, keys: &[&str]) -> String {
        let (line, column) = line_and_column(&self.text, offset(&self.text, keys).unwrap_or_default());
        format!("{}:{line}:{column}", self.file.display())
    }

    /// An error about the value under these keys.
    pub(super) fn error(&self, keys: &[&str], message: String, hint: Option<String>) -> ConfigError {
        let offset = offset(&self.text, keys).unwrap_or_default();
        ConfigError::found(&self.file, &self.text, offset, message, hint)
    }
}

/// The text is long and may be confidential, so only the file is printed.
impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.file.display())
    }
}

/// Reads a regular file of at most this size.
pub(super) fn read_file(path: &Path, max: u64) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() || found.len() > max {
        return Err(format!("it is not a file of at most {max} bytes"));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}

/// The offset of the last of these keys that exists. After the key of a list comes an index.
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
