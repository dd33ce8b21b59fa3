//! `pending`: lists what waits for a person or a client, and how to answer it.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Suspension, UnreadableSuspension};
use clap::{Args, ValueEnum};
use domain::{CallId, ConversationId, PrincipalId, suspension::SuspensionKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Run;
use crate::args::{Connection, conversation, value_name};
use crate::card;
use crate::client::{Client, PAGE, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// How often `--watch` asks the host.
const INTERVAL: Duration = Duration::from_secs(1);

/// List what waits for a person or a client, and how to answer it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate pending
  toolgate pending --kind approval --tool ledger_transfer
  toolgate pending --watch                print changes until Ctrl-C
  toolgate pending --state closed --json
  toolgate pending --decision approve --by alice      what alice approved
  toolgate pending --conversation support:42 --call call_1")]
pub(crate) struct Pending {
    /// Only of this conversation
    #[arg(long, value_name = "ID", value_parser = conversation)]
    conversation: Option<ConversationId>,
    /// Only of turns that this principal submitted
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only of this kind
    #[arg(long, value_parser = SuspensionKind::NAMES)]
    kind: Option<String>,
    /// Only of the call with this id, in the conversation that --conversation names
    #[arg(long, value_name = "ID", requires = "conversation")]
    call: Option<CallId>,
    /// Those that wait, those that are closed, or all [default: open; closed with --decision or --by]
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only those that ended so: `approve`, `deny`, another decision, `expired` or `withdrawn`
    #[arg(long, value_name = "DECISION")]
    decision: Option<String>,
    /// Only those that this principal answered
    #[arg(long, value_name = "NAME")]
    by: Option<PrincipalId>,
    /// Keep running, and print new and closed suspensions
    #[arg(long)]
    watch: bool,
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// The state of the listed suspensions.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    Open,
    Closed,
    All,
}

/// A page of suspensions. They are printed as the host wrote them.
#[derive(Deserialize)]
struct Page {
    suspensions: Vec<Box<RawValue>>,
    next: Option<String>,
    #[serde(default)]
    unreadable: Vec<UnreadableSuspension>,
}

impl Run for Pending {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let mut known = BTreeSet::new();
        let mut is_first = true;
        loop {
            let (items, unreadable) = match self.items(&client) {
                // The host may be restarting.
                Err(report) if !is_first && report.is_unreachable() => {
                    std::thread::sleep(INTERVAL);
                    continue;
                }
                items => items?,
            };
            for UnreadableSuspension { suspension, turn } in unreadable.iter().filter(|_| is_first) {
                let of = turn.as_ref().map(|turn| format!(" of {turn}")).unwrap_or_default();
                let note = format!("{suspension}{of} is missing here: a stored record is damaged");
                terminal.note(&format!("{} {}\n", terminal.note_style(Style::Bad, "note:"), escape::line(&note)));
            }
            let mut now = BTreeSet::new();
            for item in &items {
                let suspension: Suspension = parse(item)?;
                if !known.contains(&suspension.suspension) {
                    terminal.line(if self.json {
                        escape::json_line(item)
                    } else {
                        card::suspension(&suspension, terminal)
                    })?;
                }
                now.insert(suspension.suspension);
            }
            if !self.watch {
                if items.is_empty() && !self.json {
                    terminal.line("nothing waits")?;
                }
                return Ok(());
            }
            for closed in known.difference(&now).filter(|_| !self.json) {
                let line = format!("{} waits no longer\n", escape::line(closed));
                terminal.line(terminal.style(Style::Faint, &line))?;
            }
            (known, is_first) = (now, false);
            std::thread::sleep(INTERVAL);
        }
    }
}

impl Pending {
    /// Reads every page. The items stay as the host wrote them.
    fn items(&self, client: &Client) -> Result<(Vec<String>, Vec<UnreadableSuspension>), Report> {
        let state = self.state.and_then(value_name);
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        let mut after: Option<String> = None;
        loop {
            let query = [
                ("conversation", self.conversation.as_ref().map(ConversationId::as_str)),
                ("caller", self.caller.as_deref()),
                ("tool", self.tool.as_deref()),
                ("kind", self.kind.as_deref()),
                ("call", self.call.as_ref().map(CallId::as_str)),
                ("decision", self.decision.as_deref()),
                ("by", self.by.as_ref().map(PrincipalId::as_str)),
                ("state", state.as_deref()),
                ("limit", Some(PAGE)),
                ("after", after.as_deref()),
            ];
            let page: Page = client.read("/v1/pending", &query)?;
            items.extend(page.suspensions.iter().map(|item| item.get().to_owned()));
            unreadable.extend(page.unreadable);
            after = page.next;
            if after.is_none() {
                return Ok((items, unreadable));
            }
        }
    }
}
