//! `pending`: what waits for a person or a client, and how to answer it.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::value::RawValue;

use crate::args::Pending;
use crate::card;
use crate::client::{Client, understand};
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};
use crate::wire::{Page, Suspension};

/// How often `--watch` looks.
const LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Pending, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let mut known = BTreeSet::new();
    let mut first = true;
    loop {
        let items = match all(&client, args) {
            // A host that starts anew is waited for.
            Err(report) if !first && report.code() == Exit::Unreachable as u8 => {
                std::thread::sleep(LOOK);
                continue;
            }
            items => items?,
        };
        let mut now = BTreeSet::new();
        for item in &items {
            let suspension: Suspension = understand(item.get())?;
            if !known.contains(&suspension.suspension) {
                terminal.line(if args.json {
                    text::json_line(item.get())
                } else {
                    card::suspension(&suspension, terminal)
                })?;
            }
            now.insert(suspension.suspension);
        }
        if !args.watch {
            if items.is_empty() && !args.json {
                terminal.line("nothing waits")?;
            }
            return Ok(());
        }
        for gone in known.difference(&now).filter(|_| !args.json) {
            terminal.line(terminal.ink(Ink::Faint, &format!("{} waits no longer\n", text::line(gone))))?;
        }
        (known, first) = (now, false);
        std::thread::sleep(LOOK);
    }
}

/// Every page.
fn all(client: &Client, args: &Pending) -> Result<Vec<Box<RawValue>>, Report> {
    let kind = args.kind.and_then(|kind| kind.to_possible_value());
    let state = args.state.to_possible_value();
    let mut items = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let query = [
            ("conversation", args.conversation.as_ref().map(domain::ConversationId::as_str)),
            ("caller", args.caller.as_deref()),
            ("tool", args.tool.as_deref()),
            ("kind", kind.as_ref().map(clap::builder::PossibleValue::get_name)),
            ("state", state.as_ref().map(clap::builder::PossibleValue::get_name)),
            ("limit", Some("500")),
            ("after", after.as_deref()),
        ];
        let page: Page = client.read("/v1/pending", &query)?;
        items.extend(page.suspensions);
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}
