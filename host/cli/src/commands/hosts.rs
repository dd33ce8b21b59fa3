//! `hosts`: the hosts on one database.

use api::HostView;
use clap::Args;

use super::Run;
use crate::args::Connection;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// List the hosts on the database that are alive.
///
/// Needs the role admin. The list is empty if the turns are in the data folder of the host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate hosts
  toolgate hosts --json")]
pub(crate) struct Hosts {
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Hosts {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let found = Client::new(&self.host)?.pages("/v1/hosts", (&[], "hosts"), None, |host| {
            terminal.line(if self.json { escape::json_line(host) } else { line(&parse(host)?, terminal) })?;
            Ok(())
        })?;
        if found == 0 {
            terminal.note("The turns of this host are in its data folder, so it is the only host on them.\n");
        }
        Ok(())
    }
}

fn line(host: &HostView, terminal: &Terminal) -> String {
    let name = terminal.style(Style::Strong, &escape::line(&host.name));
    let at = host.address.as_deref().map_or_else(String::new, |address| format!("  at {}", escape::line(address)));
    let running = if host.running_calls == 1 { "1 call".to_owned() } else { format!("{} calls", host.running_calls) };
    let (version, since, renewed) =
        (escape::line(&host.version), escape::line(&host.since), escape::line(&host.renewed_at));
    let mut line = format!("{name}{at}  {version}  {running}  since {since}  renewed {renewed}");
    for (is_so, style, text) in [
        (host.answers, Style::Faint, "this host"),
        (host.draining, Style::Open, "draining"),
        (host.other_configuration, Style::Bad, "other configuration"),
    ] {
        if is_so {
            line += &format!("  {}", terminal.style(style, text));
        }
    }
    line
}
