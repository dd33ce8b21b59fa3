//! `answer`: a question's answer, or the result of a client's call. `approve` and `deny` share what it sends.

use clap::Args;
use domain::SuspensionId;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Run;
use crate::args::{Connection, json};
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};
use crate::wire::{Resolved, Suspension};

/// Answer a question, or give the result of a client's call.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate answer susp_… '\"the blue one\"'                    a question without choices
  toolgate answer susp_… '{\"size\":3}' --decision accept      one with choices
  toolgate answer susp_… --decision decline
  toolgate answer susp_… '{\"latitude\":52.5,\"longitude\":13.4}'   a client's result
  toolgate answer susp_… --error 'the user said no'           a client's failure")]
pub(crate) struct Answer {
    /// The suspension, as `toolgate pending` shows it
    suspension: SuspensionId,
    /// The answer
    #[arg(value_name = "JSON", value_parser = json)]
    data: Option<Box<RawValue>>,
    /// The choice, if there are several [default: the first]
    #[arg(long, value_name = "CHOICE", conflicts_with = "error")]
    decision: Option<String>,
    /// Why the client could not carry out the call
    #[arg(long, value_name = "TEXT", conflicts_with = "data")]
    error: Option<String>,
    /// A comment for the audit log
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    #[command(flatten)]
    host: Connection,
}

/// The body of a resolution.
#[derive(Serialize, Default)]
pub(super) struct Resolve<'a> {
    pub(super) decision: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expect_digest: Option<&'a str>,
}

impl Run for Answer {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let (client, id) = (Client::new(&self.host)?, self.suspension);
        let shown = suspension(&client, id)?;
        if shown.kind == "approval" {
            return Err(Report::new(Exit::Usage, format!("{id} asks for an approval and not for an answer"))
                .hint(format!("toolgate approve {id}"))
                .hint(format!("toolgate deny {id}")));
        }
        let decision = match (&self.decision, &self.error) {
            (Some(decision), _) => decision.as_str(),
            (None, Some(_)) => "error",
            (None, None) => shown.allowed.first().map_or("answer", String::as_str),
        };
        let data = self.error.as_ref().map(to_raw_value).transpose()?.or(self.data);
        let comment = self.comment.as_deref();
        send(&client, id, &Resolve { decision, data: data.as_deref(), comment, ..Resolve::default() }, terminal)
    }
}

/// Reads a suspension.
pub(super) fn suspension(client: &Client, id: SuspensionId) -> Result<Suspension, Report> {
    client.read(&format!("/v1/suspensions/{id}"), &[])
}

/// Sends a resolution.
pub(super) fn send(
    client: &Client,
    id: SuspensionId,
    resolve: &Resolve<'_>,
    terminal: &Terminal,
) -> Result<(), Report> {
    let answer = client.post(&format!("/v1/suspensions/{id}/resolve"), &[], &serde_json::to_vec(resolve)?)?;
    let again = if parse::<Resolved>(&answer)?.replayed { " (the same answer was recorded before)" } else { "" };
    let decision = text::line(resolve.decision);
    terminal.line(format!("{} {id}: {decision}{again}", terminal.style(Style::Good, "answered")))?;
    Ok(())
}
