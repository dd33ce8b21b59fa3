//! `submit`: sends a model's answer to the host as a turn.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use api::formats::{self, Answer};
use api::{Turn, TurnState, Verbatim};
use clap::Args;
use domain::{ConversationId, event::Rejection};
use serde_json::value::{RawValue, to_raw_value};

use super::Run;
use crate::args::{self, CONVERSATION, Connection, conversation, format, json};
use crate::card;
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// The advice for a file that is not JSON.
const WHOLE_ANSWER: &str = "save the whole answer of the model's API, or its assistant message, and submit that file";

/// How long one request waits for the turn. Then the next request waits.
const WAIT_MS: &str = "30000";

/// Run the tool calls of a model's answer.
///
/// Takes an answer of the OpenAI Chat Completions, OpenAI Responses or Anthropic Messages API, its assistant message
/// alone, or toolgate's own format. Submitting the same answer again is safe: the host returns the recorded turn.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate submit answer.json
  curl … | toolgate submit - --conversation support:42
  toolgate submit answer.json --wait --format openai      the messages to send back to the model
  toolgate submit answer.json --rejection cancel_siblings")]
pub(crate) struct Submit {
    /// The answer, or `-` for standard input
    #[arg(value_name = "FILE|-")]
    file: String,
    /// The conversation of the answer
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// Wait until every call has its outcome
    #[arg(long)]
    wait: bool,
    /// The effect of a denial on the other calls of the turn
    #[arg(long, value_parser = Rejection::NAMES)]
    rejection: Option<String>,
    /// A JSON object for the tools and for the approvers; `@FILE` reads a file
    #[arg(long, value_name = "JSON", value_parser = json)]
    context: Option<Verbatim>,
    /// Store nothing unless a call has to wait
    #[arg(long, conflicts_with = "format")]
    ephemeral: bool,
    /// Print the results as messages for this provider's API; implies --wait. If there is nothing to append, this is `[]`,
    /// or `null` for anthropic
    #[arg(long, value_parser = format::<Answer>())]
    format: Option<String>,
    /// Print the turn as JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Submit {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        // A mistake in the file is reported even if no host runs.
        let mut body = body(&self.file)?;
        let client = Client::new(&self.host)?;
        let mut query = vec![("wait_ms", Some("2000"))];
        let options = [
            ("rejection", self.rejection.as_deref()),
            ("context", self.context.as_ref().map(Verbatim::as_str)),
            ("ephemeral", self.ephemeral.then_some("true")),
        ];
        match own_format(&body) {
            Some(members) => body = with(members, &options)?,
            None => query.extend(options),
        }
        let turns = format!("/v1/conversations/{}/turns", self.conversation);
        let mut answer = client.post(&turns, &query, &body).map_err(not_ours)?;
        let mut turn: Turn = parse(&answer)?;
        if (self.wait || self.format.is_some()) && turn.state == TurnState::Open {
            // Standard output is for the result, so the turn that it waits for goes to standard error.
            terminal.note(&card::turn(&turn, terminal));
            terminal.note(&waiting(&turn));
            while turn.state == TurnState::Open {
                let query = [("wait_ms", Some(WAIT_MS)), ("until", Some("settled"))];
                answer = client.get(&format!("{turns}/{}", turn.turn), &query)?;
                turn = parse(&answer)?;
            }
        }
        match &self.format {
            Some(format) => {
                answer = client.get(&format!("{turns}/{}", turn.turn), &[("format", Some(format))])?;
                terminal.line(escape::json(&answer))?;
            }
            None if self.json => terminal.line(escape::json(&answer))?,
            None => terminal.line(card::turn(&turn, terminal).trim_end())?,
        }
        Ok(())
    }
}

/// The reason why the command still waits, for people.
fn waiting(turn: &Turn) -> String {
    match turn.pending.len() {
        0 => "waiting until its calls have run; Ctrl-C ends the waiting and not the calls\n".to_owned(),
        count => format!(
            "waiting until all calls have ended; {count} of them {} an answer, from another terminal: `toolgate pending` \
             lists them. Ctrl-C ends the waiting and not the calls\n",
            if count == 1 { "needs" } else { "need" }
        ),
    }
}

/// The content of the file, which is JSON.
fn body(file: &str) -> Result<Vec<u8>, Report> {
    let body = content(file)?;
    let file = if file == "-" { "standard input" } else { file };
    let no_json = || Report::new(Exit::Usage, format!("{file} is not JSON")).hint(WHOLE_ANSWER);
    let Ok(text) = std::str::from_utf8(&body) else { return Err(no_json().because("it is not UTF-8 text")) };
    formats::check(text).map_err(|malformed| {
        if malformed.is_duplicate() {
            Report::new(Exit::Usage, format!("{file} has a duplicate key"))
                .because(malformed)
                .hint("readers differ in which of the two they take; keep one")
        } else {
            no_json().because(malformed)
        }
    })?;
    Ok(body)
}

fn content(file: &str) -> Result<Vec<u8>, Report> {
    if file != "-" {
        if let Some(folder) = args::folder_instead(Path::new(file), "a file") {
            return Err(folder.hint("name the file with the answer of the model's API"));
        }
        return std::fs::read(file).map_err(|error| args::unread(file, error));
    }
    let mut content = Vec::new();
    std::io::stdin().lock().read_to_end(&mut content).context("cannot read standard input")?;
    Ok(content)
}

/// The members of a submission in toolgate's own format. There the options are members beside the calls; with a
/// provider's format they are in the query.
fn own_format(body: &[u8]) -> Option<BTreeMap<String, Box<RawValue>>> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    members.contains_key("calls").then_some(members)
}

fn with(
    mut members: BTreeMap<String, Box<RawValue>>,
    options: &[(&str, Option<&str>)],
) -> Result<Vec<u8>, serde_json::Error> {
    for (name, value) in options {
        let Some(value) = value else { continue };
        // The rejection is a word. The other values are JSON already.
        let value =
            if *name == "rejection" { to_raw_value(value)? } else { RawValue::from_string((*value).to_owned())? };
        members.insert((*name).to_owned(), value);
    }
    serde_json::to_vec(&members)
}

/// A submission to a new conversation begins it. So a conversation that "does not exist" belongs to somebody else.
fn not_ours(report: Report) -> Report {
    let own = "a conversation belongs to its first submitter: `toolgate submit FILE --conversation ID` begins your own";
    if report.is_not_found() { report.hint(own) } else { report }
}
