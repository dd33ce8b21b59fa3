//! Checks a configuration whose values are all readable. The values may contradict each other.

use std::collections::BTreeSet;
use std::path::Path;

use domain::{Digest, PluginName};

use super::source::Source;
use super::{Config, ConfigError, GrantsTable, SecretTable, policies};

/// The largest component that is read to name its digest in a hint.
const MAX_COMPONENT: u64 = 64 << 20;

/// Looks at everything that one value alone does not show.
pub(super) fn check(config: &Config, source: &Source) -> Result<(), ConfigError> {
    policies::check(&config.policies.component, source)?;
    for (name, table) in &config.plugin {
        let name = &name.0;
        if table.component.is_none() && !table.grants.is_empty() {
            return Err(source.error(
                &["plugin", name.as_str()],
                no_component(name),
                Some(component(config, source, name)),
            ));
        }
        check_grants(&table.grants, &mut |keys, message, hint| {
            let keys = [&["plugin", name.as_str(), "grants"], keys].concat();
            source.error(&keys, message, Some(hint.to_owned()))
        })?;
    }
    #[cfg(feature = "server")]
    check_door(&config.door, source)?;
    super::webhook::check(&config.webhook, source)
}

#[cfg(feature = "server")]
fn check_door(door: &super::DoorTable, source: &Source) -> Result<(), ConfigError> {
    let server::LongRequests { max, reserved, .. } = door.long_requests();
    if reserved < max {
        return Ok(());
    }
    let message = format!("all {max} long requests are reserved, so no caller could wait or follow a conversation");
    let hint = "make `long_requests_reserved` smaller than `long_requests`";
    Err(source.error(&["door", "long_requests_reserved"], message, Some(hint.to_owned())))
}

fn no_component(name: &PluginName) -> String {
    format!("the plugin {name} has grants, and nothing says which component of that name they are for")
}

/// The line that is missing.
fn component(config: &Config, source: &Source, name: &PluginName) -> String {
    let file = source.beside().join(config.plugins_folder()).join(format!("{name}.wasm"));
    match digest(&file) {
        Some(digest) => format!(
            "write `component = \"{digest}\"` under `[plugin.{name}]`, which is what {} is now; or `component = \"any\"` to \
             grant it to any component of that name",
            file.display()
        ),
        None => format!(
            "write `component = \"sha256:…\"` under `[plugin.{name}]`, with what `sha256sum` prints of its file; or \
             `component = \"any\"` to grant it to any component of that name"
        ),
    }
}

fn digest(file: &Path) -> Option<Digest> {
    let found = std::fs::metadata(file).ok()?;
    let readable = found.is_file() && found.len() <= MAX_COMPONENT;
    readable.then(|| std::fs::read(file).ok().map(Digest::of)).flatten()
}

type Fail<'a> = dyn FnMut(&[&str], String, &str) -> ConfigError + 'a;

fn check_grants(grants: &GrantsTable, fail: &mut Fail<'_>) -> Result<(), ConfigError> {
    let GrantsTable { keyvalue: _, http, config, folders, secrets } = grants;
    let mut rules = Vec::new();
    for (position, table) in http.iter().enumerate() {
        let rule = table.rule();
        if rules.contains(&rule) {
            let message = format!("requests to {} are granted twice", table.url);
            return Err(fail(&["http", &position.to_string()], message, "remove one of the two"));
        }
        rules.push(rule);
    }
    let mut mounts = BTreeSet::new();
    for (position, table) in folders.iter().enumerate() {
        if !mounts.insert(&table.at) {
            let message = format!("two folders are at {}", table.at);
            return Err(fail(&["folders", &position.to_string(), "at"], message, "give one of them another path"));
        }
    }
    for (name, table) in secrets {
        check_secret(table, &mut |message, hint| fail(&["secrets", name.as_str()], message, hint))?;
        if config.as_ref().is_some_and(|values| values.contains_key(name)) {
            let message = format!("`{name}` is a value and a secret");
            return Err(fail(
                &["secrets", name.as_str()],
                message,
                "a plugin asks for both by name; rename one of them",
            ));
        }
    }
    Ok(())
}

fn check_secret(table: &SecretTable, fail: &mut dyn FnMut(String, &str) -> ConfigError) -> Result<(), ConfigError> {
    match (&table.env, &table.file) {
        (Some(_), Some(_)) => Err(fail("a secret has one source, not both".into(), "remove `env` or `file`")),
        (None, None) => Err(fail(
            "nothing says where the secret comes from".into(),
            "write `env = \"VARIABLE\"` or `file = \"PATH\"`; its value has no place in this file",
        )),
        (Some(variable), None) if variable.is_empty() || variable.contains(['=', '\0']) => {
            Err(fail(format!("{variable:?} is no variable of the environment"), "write its name alone"))
        }
        _ if table.hosts.is_empty() => {
            Err(fail("the secret may be sent nowhere".into(), "write `hosts = [\"api.example.com\"]`"))
        }
        _ if table.places.is_empty() => {
            Err(fail("the secret has no place in a request".into(), "write `places = [\"header:authorization\"]`"))
        }
        _ => Ok(()),
    }
}
