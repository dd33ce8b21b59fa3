//! Reads the values of secrets at the start, and opens granted folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capabilities::Opened;
use capabilities::secrets::SecretValue;
use domain::PluginName;

use super::source::Source;
use super::{Config, ConfigError, folders};

/// The maximal size of a secret, in bytes.
const MAX_SECRET: u64 = 64 << 10;

/// The values of secrets and the open folders, by plugin. The default has none, for commands that run no plugin.
#[derive(Debug, Clone, Default)]
pub struct SecretValues(BTreeMap<PluginName, Opened>);

impl SecretValues {
    pub(super) fn of(&self, plugin: &PluginName) -> Opened {
        self.0.get(plugin).cloned().unwrap_or_default()
    }
}

/// Reads every granted secret and checks every granted folder.
pub(super) fn look_up(config: &Config, source: &Source) -> Result<SecretValues, ConfigError> {
    let mut opened = folders::open(config, source)?;
    for (plugin, table) in &config.plugin {
        let plugin = &plugin.0;
        for (name, secret) in &table.grants.secrets {
            let text = read(secret.env.as_deref(), secret.file.as_ref(), source.beside());
            let value = text.and_then(value).map_err(|why| {
                let keys = ["plugin", plugin.as_str(), "grants", "secrets", name.as_str()];
                let message = format!("the secret `{name}` of the plugin {plugin}: {why}");
                source.error(
                    &keys,
                    message,
                    Some("the host starts only if every granted secret is available".to_owned()),
                )
            })?;
            opened.entry(plugin.clone()).or_default().secrets.insert(name.clone(), value);
        }
    }
    Ok(SecretValues(opened))
}

/// The value from the secret's source. Errors do not show it.
pub(super) fn read(variable: Option<&str>, file: Option<&PathBuf>, beside: &Path) -> Result<String, String> {
    match (variable, file) {
        (Some(variable), _) => variable_of(variable),
        (None, Some(file)) => file_of(&beside.join(file)),
        (None, None) => Err("it has no source".to_owned()),
    }
}

#[expect(clippy::disallowed_methods, reason = "this module reads the environment")]
fn variable_of(variable: &str) -> Result<String, String> {
    std::env::var(variable).map_err(|error| match error {
        std::env::VarError::NotPresent => format!("the environment variable {variable} is not set"),
        std::env::VarError::NotUnicode(_) => format!("the environment variable {variable} is not UTF-8"),
    })
}

/// The bytes of a file that only its owner should read.
pub(super) fn bytes_of(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot read the file {}: {error}", file.display());
    let found = std::fs::metadata(file).map_err(failed)?;
    if !found.is_file() || found.len() > MAX_SECRET {
        return Err(format!("{} is not a file of at most {MAX_SECRET} bytes", file.display()));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        tracing::warn!(file = %file.display(), "the file of a secret is open to other users; run `chmod 600` on it");
    }
    std::fs::read(file).map_err(failed)
}

fn file_of(file: &Path) -> Result<String, String> {
    let text = String::from_utf8(bytes_of(file)?).map_err(|_| format!("the file {} is not UTF-8", file.display()))?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(value.strip_suffix('\r').unwrap_or(value).to_owned())
}

pub(super) fn value(text: String) -> Result<SecretValue, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    SecretValue::new(&text).map_err(|error| error.to_string())
}
