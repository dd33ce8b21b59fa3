//! `approve`: shows a call and approves exactly what it has shown.

use api::{Resolve, Verbatim};
use clap::Args;
use domain::{Digest, SuspensionId, suspension::Decision};

use super::Run;
use super::answer::{send, suspension};
use crate::args::{Connection, json};
use crate::card;
use crate::client::Client;
use crate::report::Report;
use crate::terminal::Terminal;

/// Approve a call.
///
/// Shows the call and approves exactly that. If the call has changed in between, the approval is refused.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate approve susp_01935a7c000070008000000000000001
  toolgate approve susp_… --arguments '{\"amount\":10,\"to\":\"b\"}' --comment 'less is enough'")]
pub(crate) struct Approve {
    /// The suspension, as `toolgate pending` shows it
    suspension: SuspensionId,
    /// A comment for the audit log
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Arguments that replace the submitted ones, if the tool allows edits
    #[arg(long, value_name = "JSON", value_parser = json)]
    arguments: Option<Verbatim>,
    /// Approve only a call with this digest [default: the digest of the call that is shown]
    #[arg(long, value_name = "DIGEST")]
    expect_digest: Option<Digest>,
    #[command(flatten)]
    host: Connection,
}

impl Run for Approve {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let shown = suspension(&client, self.suspension)?;
        terminal.line(card::suspension(&shown, terminal).trim_end())?;
        let digest = self.expect_digest.map_or_else(|| shown.digest.clone(), |digest| digest.to_string());
        let resolve = Resolve {
            decision: Decision::Approve.as_str().to_owned(),
            arguments: self.arguments,
            comment: self.comment,
            expect_digest: Some(digest),
            ..Resolve::default()
        };
        send(&client, self.suspension, &resolve, terminal)?;
        if let Some(approved) = resolve.arguments.filter(|_| shown.closed.is_none()) {
            terminal.line(card::approved(shown.arguments.as_str(), approved.as_str()).trim_end())?;
        }
        Ok(())
    }
}
