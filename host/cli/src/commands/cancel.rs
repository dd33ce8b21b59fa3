//! `cancel`: ends the open calls of a turn.

use clap::Args;
use domain::{ConversationId, TurnId};

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::card;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::Terminal;

/// Cancel a turn: its open calls end `cancelled`.
///
/// A turn that has ended does not change. A call that was running may have taken effect; the turn says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate cancel turn_01935a7c000070008000000000000001 --conversation support:42")]
pub(crate) struct Cancel {
    /// The turn, as `toolgate turns` shows it
    turn: TurnId,
    /// The conversation of the turn
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// Print the turn as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Cancel {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let path = format!("/v1/conversations/{}/turns/{}/cancel", self.conversation, self.turn);
        let answer = Client::new(&self.host)?.post(&path, &[], &[])?;
        if self.json {
            terminal.line(escape::json(&answer))?;
        } else {
            terminal.line(card::turn(&parse(&answer)?, terminal).trim_end())?;
        }
        Ok(())
    }
}
