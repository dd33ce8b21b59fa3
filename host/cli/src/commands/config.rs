//! `config`: checks the configuration and prints a summary, or prints its JSON Schema.

use std::path::PathBuf;

use clap::Args;
use domain::PluginName;
use registry::grants::words;
use serde_json::json;
use toolgate::config::{Config as Configuration, LISTEN, SecretValues};

use super::Run;
use super::grants::holder;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Check the configuration and print a summary, or print its JSON Schema.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Print the JSON Schema of toolgate.toml, for editors
    #[arg(long)]
    schema: bool,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long, conflicts_with = "schema")]
    json: bool,
}

impl Run for Config {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        if self.schema {
            terminal.line(serde_json::to_string_pretty(&Configuration::schema())?)?;
            return Ok(());
        }
        let config = Configuration::read(self.config.as_deref())?;
        let data = config.data_folder();
        let settings = config.registry(&data, &SecretValues::default());
        let findings = settings.check();
        if !findings.is_empty() {
            let report = Report::new(Exit::Usage, "the configuration contradicts itself");
            return Err(findings.iter().fold(report, |report, finding| report.because(finding)));
        }
        let policies = config.policy_components()?;
        if self.json {
            let plugin = |name: &PluginName| {
                json!({
                    "plugin": name.as_str(),
                    "holder": holder(&settings.holder(name)),
                    "grants": words(&settings.grants(name)),
                })
            };
            let value = json!({
                "listen": config.listen.unwrap_or(LISTEN).to_string(),
                "plugins": config.plugins_folder().to_string_lossy(),
                "data": data.to_string_lossy(),
                "plugin": config.plugin.keys().map(|name| plugin(&name.0)).collect::<Vec<_>>(),
                "policy": config.operator_rules().iter().map(|rule| rule.to_string()).collect::<Vec<_>>(),
                "policies": policies.iter().map(|component| component.name.to_string()).collect::<Vec<_>>(),
                "webhook": config.webhook.iter().map(|webhook| webhook.name.to_string()).collect::<Vec<_>>(),
            });
            terminal.line(escape::json(&value.to_string()))?;
            return Ok(());
        }
        terminal.line(format!("listen   {}", config.listen.unwrap_or(LISTEN)))?;
        terminal.line(format!("plugins  {}", config.plugins_folder().display()))?;
        terminal.line(format!("data     {}", data.display()))?;
        for name in config.plugin.keys() {
            terminal.line(format!("plugin   {}, {}", name.0, holder(&settings.holder(&name.0))))?;
            for words in words(&settings.grants(&name.0)) {
                terminal.line(format!("           {}", escape::line(&words)))?;
            }
        }
        for rule in config.operator_rules().iter() {
            terminal.line(format!("policy   {rule}"))?;
        }
        for component in policies {
            let (name, digest, tools) = (component.name, component.digest, component.tools);
            terminal.line(format!("policy   {name}: {digest}, asked about {tools}"))?;
        }
        for webhook in &config.webhook {
            // The path and the query of the URL may be secret.
            terminal.line(format!("webhook  {}, {}", webhook.name, webhook.url.0.host_str().unwrap_or_default()))?;
        }
        Ok(())
    }
}
