//! Commands that submit and answer.

use clap::{Args, ValueEnum};
use domain::{ConversationId, Digest, SuspensionId};

use super::look::conversation;
use super::{Connection, Format};

/// The conversation of whoever does not name one.
pub(crate) const CONVERSATION: &str = "cli";

/// Carry out what a model asked for: submit its answer as it came.
///
/// Takes an answer of the OpenAI Chat Completions, OpenAI Responses or Anthropic Messages API, or its assistant message
/// alone, or toolgate's own form. Submitting the same again is safe: it gives the recorded turn.
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
    pub(crate) file: String,
    /// The conversation that it belongs to
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    pub(crate) conversation: ConversationId,
    /// Wait until every call has its outcome
    #[arg(long)]
    pub(crate) wait: bool,
    /// What a denial does to the other calls of the turn
    #[arg(long, value_enum)]
    pub(crate) rejection: Option<Rejection>,
    /// A JSON object for the tools and for whoever approves
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) context: Option<String>,
    /// Write nothing down unless something has to wait
    #[arg(long, conflicts_with = "format")]
    pub(crate) ephemeral: bool,
    /// Print the results as messages for this provider's API; implies --wait
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Print the turn as JSON
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// What a denial does to siblings.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Rejection {
    ContinueSiblings,
    CancelSiblings,
    AbortTurn,
}

/// Approve a call.
///
/// Shows what it approves, and approves exactly that: if anything of it changed in between, nothing is approved.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate approve susp_01935a7c000070008000000000000001
  toolgate approve susp_… --arguments '{\"amount\":10,\"to\":\"b\"}' --comment 'less is enough'")]
pub(crate) struct Approve {
    /// The suspension, as `toolgate pending` shows it
    pub(crate) suspension: SuspensionId,
    /// Why; goes into the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// Arguments to take the place of the submitted ones, where the tool allows that
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) arguments: Option<String>,
    /// Approve only what has this digest [default: that of what is shown]
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect_digest: Option<Digest>,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// Deny a call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate deny susp_01935a7c000070008000000000000001 --comment 'ask the customer first'")]
pub(crate) struct Deny {
    /// The suspension, as `toolgate pending` shows it
    pub(crate) suspension: SuspensionId,
    /// Why; the model reads it, and it goes into the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// Answer a question, or give the result of a client's call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate answer susp_… '\"the blue one\"'                    a question without choices
  toolgate answer susp_… '{\"size\":3}' --decision accept      one with choices
  toolgate answer susp_… --decision decline
  toolgate answer susp_… '{\"latitude\":52.5,\"longitude\":13.4}'   a client's result
  toolgate answer susp_… --error 'the user said no'           a client that could not")]
pub(crate) struct Answer {
    /// The suspension, as `toolgate pending` shows it
    pub(crate) suspension: SuspensionId,
    /// The answer
    #[arg(value_name = "JSON", value_parser = json)]
    pub(crate) data: Option<String>,
    /// Which of the choices, where there are several [default: the only or the first one]
    #[arg(long, value_name = "CHOICE", conflicts_with = "error")]
    pub(crate) decision: Option<String>,
    /// A client's call could not be carried out, and why
    #[arg(long, value_name = "TEXT", conflicts_with = "data")]
    pub(crate) error: Option<String>,
    /// Why; goes into the audit
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// A JSON text, handed on as it is: numbers keep every digit.
fn json(text: &str) -> Result<String, String> {
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(value) => Ok(value.get().to_owned()),
        Err(error) => Err(format!("not JSON: {error}; a text needs quotes of its own, as in '\"yes\"'")),
    }
}
