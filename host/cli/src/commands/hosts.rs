//! `hosts`: the hosts on one database.

use api::{HostCall, HostView};
use clap::Args;

use super::Run;
use crate::args::Connection;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// The number of plugins that are named for one host.
const MAX_PLUGINS: usize = 5;

/// List the hosts on the database that are alive.
///
/// Shows hosts whose configuration or plugins differ from those of the host that answers.
///
/// Needs the role admin. The list is empty if the turns are in the data folder of the host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate hosts
  toolgate hosts --calls
  toolgate hosts --json")]
pub(crate) struct Hosts {
    /// List the calls that each host runs too
    #[arg(long)]
    calls: bool,
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Hosts {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let query = [("calls", self.calls.then_some("true"))];
        let found = Client::new(&self.host)?.pages("/v1/hosts", (&query, "hosts"), None, |host| {
            if self.json {
                return Ok(terminal.line(escape::json_line(host))?);
            }
            let host = parse::<HostView>(host)?;
            terminal.line(line(&host, terminal))?;
            for call in host.calls.iter().flatten() {
                terminal.line(call_line(call, terminal))?;
            }
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
    if !host.other_plugins.is_empty() {
        line += &format!("  {}", terminal.style(Style::Bad, &other_plugins(&host.other_plugins)));
    }
    line
}

fn call_line(call: &HostCall, terminal: &Terminal) -> String {
    let HostCall { conversation, turn, call, tool, caller, since } = call;
    let since = since.as_ref().map_or_else(String::new, |since| format!("  since {}", escape::line(since)));
    let tool = terminal.style(Style::Strong, &escape::line(tool));
    let [call, caller, conversation, turn] = [call, caller, conversation, turn].map(|text| escape::line(text));
    format!("  {tool}  {call} of {caller} in {conversation}{since}  {turn}")
}

fn other_plugins(names: &[String]) -> String {
    let named = names.iter().take(MAX_PLUGINS).map(|name| escape::line(name)).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_PLUGINS);
    if more > 0 { format!("other plugins: {named} and {more} more") } else { format!("other plugins: {named}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_that_differ_are_named_up_to_a_number() {
        let names = |number: usize| (1..=number).map(|n| format!("p{n}")).collect::<Vec<_>>();
        assert_eq!(other_plugins(&names(1)), "other plugins: p1");
        assert_eq!(other_plugins(&names(5)), "other plugins: p1, p2, p3, p4, p5");
        assert_eq!(other_plugins(&names(7)), "other plugins: p1, p2, p3, p4, p5 and 2 more");
    }
}
