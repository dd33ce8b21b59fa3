//! `progress`: a client reports how far a call is.

use api::{ProgressReported, ReportProgress, Verbatim};
use clap::Args;
use domain::SuspensionId;

use super::Run;
use crate::args::{Connection, json};
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Report the progress of a call that you carry out as its client.
///
/// Only for tools that declare `streaming`. Those who follow the conversation see the report. It is not stored, and the call
/// does not get more time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate progress susp_01935a7c000070008000000000000001 'page 3 of 12' --fraction 0.25
  toolgate progress susp_… scanning '{\"page\":3}'")]
pub(crate) struct Progress {
    /// The suspension, as `toolgate pending` shows it
    suspension: SuspensionId,
    /// One line for people
    message: String,
    /// Data for the program that shows the call; `@FILE` reads a file, `-` standard input
    #[arg(value_name = "JSON", value_parser = json)]
    data: Option<Verbatim>,
    /// The finished part, 0 to 1
    #[arg(long, value_name = "NUMBER")]
    fraction: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Progress {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let report = ReportProgress { message: self.message, fraction: self.fraction, data: self.data };
        let path = format!("/v1/suspensions/{}/progress", self.suspension);
        let reported: ProgressReported = Client::new(&self.host)?.exchange(&path, &report)?;
        if self.json {
            return Ok(terminal.line(escape::json_line(&serde_json::to_string(&reported)?))?);
        }
        let said = if reported.dropped {
            terminal.style(
                Style::Open,
                "dropped: earlier reports used up `limits.progress_updates` or `limits.progress_bytes`",
            )
        } else {
            terminal.style(Style::Good, "reported")
        };
        terminal.line(said)?;
        Ok(())
    }
}
