//! `turns`: the turns of a conversation, newest first.

use api::{TurnState, TurnSummary};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use domain::ConversationId;

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::client::{Client, PAGE, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// List the turns of a conversation, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate turns support:42
  toolgate turns support:42 --state open --json
  toolgate show turn_01935a7c000070008000000000000001 --conversation support:42")]
pub(crate) struct Turns {
    /// The conversation
    #[arg(env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// The conversation, as most commands take it
    #[arg(long = "conversation", value_name = "ID", value_parser = conversation, hide = true)]
    named: Option<ConversationId>,
    /// Only turns in this state
    #[arg(long, value_parser = domain::turn::TurnState::NAMES)]
    state: Option<String>,
    /// The maximum number of turns
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Turns {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let conversation = self.named.unwrap_or(self.conversation);
        let path = format!("/v1/conversations/{conversation}/turns");
        let page = self.limit.to_string();
        let page = if self.limit < 500 { page.as_str() } else { PAGE };
        let query = [("state", self.state.as_deref()), ("limit", Some(page))];
        let seen = client.pages(&path, (&query, "turns"), Some(self.limit), |item| {
            Ok(terminal.line(if self.json { escape::json_line(item) } else { lines(&parse(item)?, terminal) })?)
        })?;
        if seen == 0 && !self.json {
            terminal.line(format!("{conversation} has no such turns"))?;
        }
        Ok(())
    }
}

/// One line for the turn, and one indented line for each call.
fn lines(turn: &TurnSummary, terminal: &Terminal) -> String {
    let style = if turn.state == TurnState::Open { Style::Open } else { Style::Good };
    let mut text = format!(
        "{}  {}  {}  by {}",
        terminal.style(Style::Strong, &escape::line(&turn.turn)),
        terminal.style(style, &turn.state.to_string()),
        escape::line(&turn.started_at),
        escape::line(&turn.caller),
    );
    for call in &turn.calls {
        let state = call.outcome.map_or_else(|| call.status.to_string(), |outcome| outcome.to_string());
        let waits = call.suspension.as_deref().map(|id| format!("  {id}")).unwrap_or_default();
        text.push_str(&format!("\n    {}", escape::line(&format!("{}  {}  {state}{waits}", call.id, call.tool))));
    }
    text
}
