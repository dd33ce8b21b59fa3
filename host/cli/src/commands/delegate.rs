//! `delegate`: passes an approver's authority over one approval to somebody else.

use api::{Delegate as Body, Delegated};
use clap::Args;
use domain::{PrincipalId, SuspensionId};

use super::Run;
use crate::args::Connection;
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Let somebody else decide about an approval instead of you.
///
/// Only an approver whom a rule names can delegate, and only to a principal with the role approver that has no authority over
/// it yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate delegate susp_01935a7c000070008000000000000001 --to bob --comment 'I am away'")]
pub(crate) struct Delegate {
    /// The suspension, as `toolgate pending` shows it
    suspension: SuspensionId,
    /// The principal who decides instead
    #[arg(long, value_name = "NAME")]
    to: PrincipalId,
    /// A comment for the audit log
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Delegate {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let body = Body { to: self.to.to_string(), comment: self.comment };
        let path = format!("/v1/suspensions/{}/delegate", self.suspension);
        let done: Delegated = Client::new(&self.host)?.exchange(&path, &body)?;
        if self.json {
            terminal.line(escape::json_line(&serde_json::to_string(&done)?))?;
            return Ok(());
        }
        let (id, to) = (escape::line(&done.suspension), escape::line(&done.to));
        terminal.line(format!("{} {id} to {to}", terminal.style(Style::Good, "delegated")))?;
        Ok(())
    }
}
