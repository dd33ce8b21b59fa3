//! Reads the TOML and JSON files of a plugin's folder.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Failed;

pub(crate) fn toml(file: &Path) -> Result<toml::Table, Failed> {
    let text = fs::read_to_string(file).map_err(Failed::reading(file))?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        Failed::project(format!("{}:{line}: {}", file.display(), error.message()), "see https://toml.io")
    })
}

pub(crate) fn json(file: &Path) -> Result<Value, Failed> {
    let text = fs::read_to_string(file).map_err(Failed::reading(file))?;
    serde_json::from_str(&text)
        .map_err(|error| Failed::project(format!("{} is not JSON: {error}", file.display()), "correct it"))
}
