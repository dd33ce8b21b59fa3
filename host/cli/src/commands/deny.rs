//! `deny`: calls that a person does not allow.

use api::Resolve;
use clap::Args;
use domain::{SuspensionId, suspension::Decision};

use super::Run;
use super::answer::send;
use crate::args::Connection;
use crate::client::Client;
use crate::report::Report;
use crate::terminal::Terminal;

/// Deny a call, or several.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate deny susp_01935a7c000070008000000000000001 --comment 'ask the customer first'
  toolgate deny susp_… susp_… susp_…                          in one request")]
pub(crate) struct Deny {
    /// The suspensions, as `toolgate pending` shows them
    #[arg(required = true, value_name = "SUSPENSION")]
    suspensions: Vec<SuspensionId>,
    /// Why, for the model and for the audit log
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Print JSON: one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Deny {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let resolve = Resolve { comment: self.comment, ..Resolve::new(Decision::Deny) };
        let answers = self.suspensions.into_iter().map(|id| (id, resolve.clone())).collect();
        send(&Client::new(&self.host)?, answers, self.json, terminal).map(drop)
    }
}
