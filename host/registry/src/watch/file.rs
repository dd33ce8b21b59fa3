//! The facts about a file in the watched folder that are known before it is read: whether it is a plugin, its name, and
//! whether it changed.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use domain::PluginName;

use crate::{Finding, LoadRule};

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

/// The plugin's name. If no plugin can have it, the nearest valid name and a finding.
pub(super) fn plugin_name(path: &Path) -> Result<PluginName, (Option<PluginName>, Finding)> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    PluginName::new(&stem).map_err(|error| {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let near: String = stem.chars().map(allowed).take(64).collect();
        let finding = Finding {
            tool: None,
            rule: LoadRule::PluginName,
            message: format!("the file's name is not a valid plugin name: {error}"),
            remedy: "rename the file".into(),
        };
        (PluginName::new(&near).ok(), finding)
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
    fn an_invalid_name_is_reported_under_the_nearest_valid_one() {
        assert_eq!(plugin_name(Path::new("a-b_1.wasm")).map_err(drop), PluginName::new("a-b_1").map_err(drop));
        for (file, near) in [("my tool.wasm", "my-tool"), ("größe.wasm", "gr--e"), ("a.b.wasm", "a-b")] {
            let (found, finding) = plugin_name(Path::new(file)).expect_err("no plugin's name");
            assert_eq!((found, finding.rule), (PluginName::new(near).ok(), LoadRule::PluginName), "{file}");
        }
    }
}
