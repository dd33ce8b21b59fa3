//! `show`: one suspension or one turn, in full.

use api::Turn;
use clap::Args;
use domain::{ConversationId, SuspensionId, TurnId};

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::card;
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// How deep nested turns are shown.
const MAX_DEPTH: u32 = 8;

/// A nested turn is indented by this.
const INDENT: &str = "    ";

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

/// A turn, and its nested turns below it. Those that cannot be read are left out: the card of the turn names them.
fn tree(client: &Client, turn: &Turn, terminal: &Terminal, depth: u32) -> String {
    let mut text = card::turn(turn, terminal);
    let Some(deeper) = depth.checked_sub(1) else { return text };
    for nested in turn.calls.iter().flat_map(|call| &call.nested) {
        let path = format!("/v1/conversations/{}/turns/{}", nested.conversation, nested.turn);
        let child = client.get(&path, &[]).and_then(|answer| parse::<Turn>(&answer));
        let Ok(child) = child else { continue };
        for line in tree(client, &child, terminal, deeper).lines() {
            text.push_str(&format!("{INDENT}{line}\n"));
        }
    }
    text
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
        let client = Client::new(&self.host)?;
        let answer = client.get(&path, &log)?;
        let shown = match (self.json, is_turn) {
            (true, _) => escape::json(&answer),
            (false, true) => tree(&client, &parse(&answer)?, terminal, MAX_DEPTH),
            (false, false) => card::suspension(&parse(&answer)?, terminal),
        };
        terminal.line(shown.trim_end())?;
        Ok(())
    }
}
