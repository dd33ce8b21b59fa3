//! `conversations`: the conversations that a principal may see.

use api::Conversation;
use clap::Args;

use super::Run;
use crate::args::Connection;
use crate::client::{Client, PAGE, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// List the conversations and their owners.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate conversations
  toolgate conversations --json")]
pub(crate) struct Conversations {
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Conversations {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let query = [("limit", Some(PAGE))];
        let seen = client.pages("/v1/conversations", (&query, "conversations"), None, |item| {
            if self.json {
                return Ok(terminal.line(escape::json_line(item))?);
            }
            let Conversation { conversation, owner } = parse(item)?;
            let conversation = terminal.style(Style::Strong, &escape::line(&conversation));
            Ok(terminal.line(format!("{conversation}  of {}", escape::line(&owner)))?)
        })?;
        if seen == 0 && !self.json {
            terminal.line("there are no conversations")?;
        }
        Ok(())
    }
}
