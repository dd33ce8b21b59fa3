//! Checks a configuration whose values are all readable. The values may contradict each other.

use std::num::NonZeroUsize;
use std::path::Path;

use capabilities::request::InvalidGrant;
use domain::{Digest, PluginName, step::MAX_STEPS};

use super::source::Source;
use super::{Config, ConfigError, LimitsTable, policies};

/// The largest component that is read to name its digest in a hint.
const MAX_COMPONENT: u64 = 64 << 20;

/// Looks at everything that one value alone does not show.
pub(super) fn check(config: &Config, source: &Source) -> Result<(), ConfigError> {
    policies::check(&config.policies.component, source)?;
    instances(config, source)?;
    steps(config, source)?;
    super::store::check(config, source)?;
    for (name, table) in &config.plugin {
        let name = &name.0;
        if name.is_upstream() {
            let message = format!("{name} is an upstream MCP server, which has no grants");
            return Err(source.error(&["plugin", name.as_str()], message, Some("remove the table".to_owned())));
        }
        if table.component.is_none() && !table.grants.is_empty() {
            return Err(source.error(
                &["plugin", name.as_str()],
                no_component(name),
                Some(component(config, source, name)),
            ));
        }
        table.grants.check().map_err(|InvalidGrant { keys, message, hint }| {
            let keys: Vec<_> =
                ["plugin", name.as_str(), "grants"].into_iter().chain(keys.iter().map(String::as_str)).collect();
            source.error(&keys, message, Some(hint.to_owned()))
        })?;
    }
    #[cfg(feature = "server")]
    check_server(&config.server, source)?;
    super::oauth::check(config.oauth.as_ref(), source)?;
    super::upstream::check(&config.upstream, source)?;
    super::webhook::check(&config.webhook, source)
}

/// A limit above the number of core instances that the engine loads would have no effect.
fn instances(config: &Config, source: &Source) -> Result<(), ConfigError> {
    let max = config.compile.parts().core_instances as usize;
    let of = |table: &LimitsTable| table.instances.map(NonZeroUsize::get);
    let catalog = config.catalog.instances.map(|_| config.catalog.limits().instances);
    let general = [(vec!["catalog"], catalog), (vec!["limits"], of(&config.limits))];
    let own = config.plugin.iter().map(|(name, table)| (vec!["plugin", name.0.as_str(), "limits"], of(&table.limits)));
    for (mut keys, allowed) in general.into_iter().chain(own) {
        let Some(allowed) = allowed.filter(|allowed| *allowed > max) else { continue };
        keys.push("instances");
        let message = format!(
            "`{}` allows {allowed} core instances, but the host loads no component with more than {max} \
             (`compile.core_instances`)",
            keys.join(".")
        );
        let hint = "lower it, or raise `compile.core_instances`".to_owned();
        return Err(source.error(&keys, message, Some(hint)));
    }
    Ok(())
}

/// A limit above the fixed one would have no effect.
fn steps(config: &Config, source: &Source) -> Result<(), ConfigError> {
    let Some(allowed) = config.max_steps.filter(|allowed| allowed.get() > MAX_STEPS) else { return Ok(()) };
    let message = format!("`max_steps` allows {allowed} steps, but no durable call can have more than {MAX_STEPS}");
    Err(source.error(&["max_steps"], message, Some(format!("write a number from 1 to {MAX_STEPS}"))))
}

#[cfg(feature = "server")]
fn check_server(table: &super::ServerTable, source: &Source) -> Result<(), ConfigError> {
    let server::LongRequests { max, reserved, .. } = table.long_requests();
    if reserved < max {
        return Ok(());
    }
    let message = format!("all {max} long requests are reserved, so no caller could wait or follow a conversation");
    let hint = "make `long_requests_reserved` smaller than `long_requests`";
    Err(source.error(&["server", "long_requests_reserved"], message, Some(hint.to_owned())))
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
