//! `drain`: a running host takes no new turns.

use api::Drained;
use clap::Args;

use super::Run;
use crate::args::Connection;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::Terminal;

/// Let a host take no new turns, before it is stopped.
///
/// Needs the role admin. The host refuses new turns and answers until it is started again, and its running calls go on. Other hosts on
/// its database do the rest of its work. Behind a proxy, the output says which host it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate drain
  toolgate drain --url http://10.0.0.7:7420 --token-file admin

SIGTERM does the same, waits for the running calls and stops the host.")]
pub(crate) struct Drain {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Drain {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let answer = Client::new(&self.host)?.post("/v1/drain", &[], &[])?;
        if self.json {
            return Ok(terminal.line(escape::json(&answer))?);
        }
        let Drained { host, running_calls, .. } = parse(&answer)?;
        let host = host.map_or_else(String::new, |name| format!(" `{}`", escape::line(&name)));
        let calls = if running_calls == 1 { "1 call runs".to_owned() } else { format!("{running_calls} calls run") };
        Ok(terminal.line(format!("the host{host} takes no new turns; {calls}"))?)
    }
}
