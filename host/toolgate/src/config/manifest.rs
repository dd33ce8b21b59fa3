//! `toolgate-plugin.toml`: the requests of a plugin, as its author writes them.

use std::path::Path;

use registry::Manifest;
use serde::Deserialize;

use super::ConfigError;

/// The file. Its table `wants` has the requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    wants: Manifest,
}

/// Reads a manifest.
///
/// # Errors
/// [`ConfigError`] with the line and the column.
pub fn manifest(file: &Path) -> Result<Manifest, ConfigError> {
    let text =
        std::fs::read_to_string(file).map_err(|reason| ConfigError::Unreadable { file: file.to_owned(), reason })?;
    let File { wants } = toml::from_str(&text).map_err(|error| ConfigError::at(file, &text, &error))?;
    let found = |error: registry::manifest::InvalidManifest| {
        ConfigError::found(
            file,
            &text,
            text.find("[wants").or(text.find("[[wants")).unwrap_or(0),
            error.to_string(),
            None,
        )
    };
    wants.check().map_err(found)?;
    Ok(wants)
}
