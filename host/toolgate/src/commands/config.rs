//! `config`: whether the configuration means something, and what it may say.

use toolgate::config::{Config as Read, LISTEN};

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
    let findings = config.registry(&data).check([]);
    if !findings.is_empty() {
        let report = Report::new(Exit::Usage, "the configuration contradicts itself");
        return Err(findings.iter().fold(report, |report, finding| report.because(finding)));
    }
    terminal.line(format!("listen   {}", config.listen.unwrap_or(LISTEN)))?;
    terminal.line(format!("plugins  {}", config.plugins_folder().display()))?;
    terminal.line(format!("data     {}", data.display()))?;
    for (name, plugin) in &config.plugin {
        terminal.line(format!("plugin   {}: grants {:?}", name.0, plugin.grants))?;
    }
    for policy in &config.policy {
        terminal.line(format!("policy   {}: {:?}", policy.tools.0, policy.rule))?;
    }
    Ok(())
}
