//! `show`: one suspension or one turn, in full.

use clap::Args;
use domain::{ConversationId, SuspensionId, TurnId};

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::card;
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Show a suspension or a turn in full.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate show susp_01935a7c000070008000000000000001
  toolgate show turn_01935a7c000070008000000000000001 --conversation support:42")]
pub(crate) struct Show {
    /// Its id
    #[arg(value_name = "SUSPENSION|TURN")]
    id: String,
    /// The conversation of the turn
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Show {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let (path, is_turn) = if let Ok(id) = self.id.parse::<SuspensionId>() {
            (format!("/v1/suspensions/{id}"), false)
        } else if let Ok(id) = self.id.parse::<TurnId>() {
            (format!("/v1/conversations/{}/turns/{id}", self.conversation), true)
        } else {
            return Err(Report::new(
                Exit::Usage,
                format!("{:?} is the id of neither a suspension nor a turn", self.id),
            )
            .hint("ids begin with susp_ or turn_; `toolgate pending` shows both"));
        };
        let log = [("log", is_turn.then_some("true"))];
        let answer = Client::new(&self.host)?.get(&path, &log)?;
        let shown = match (self.json, is_turn) {
            (true, _) => escape::json(&answer),
            (false, true) => card::turn(&parse(&answer)?, terminal),
            (false, false) => card::suspension(&parse(&answer)?, terminal),
        };
        terminal.line(shown.trim_end())?;
        Ok(())
    }
}
