//! `submit`: a model's answer, as it came, becomes a turn.

use std::io::Read as _;

use anyhow::Context as _;
use clap::ValueEnum as _;

use crate::args::{Format, Submit};
use crate::card;
use crate::client::{Client, understand};
use crate::escape;
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
    let rejection = args.rejection.and_then(|mode| mode.to_possible_value());
    let query = [
        ("wait_ms", Some("2000")),
        ("rejection", rejection.as_ref().map(clap::builder::PossibleValue::get_name)),
        ("context", args.context.as_deref()),
        ("ephemeral", args.ephemeral.then_some("true")),
    ];
    let turns = format!("/v1/conversations/{}/turns", args.conversation);
    let mut text = client.post(&turns, &query, &body(&args.file)?)?;
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
            terminal.line(escape::json(&text))?;
        }
        None if args.json => terminal.line(escape::json(&text))?,
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
