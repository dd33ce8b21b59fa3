//! `tools`: what can be called.

use crate::args::Tools;
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Ink, Terminal};
use crate::wire;

pub(super) fn run(args: &Tools, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    if let Some(format) = args.format {
        let text = client.get("/v1/tools", &[("format", Some(format.as_str()))])?;
        terminal.line(text::json(&text))?;
        return Ok(());
    }
    let live: wire::Tools = client.read("/v1/tools", &[("format", Some("toolgate"))])?;
    for tool in &live.tools {
        let gate = if tool.approval == "auto" { "" } else { ", requires approval" };
        terminal.line(format!(
            "{}  {}{gate}  ({})",
            terminal.ink(Ink::Strong, &text::line(&tool.name)),
            text::line(&tool.executor),
            text::line(&tool.plugin),
        ))?;
        terminal.line(text::block(&tool.description, "    ").trim_end())?;
    }
    if live.tools.is_empty() {
        terminal.line("no tools are live")?;
    }
    Ok(())
}
