//! `pending`: lists what waits for a person or a client, and how to answer it.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{Closed, PendingClosed, PendingEventName, Suspension, UnreadableSuspension};
use clap::{Args, ValueEnum};
use domain::{CallId, ConversationId, PrincipalId, TurnId, suspension::SuspensionKind};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde_json::value::RawValue;

use super::Run;
use super::events::next;
use crate::args::{Connection, conversation, value_name};
use crate::card;
use crate::client::{Client, PAGE, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// The pause before `--watch` connects again.
const PAUSE: Duration = Duration::from_secs(1);

/// List what waits for a person or a client, and how to answer it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate pending
  toolgate pending --kind approval --tool ledger_transfer
  toolgate pending --watch                print changes until Ctrl-C
  toolgate pending --state closed --json
  toolgate pending --decision approve --by alice      what alice approved
  toolgate pending --conversation support:42 --call call_1
  toolgate pending --state all --order newest         the newest first")]
pub(crate) struct Pending {
    /// Only of this conversation
    #[arg(long, env = "TOOLGATE_CONVERSATION", value_name = "ID", value_parser = conversation)]
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
    /// Only of this turn
    #[arg(long, value_name = "TURN")]
    turn: Option<TurnId>,
    /// Those that wait, those that are closed, or all [default: open; closed with --decision or --by]
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Only those that ended so: `approve`, `deny`, another decision, `expired` or `withdrawn`
    #[arg(long, value_name = "DECISION")]
    decision: Option<String>,
    /// Only those that this principal answered, or helped to approve
    #[arg(long, value_name = "NAME")]
    by: Option<PrincipalId>,
    /// Which come first
    #[arg(long, value_enum, default_value_t)]
    order: Order,
    /// Keep running, and print each suspension that opens or closes
    #[arg(long)]
    watch: bool,
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// The state of the listed suspensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum State {
    Open,
    Closed,
    All,
}

/// The order of the listed suspensions.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Order {
    #[default]
    Oldest,
    Newest,
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
        if self.watch {
            return self.watch(&client, terminal);
        }
        let items = self.items(&client, terminal)?;
        for item in &items {
            self.print(item, &parse(item)?, terminal)?;
        }
        if items.is_empty() && !self.json {
            let within = self.conversation.as_ref().map(|id| format!(" in {id}")).unwrap_or_default();
            let nothing = if self.lists_closed() { "no suspension matches" } else { "nothing waits" };
            terminal.line(format!("{nothing}{within}"))?;
        }
        Ok(())
    }
}

impl Pending {
    /// Prints the suspensions, and then each that opens or closes. It connects again if the host restarts.
    fn watch(&self, client: &Client, terminal: &Terminal) -> Result<(), Report> {
        let mut printed = None;
        loop {
            match self.follow(client, &mut printed, terminal) {
                Err(report) if printed.is_none() || !report.is_unreachable() => return Err(report),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Prints until the connection breaks. `printed` has the suspensions that were printed and are still listed.
    fn follow(
        &self,
        client: &Client,
        printed: &mut Option<BTreeSet<String>>,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let mut stream = client.stream("/v1/pending/events", &[], &[])?;
        while let Some(event) = next(&mut stream, &mut None) {
            let name = PendingEventName::deserialize(event.name.as_str().into_deserializer());
            let name: Result<_, serde::de::value::Error> = name;
            match name {
                // Changes during the list are in the stream.
                Ok(PendingEventName::Ready | PendingEventName::Reset) => self.catch_up(client, printed, terminal)?,
                Ok(PendingEventName::Opened | PendingEventName::Changed) => {
                    let item: Suspension = parse(&event.data)?;
                    if self.lists_open() && self.fits(&item) {
                        self.print_new(&event.data, printed, terminal)?;
                    }
                }
                Ok(PendingEventName::Closed) => {
                    let PendingClosed { suspension, .. } = parse(&event.data)?;
                    self.closed(client, &suspension, printed, terminal)?;
                }
                // An event of a newer host.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Prints what has changed since the suspensions were printed.
    fn catch_up(
        &self,
        client: &Client,
        printed: &mut Option<BTreeSet<String>>,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let items = self.items(client, terminal)?;
        let mut now = BTreeSet::new();
        for item in &items {
            let suspension: Suspension = parse(item)?;
            now.insert(suspension.suspension);
        }
        let before: Vec<String> = printed.get_or_insert_default().difference(&now).cloned().collect();
        for closed in &before {
            self.closed(client, closed, printed, terminal)?;
        }
        items.iter().try_for_each(|item| self.print_new(item, printed, terminal))
    }

    /// Prints a suspension unless it was printed before.
    fn print_new(&self, item: &str, printed: &mut Option<BTreeSet<String>>, terminal: &Terminal) -> Result<(), Report> {
        let suspension: Suspension = parse(item)?;
        if printed.get_or_insert_default().insert(suspension.suspension.clone()) {
            self.print(item, &suspension, terminal)?;
        }
        Ok(())
    }

    /// Prints how a suspension ended, if it was printed while it was open or if the user asks for closed ones.
    fn closed(
        &self,
        client: &Client,
        id: &str,
        printed: &mut Option<BTreeSet<String>>,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let printed = printed.get_or_insert_default();
        // A list of closed ones has it again after the next connection.
        let was_printed = if self.lists_closed() { !printed.insert(id.to_owned()) } else { printed.remove(id) };
        let is_asked_for = if was_printed { self.lists_open() } else { self.lists_closed() };
        if !is_asked_for {
            return Ok(());
        }
        let text = match client.get(&format!("/v1/suspensions/{id}"), &[]) {
            // It was removed meanwhile. The others are printed all the same.
            Err(report) if !report.is_unreachable() => {
                terminal.note(&format!("{}: ", escape::line(id)));
                report.print(terminal);
                return Ok(());
            }
            text => text?,
        };
        let item: Suspension = parse(&text)?;
        let Some(closed) = item.closed.as_ref().filter(|closed| self.fits(&item) && self.ended_so(closed)) else {
            return Ok(());
        };
        if was_printed && !self.json {
            let edited = if closed.arguments.is_some() { ", with edited arguments" } else { "" };
            let line = format!("{} ended: {}{edited}\n", escape::line(id), card::ended(closed));
            return Ok(terminal.line(terminal.style(Style::Faint, &line))?);
        }
        self.print(&text, &item, terminal)
    }

    fn print(&self, item: &str, suspension: &Suspension, terminal: &Terminal) -> Result<(), Report> {
        let shown = if self.json { escape::json_line(item) } else { card::suspension(suspension, terminal) };
        Ok(terminal.line(shown)?)
    }

    fn lists_open(&self) -> bool {
        self.state.map_or(self.decision.is_none() && self.by.is_none(), |state| state != State::Closed)
    }

    fn lists_closed(&self) -> bool {
        self.state.map_or(self.decision.is_some() || self.by.is_some(), |state| state != State::Open)
    }

    /// Whether a suspension is one that the user asks for, open or closed.
    fn fits(&self, item: &Suspension) -> bool {
        let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        is(self.conversation.as_ref().map(ConversationId::as_str), &item.conversation)
            && is(self.caller.as_deref(), &item.caller)
            && is(self.tool.as_deref(), &item.tool)
            && is(self.kind.as_deref(), &item.kind.to_string())
            && is(self.call.as_ref().map(CallId::as_str), &item.call)
            && is(self.turn.map(|turn| turn.to_string()).as_deref(), &item.turn)
    }

    fn ended_so(&self, closed: &Closed) -> bool {
        self.decision.as_ref().is_none_or(|decision| *decision == closed.state.to_string())
            && self.by.as_ref().is_none_or(|by| {
                let by = by.as_str();
                by == closed.by || closed.approvers.iter().any(|approver| approver == by)
            })
    }

    /// Reads every page. The items stay as the host wrote them.
    fn items(&self, client: &Client, terminal: &Terminal) -> Result<Vec<String>, Report> {
        let (state, order) = (self.state.and_then(value_name), value_name(self.order));
        let turn = self.turn.map(|turn| turn.to_string());
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let query = [
                ("conversation", self.conversation.as_ref().map(ConversationId::as_str)),
                ("caller", self.caller.as_deref()),
                ("tool", self.tool.as_deref()),
                ("kind", self.kind.as_deref()),
                ("call", self.call.as_ref().map(CallId::as_str)),
                ("turn", turn.as_deref()),
                ("order", order.as_deref()),
                ("decision", self.decision.as_deref()),
                ("by", self.by.as_ref().map(PrincipalId::as_str)),
                ("state", state.as_deref()),
                ("limit", Some(PAGE)),
                ("after", after.as_deref()),
            ];
            let page: Page = client.read("/v1/pending", &query)?;
            items.extend(page.suspensions.iter().map(|item| item.get().to_owned()));
            for UnreadableSuspension { suspension, turn } in page.unreadable {
                let of = turn.as_ref().map(|turn| format!(" of {turn}")).unwrap_or_default();
                let note = format!("{suspension}{of} is missing here: a stored record is damaged");
                terminal.note(&format!("{} {}\n", terminal.note_style(Style::Bad, "note:"), escape::line(&note)));
            }
            after = page.next;
            if after.is_none() {
                return Ok(items);
            }
        }
    }
}
