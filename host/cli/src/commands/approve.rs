//! `approve`: shows calls and approves exactly what it has shown.

use api::{Edit, EditDefaults, Resolve, Verbatim};
use clap::Args;
use domain::{
    Digest, SuspensionId,
    suspension::{Decision, SuspensionKind},
};

use super::Run;
use super::answer::{send, suspension};
use crate::args::{self, Connection};
use crate::card;
use crate::client::Client;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Approve a call, or several.
///
/// Shows each call and approves exactly that. If a call has changed in between, its approval is refused. The others are
/// approved all the same.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate approve susp_01935a7c000070008000000000000001
  toolgate approve susp_… susp_… susp_…                       in one request
  toolgate approve susp_… --arguments '{\"amount\":10,\"to\":\"b\"}' --comment 'less is enough'
  toolgate approve susp_… --arguments @edited.json")]
pub(crate) struct Approve {
    /// The suspensions, as `toolgate pending` shows them
    #[arg(required = true, value_name = "SUSPENSION")]
    suspensions: Vec<SuspensionId>,
    /// A comment for the audit log
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Arguments that replace the submitted ones, if the tool allows edits; `@FILE` reads a file, `-` standard input
    #[arg(long, value_name = "JSON", value_parser = args::json)]
    arguments: Option<Verbatim>,
    /// Approve only a call with this digest [default: the digest of the call that is shown]
    #[arg(long, value_name = "DIGEST")]
    expect_digest: Option<Digest>,
    /// Print JSON: one object a line, without the calls
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Approve {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        if self.suspensions.len() > 1 && (self.arguments.is_some() || self.expect_digest.is_some()) {
            return Err(Report::new(Exit::Usage, "--arguments and --expect-digest are for a single call")
                .hint("approve the calls one by one"));
        }
        let client = Client::new(&self.host)?;
        let (mut answers, mut edited, mut worst) = (Vec::new(), None, None);
        for id in self.suspensions {
            let shown = match suspension(&client, id) {
                Ok(shown) => shown,
                Err(report) if report.is_unreachable() => return Err(report),
                // The others are approved all the same.
                Err(report) => {
                    worst = worst.max(Some(report.exit()));
                    if self.json {
                        let mut line = report.as_json();
                        line["suspension"] = id.to_string().into();
                        terminal.line(escape::json_line(&line.to_string()))?;
                    } else {
                        terminal.note(&format!("{id}: "));
                        report.print(terminal);
                    }
                    continue;
                }
            };
            if !self.json {
                terminal.line(card::suspension(&shown, terminal).trim_end())?;
            }
            let digest = self.expect_digest.map_or_else(|| shown.digest.clone(), |digest| digest.to_string());
            let resolve = Resolve {
                arguments: self.arguments.clone(),
                comment: self.comment.clone(),
                expect_digest: Some(digest),
                ..Resolve::new(Decision::Approve)
            };
            answers.push((id, resolve));
            let is_open = shown.closed.is_none() && shown.kind.0 == SuspensionKind::Approval;
            if let Some(arguments) = self.arguments.clone().filter(|_| is_open && !self.json) {
                let edit = Edit { arguments };
                let found: EditDefaults = client.exchange(&format!("/v1/suspensions/{id}/defaults"), &edit)?;
                edited = Some((shown, edit.arguments, found.defaults));
            }
        }
        let accepted = send(&client, answers, self.json, terminal)?;
        if let Some((shown, approved, defaults)) = edited {
            let still_waits = accepted.iter().any(|resolved| !resolved.needs.is_empty());
            let rows = if still_waits { card::voted } else { card::approved };
            let rows = rows(card::submitted(&shown), approved.as_str()) + &card::of_edit(defaults.as_ref());
            terminal.line(rows.trim_end())?;
        }
        worst.map_or(Ok(()), |worst| Err(Report::silent(worst)))
    }
}
