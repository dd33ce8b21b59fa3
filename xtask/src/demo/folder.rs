//! The demo's folder, newly created each time: configuration, plugins, the host's data and its log.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::workspace;

/// The operator's configuration: the plugins and their grants.
const CONFIGURATION: &str = "\
# Written by `cargo xtask demo`.
plugins = \"plugins\"
data = \"data\"

[plugin.ledger]
component = \"any\"
grants.keyvalue = true

[[policies.component]]
name = \"limits\"
file = \"policies/limits.wasm\"
component = \"any\"
";

/// The example component that is a policy.
const POLICY: &str = "limits.wasm";

/// The folder of the demo.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates an empty folder and copies the components into it. `grants` are more tables of the configuration.
    pub(crate) fn fresh(components: &[PathBuf], grants: &str) -> Result<Self> {
        let beside = workspace::binary("toolgate")?;
        let target = beside.parent().and_then(Path::parent).context("xtask is not in a target folder")?;
        let folder = Self(target.join("demo"));
        if folder.0.exists() {
            fs::remove_dir_all(&folder.0).with_context(|| format!("could not remove {}", folder.0.display()))?;
        }
        let fill = || -> std::io::Result<()> {
            for kind in ["plugins", "policies"] {
                fs::create_dir_all(folder.0.join(kind))?;
            }
            fs::write(folder.configuration(), format!("{CONFIGURATION}{grants}"))?;
            for component in components {
                let name = component.file_name().unwrap_or_default();
                let kind = if name == POLICY { "policies" } else { "plugins" };
                fs::copy(component, folder.0.join(kind).join(name))?;
            }
            Ok(())
        };
        fill().with_context(|| format!("could not fill {}", folder.0.display()))?;
        Ok(folder)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.0.join(name);
        fs::write(&file, text).with_context(|| format!("could not write {}", file.display()))?;
        Ok(file)
    }

    /// The component of a plugin.
    pub(crate) fn component(&self, plugin: &str) -> PathBuf {
        self.0.join("plugins").join(format!("{plugin}.wasm"))
    }

    /// The operator's configuration.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.0.join("toolgate.toml")
    }

    /// The host's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("host.log")
    }

    /// The folder, relative to the root of the repository.
    pub(crate) fn shown(&self) -> PathBuf {
        relative(&self.0)
    }
}

/// A path, relative to the root of the repository if it is inside it.
pub(crate) fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(workspace::root()).unwrap_or(path).to_owned()
}
