//! `tools`: the live tools.

use api::formats::List;
use clap::Args;

use super::Run;
use crate::args::{Connection, format};
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// List the live tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate tools
  toolgate tools --format anthropic       the `tools` of a request to the model")]
pub(crate) struct Tools {
    /// Print JSON in the format of a model provider
    #[arg(long, value_parser = format::<List>())]
    format: Option<String>,
    #[command(flatten)]
    host: Connection,
}

impl Run for Tools {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        if let Some(format) = &self.format {
            let text = client.get("/v1/tools", &[("format", Some(format))])?;
            terminal.line(escape::json(&text))?;
            return Ok(());
        }
        let live: api::ToolList = client.read("/v1/tools", &[("format", Some("toolgate"))])?;
        for tool in &live.tools {
            let gate = if tool.approval == api::Approval::Auto { "" } else { ", requires approval" };
            terminal.line(format!(
                "{}  {}{gate}  ({})",
                terminal.style(Style::Strong, &escape::line(&tool.name)),
                tool.executor,
                escape::line(&tool.plugin),
            ))?;
            terminal.line(escape::block(&tool.description, "    ").trim_end())?;
        }
        if live.tools.is_empty() {
            terminal.line("no tools are live")?;
        }
        Ok(())
    }
}
