//! `answer`: a question's answer, or the result of a client's call. `approve` and `deny` share what it sends.

use api::{Kind, Resolve, Resolved, Suspension, Verbatim};
use clap::Args;
use domain::SuspensionId;

use super::Run;
use crate::args::{Connection, json};
use crate::client::{Client, parse};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

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
    data: Option<Verbatim>,
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

impl Run for Answer {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let (client, id) = (Client::new(&self.host)?, self.suspension);
        let shown = suspension(&client, id)?;
        if shown.kind == Kind::Approval {
            return Err(Report::new(Exit::Usage, format!("{id} needs an approval, not an answer"))
                .hint(format!("toolgate approve {id}"))
                .hint(format!("toolgate deny {id}")));
        }
        let first = || shown.allowed.into_iter().next().unwrap_or_else(|| "answer".to_owned());
        let decision = match (self.decision, &self.error) {
            (Some(decision), _) => decision,
            (None, Some(_)) => "error".to_owned(),
            (None, None) => first(),
        };
        let data = self.error.map(|error| Verbatim(api::json::string(&error))).or(self.data);
        send(&client, id, &Resolve { decision, data, comment: self.comment, ..Resolve::default() }, terminal)
    }
}

/// Reads a suspension.
pub(super) fn suspension(client: &Client, id: SuspensionId) -> Result<Suspension, Report> {
    client.read(&format!("/v1/suspensions/{id}"), &[])
}

/// Sends a resolution.
pub(super) fn send(client: &Client, id: SuspensionId, resolve: &Resolve, terminal: &Terminal) -> Result<(), Report> {
    let answer = client.post(&format!("/v1/suspensions/{id}/resolve"), &[], &serde_json::to_vec(resolve)?)?;
    let again = if parse::<Resolved>(&answer)?.replayed { " (the same answer was recorded before)" } else { "" };
    let decision = escape::line(&resolve.decision);
    terminal.line(format!("{} {id}: {decision}{again}", terminal.style(Style::Good, "answered")))?;
    Ok(())
}
