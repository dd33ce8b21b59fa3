//! `answer`: a question's answer, or the result of a client's call or an external system. `approve` and `deny` share what it sends.

use api::{Resolve, ResolveOne, ResolveSeveral, Resolved, ResolvedSeveral, Suspension, Verbatim};
use clap::Args;
use domain::SuspensionId;
use domain::suspension::{Decision, SuspensionKind};

use super::Run;
use crate::args::{Connection, json};
use crate::card;
use crate::client::Client;
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// The maximum number of answers that a host takes in one request.
const AT_ONCE: usize = 100;

/// Answer a question, or give the result of a client's call or an external system.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate answer susp_… '\"the blue one\"'                    a question without choices
  toolgate answer susp_… '{\"size\":3}' --decision accept      one with choices
  toolgate answer susp_… --decision decline
  toolgate answer susp_… '{\"latitude\":52.5,\"longitude\":13.4}'   a client's result
  toolgate answer susp_… '{\"healthy\":true}'                  the result that a call waits for
  toolgate answer susp_… @result.json                         from a file
  toolgate answer susp_… --error 'the user said no'           a client's failure")]
pub(crate) struct Answer {
    /// The suspension, as `toolgate pending` shows it
    suspension: SuspensionId,
    /// The answer; `@FILE` reads a file, `-` standard input
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
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Answer {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let (client, id) = (Client::new(&self.host)?, self.suspension);
        let shown = suspension(&client, id)?;
        if shown.kind.0 == SuspensionKind::Approval {
            return Err(Report::new(Exit::Usage, format!("{id} needs an approval, not an answer"))
                .hint(format!("toolgate approve {id}"))
                .hint(format!("toolgate deny {id}")));
        }
        let decision = match (self.decision, &self.error) {
            (Some(choice), _) => Decision::from(choice.as_str()),
            (None, Some(_)) => Decision::Error,
            (None, None) => shown.allowed.into_iter().next().map_or_else(|| "answer".into(), |first| first.0),
        };
        let data = self.error.map(|error| Verbatim(api::json::string(&error))).or(self.data);
        let resolve = Resolve { data, comment: self.comment, ..Resolve::new(decision) };
        send(&client, vec![(id, resolve)], self.json, terminal).map(drop)
    }
}

/// Reads a suspension.
pub(super) fn suspension(client: &Client, id: SuspensionId) -> Result<Suspension, Report> {
    client.read(&format!("/v1/suspensions/{id}"), &[])
}

/// Sends answers: one to its suspension, several together. Each is accepted or refused by itself. Returns the accepted ones.
pub(super) fn send(
    client: &Client,
    answers: Vec<(SuspensionId, Resolve)>,
    json: bool,
    terminal: &Terminal,
) -> Result<Vec<Resolved>, Report> {
    if let [(id, resolve)] = answers.as_slice() {
        let resolved: Resolved = client.exchange(&format!("/v1/suspensions/{id}/resolve"), resolve)?;
        if json {
            terminal.line(escape::json_line(&serde_json::to_string(&resolved)?))?;
        } else {
            print(&resolved, resolve, terminal)?;
        }
        return Ok(vec![resolved]);
    }
    let (mut accepted, mut worst) = (Vec::new(), None);
    for answers in answers.chunks(AT_ONCE) {
        let several = ResolveSeveral { answers: answers.iter().map(one_of_several).collect() };
        let results: ResolvedSeveral = client.exchange("/v1/pending/resolve", &several)?;
        for (result, (_, resolve)) in results.answers.into_iter().zip(answers) {
            if json {
                terminal.line(escape::json_line(&serde_json::to_string(&result)?))?;
            }
            if let Some(problem) = result.problem {
                let refused = client.refused(result.status, problem);
                worst = worst.max(Some(refused.exit()));
                if !json {
                    terminal.note(&format!("{}: ", escape::line(&result.suspension)));
                    refused.print(terminal);
                }
            } else if let Some(resolved) = result.ok {
                if !json {
                    print(&resolved, resolve, terminal)?;
                }
                accepted.push(resolved);
            }
        }
    }
    worst.map_or(Ok(accepted), |worst| Err(Report::silent(worst)))
}

fn one_of_several((id, resolve): &(SuspensionId, Resolve)) -> ResolveOne {
    let Resolve { decision, data, arguments, comment, expect_digest, standing } = resolve.clone();
    ResolveOne { suspension: id.to_string(), decision, data, arguments, comment, expect_digest, standing }
}

fn print(resolved: &Resolved, resolve: &Resolve, terminal: &Terminal) -> Result<(), Report> {
    let again = if resolved.replayed { " (the same answer was recorded before)" } else { "" };
    let (id, decision) = (escape::line(&resolved.suspension), escape::line(resolve.decision.0.as_str()));
    let waits = match resolved.needs.as_slice() {
        [] => String::new(),
        needs => format!(", {}: the call still waits", card::approvals(needs)),
    };
    terminal.line(format!("{} {id}: {decision}{waits}{again}", terminal.style(Style::Good, "answered")))?;
    Ok(())
}
