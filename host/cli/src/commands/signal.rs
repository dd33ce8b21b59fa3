//! `signal`: the result that a call of a conversation waits for, by the name of its signal.

use api::{Resolved, Verbatim};
use clap::Args;
use domain::{ConversationId, SignalName};

use super::Run;
use crate::args::{Connection, conversation, json};
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Send a signal: the result that a call of a conversation waits for.
///
/// The tool chooses the name of the signal. Only the caller of the turn and an admin may send it. A signal that nothing waits
/// for is not kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate signal support:42 health '{\"healthy\":true}'
  toolgate signal support:42 health @report.json")]
pub(crate) struct Signal {
    /// The conversation of the call
    #[arg(value_parser = conversation)]
    conversation: ConversationId,
    /// The name of the signal, as `toolgate show` shows it
    name: SignalName,
    /// The result; `@FILE` reads a file, `-` standard input
    #[arg(value_name = "JSON", value_parser = json)]
    result: Verbatim,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Signal {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let path = format!("/v1/conversations/{}/signals/{}", self.conversation, self.name);
        let resolved: Resolved = Client::new(&self.host)?.exchange(&path, &self.result)?;
        if self.json {
            return Ok(terminal.line(escape::json_line(&serde_json::to_string(&resolved)?))?);
        }
        terminal.line(format!("{} {}", terminal.style(Style::Good, "sent to"), escape::line(&resolved.suspension)))?;
        Ok(())
    }
}
