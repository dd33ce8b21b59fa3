//! `logs`: the last lines that the guest of a call wrote.

use std::collections::BTreeMap;
use std::time::Duration;

use api::{CallLog, LogLine};
use clap::Args;
use domain::{CallId, ConversationId, outcome::Status};
use serde::Serialize;

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::card;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// The pause between two looks at the log of a running call.
const PAUSE: Duration = Duration::from_millis(500);

/// Show the last lines that the tool of a call logged or printed.
///
/// The host keeps the last lines of each run of a call. They are removed with the turn. A call of an ephemeral turn has no log.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate logs call_1
  toolgate logs call_1 --conversation support:42 --follow
  toolgate logs call_1 --json")]
pub(crate) struct Logs {
    /// The call, by the id that its caller chose
    #[arg(value_name = "CALL")]
    call: CallId,
    /// The conversation of the call
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// Print new lines until the call has ended
    #[arg(long)]
    follow: bool,
    /// Print JSON; with --follow, one line of the log a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// A line for programs that follow a log.
#[derive(Serialize)]
struct Followed<'a> {
    run: u32,
    #[serde(flatten)]
    line: &'a LogLine,
}

impl Run for Logs {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let path = format!("/v1/conversations/{}/calls/{}/log", self.conversation, self.call);
        if self.json && !self.follow {
            terminal.line(escape::json_line(&client.get(&path, &[])?))?;
            return Ok(());
        }
        let mut seen = BTreeMap::new();
        loop {
            let log: CallLog = parse(&client.get(&path, &[])?)?;
            for line in self.news(&log, &mut seen, terminal)? {
                terminal.line(line)?;
            }
            if !self.follow || matches!(log.status.0, Status::Resolved | Status::Errored) {
                if seen.is_empty() && !self.json {
                    terminal.line(format!("{} has written nothing that is kept", escape::line(&log.call)))?;
                }
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Logs {
    /// The lines that were not shown before. `seen` has the last line of each run.
    fn news(&self, log: &CallLog, seen: &mut BTreeMap<u32, u64>, terminal: &Terminal) -> Result<Vec<String>, Report> {
        let mut news = Vec::new();
        for run in &log.runs {
            let before = seen.get(&run.run).copied();
            if before.is_none() && !self.json && (log.runs.len() > 1 || run.run > 1) {
                news.push(terminal.style(Style::Strong, &format!("run {}", run.run)));
            }
            let before = before.unwrap_or_default();
            if run.left_out > before && !self.json {
                let missing = run.left_out - before;
                news.push(terminal.style(Style::Faint, &format!("({missing} earlier lines are not kept)")));
            }
            for line in run.lines.iter().filter(|line| line.line > before) {
                news.push(if self.json {
                    escape::json_line(&serde_json::to_string(&Followed { run: run.run, line })?)
                } else {
                    card::log_line(line, terminal)
                });
            }
            let last = run.lines.last().map_or(run.left_out, |line| line.line);
            seen.insert(run.run, last.max(before));
        }
        Ok(news)
    }
}
