//! `config`: whether the configuration means something, and what it may say.

use registry::grants::words;
use toolgate::config::{Config as Read, LISTEN, SecretValues};

use super::grants::holder;
use crate::args::Config;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

pub(super) fn run(args: &Config, terminal: &Terminal) -> Result<(), Report> {
    if args.schema {
        terminal.line(serde_json::to_string_pretty(&Read::schema())?)?;
        return Ok(());
    }
    let config = Read::read(args.config.as_deref())?;
    let data = config.data_folder();
    let settings = config.registry(&data, &SecretValues::default());
    let findings = settings.check();
    if !findings.is_empty() {
        let report = Report::new(Exit::Usage, "the configuration contradicts itself");
        return Err(findings.iter().fold(report, |report, finding| report.because(finding)));
    }
    terminal.line(format!("listen   {}", config.listen.unwrap_or(LISTEN)))?;
    terminal.line(format!("plugins  {}", config.plugins_folder().display()))?;
    terminal.line(format!("data     {}", data.display()))?;
    for name in config.plugin.keys() {
        terminal.line(format!("plugin   {}, {}", name.0, holder(&settings.holder(&name.0))))?;
        for words in words(&settings.grants(&name.0)) {
            terminal.line(format!("           {}", text::line(&words)))?;
        }
    }
    for rule in config.operator_rules().iter() {
        terminal.line(format!("policy   {rule}"))?;
    }
    for component in config.policy_components()? {
        terminal.line(format!("policy   {}: {}, asked about {}", component.name, component.digest, component.tools))?;
    }
    for webhook in &config.webhook {
        // The rest of the URL may be a secret.
        terminal.line(format!("webhook  {}, {}", webhook.name, webhook.url.0.host_str().unwrap_or_default()))?;
    }
    Ok(())
}
