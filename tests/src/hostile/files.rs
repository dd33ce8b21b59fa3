//! Files of a case, such as policies and secrets. They exist before the host starts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::wat;

/// The content of a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Content {
    /// This text.
    Text(String),
    /// A policy component with this body of `judge`.
    Policy(String),
    /// A component from its text.
    Component(String),
    /// No file, but a symbolic link to this path.
    Link(String),
}

impl Content {
    /// Makes the file, and its folder if it is missing.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match self {
            Self::Text(text) => fs::write(path, text),
            Self::Policy(body) => fs::write(path, wat::policy(body)),
            Self::Component(text) => fs::write(path, ::wat::parse_str(text)?),
            Self::Link(target) => symlink(target, path),
        }
        .with_context(|| path.display().to_string())
    }
}

/// Inverts the byte in the middle of each file of a folder.
pub(super) fn damage(folder: &Path) -> Result<()> {
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let mut bytes = fs::read(&path)?;
        let middle = bytes.len() / 2;
        if let Some(byte) = bytes.get_mut(middle) {
            *byte ^= 0xff;
        }
        fs::write(&path, bytes)?;
    }
    Ok(())
}
