//! The facts about a file in the watched folder that are known before it is read: whether it is a plugin, its name, and
//! whether it changed.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use domain::PluginName;

use crate::components::MAX_COMPONENT;
use crate::{Finding, LoadRule, files};

/// The metadata that identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Self { size: metadata.len(), modified: metadata.modified().ok(), inode }
    }
}

/// Whether a file is a plugin. A name with a leading dot belongs to a file that toolgate, rsync or an editor is still
/// writing.
pub(super) fn is_plugin(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|extension| extension == "wasm")
}

/// The plugin in a file: a host names a plugin after its file.
///
/// # Errors
/// The finding about a name that no plugin can have.
pub fn plugin_name(path: &Path) -> Result<PluginName, Finding> {
    PluginName::new(&stem(path)).map_err(|error| Finding {
        tool: None,
        rule: LoadRule::PluginName,
        capability: None,
        message: format!("the file's name is not a valid plugin name: {error}"),
        remedy: match nearest_name(path) {
            Some(near) => format!("rename the file, for example to {near}.wasm"),
            None => "rename the file".into(),
        },
    })
}

/// The valid name that is most like the name of a file.
#[must_use]
pub fn nearest_name(path: &Path) -> Option<PluginName> {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let near: String = stem(path).chars().map(allowed).take(64).collect();
    PluginName::new(&near).ok()
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads a component as a host reads it from its folder. `None` if there is no such file.
///
/// # Errors
/// The finding about a file that no host can read.
pub fn read_component(path: &Path) -> Result<Option<Vec<u8>>, Finding> {
    files::read(path, MAX_COMPONENT).map_err(|error| Finding {
        tool: None,
        rule: LoadRule::ComponentFile,
        capability: None,
        message: format!("the file cannot be read: {error}"),
        remedy: "replace it with a readable component of bounded size".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_other_files_are_ignored() {
        for (name, expected) in
            [("a.wasm", true), (".a.wasm", false), (".wasm", false), ("a.wasm.tmp", false), ("a", false)]
        {
            assert_eq!(is_plugin(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn finding_about_a_name_says_a_valid_one() {
        assert_eq!(plugin_name(Path::new("a-b_1.wasm")).map_err(drop), PluginName::new("a-b_1").map_err(drop));
        for (file, near) in [("my tool.wasm", "my-tool"), ("größe.wasm", "gr--e"), ("a.b.wasm", "a-b")] {
            let finding = plugin_name(Path::new(file)).expect_err("no plugin's name");
            assert_eq!(finding.rule, LoadRule::PluginName, "{file}");
            assert_eq!(finding.remedy, format!("rename the file, for example to {near}.wasm"));
        }
    }
}
