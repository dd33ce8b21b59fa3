//! `submit`: a model's answer, as it came, becomes a turn.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::Context as _;
use clap::ValueEnum as _;
use serde_json::value::{RawValue, to_raw_value};

use crate::args::{Format, Submit};
use crate::card;
use crate::client::{Client, understand};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;
use crate::wire::Turn;

/// How long one request waits for the turn before the next does.
const WAIT_MS: &str = "30000";

pub(super) fn run(args: &Submit, terminal: &Terminal) -> Result<(), Report> {
    if matches!(args.format, Some(Format::Mcp)) {
        return Err(Report::new(Exit::Usage, "results have no form of MCP: there each tool is called by itself")
            .hint("choose openai, openai-responses, anthropic or toolgate"));
    }
    let client = Client::new(&args.host)?;
    let mut body = body(&args.file)?;
    let rejection = args.rejection.and_then(|mode| mode.to_possible_value());
    let mut query = vec![("wait_ms", Some("2000"))];
    let besides = [
        ("rejection", rejection.as_ref().map(clap::builder::PossibleValue::get_name)),
        ("context", args.context.as_deref()),
        ("ephemeral", args.ephemeral.then_some("true")),
    ];
    match own_form(&body) {
        Some(members) => body = with(members, &besides)?,
        None => query.extend(besides),
    }
    let turns = format!("/v1/conversations/{}/turns", args.conversation);
    let mut text = client.post(&turns, &query, &body)?;
    let mut turn: Turn = understand(&text)?;
    if (args.wait || args.format.is_some()) && !turn.ended() {
        // Standard output is for the result; who waits wants to know for what.
        terminal.note(&card::turn(&turn, terminal));
        while !turn.ended() {
            let query = [("wait_ms", Some(WAIT_MS)), ("until", Some("settled"))];
            text = client.get(&format!("{turns}/{}", turn.turn), &query)?;
            turn = understand(&text)?;
        }
    }
    match args.format {
        Some(format) => {
            text = client.get(&format!("{turns}/{}", turn.turn), &[("format", Some(format.as_str()))])?;
            terminal.line(text::json(&text))?;
        }
        None if args.json => terminal.line(text::json(&text))?,
        None => terminal.line(card::turn(&turn, terminal).trim_end())?,
    }
    Ok(())
}

fn body(file: &str) -> anyhow::Result<Vec<u8>> {
    if file != "-" {
        return std::fs::read(file).with_context(|| format!("cannot read {file}"));
    }
    let mut body = Vec::new();
    std::io::stdin().lock().read_to_end(&mut body).context("cannot read standard input")?;
    Ok(body)
}

/// The members of a submission in toolgate's own form: what comes with the calls stands beside them there, and in the query
/// where the body is a model's answer as it came.
fn own_form(body: &[u8]) -> Option<BTreeMap<String, Box<RawValue>>> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    members.contains_key("calls").then_some(members)
}

fn with(
    mut members: BTreeMap<String, Box<RawValue>>,
    besides: &[(&str, Option<&str>)],
) -> Result<Vec<u8>, serde_json::Error> {
    for (name, value) in besides {
        let Some(value) = value else { continue };
        // The mode is a word, the others are JSON already.
        let value =
            if *name == "rejection" { to_raw_value(value)? } else { RawValue::from_string((*value).to_owned())? };
        members.insert((*name).to_owned(), value);
    }
    serde_json::to_vec(&members)
}
