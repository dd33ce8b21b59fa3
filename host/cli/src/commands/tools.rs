//! `tools`: the live tools.

use api::formats::List;
use clap::Args;
use domain::tool::Approval;

use super::Run;
use crate::args::{Connection, format};
use crate::client::{Client, parse};
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
    /// Print JSON: one object a line
    #[arg(long, conflicts_with = "format")]
    json: bool,
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
        let query = [("format", Some("toolgate"))];
        let seen = client.pages("/v1/tools", (&query, "tools"), None, |item| {
            Ok(terminal.line(if self.json { escape::json_line(item) } else { lines(&parse(item)?, terminal) })?)
        })?;
        if seen == 0 && !self.json {
            terminal.line("no tools are live")?;
        }
        Ok(())
    }
}

fn lines(tool: &api::Tool, terminal: &Terminal) -> String {
    let gate = if tool.approval.0 == Approval::Auto { "" } else { ", requires approval" };
    let outside = if tool.sandboxed { "" } else { ", outside the sandbox" };
    let (name, plugin) = (terminal.style(Style::Strong, &escape::line(&tool.name)), escape::line(&tool.plugin));
    let description = escape::block(&tool.description, "    ");
    format!("{name}  {}{gate}{outside}  ({plugin})\n{}", tool.executor, description.trim_end())
}
