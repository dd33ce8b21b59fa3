//! `restore`: a data folder from a backup.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolgate::backup;

use super::Run;
use crate::args::{folder_instead, not_a_file, unread};
use crate::report::Report;
use crate::terminal::Terminal;

/// Make a data folder from a backup.
///
/// Verifies the audit, and compares its head with that of the backup.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate restore toolgate-2026-01-31.backup /var/lib/toolgate-restored
  toolgate serve --data /var/lib/toolgate-restored

Tokens that were revoked after the backup are valid again: revoke them before you start the host. Calls that ran at the time of \
the backup run again, as after a kill. Never run the old folder and the restored one at the same time.")]
pub(crate) struct Restore {
    /// The backup
    file: PathBuf,
    /// The new data folder. It must be empty or not exist
    folder: PathBuf,
    /// Do not verify the audit: for the backup of a host with damaged records, which `toolgate store salvage` reads
    #[arg(long)]
    unverified: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Run for Restore {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        if let Some(report) = folder_instead(&self.file, "a backup") {
            return Err(report.hint("name the file that `toolgate backup` wrote"));
        }
        not_a_file(&self.folder)?;
        let file = File::open(&self.file).map_err(|error| unread(self.file.display(), error))?;
        let head = backup::restore(BufReader::new(file), &self.folder, self.unverified)?;
        Ok(terminal.line(if self.json {
            let value = json!({"folder": self.folder.to_string_lossy(), "head": head.to_string()});
            escape::json_line(&value.to_string())
        } else {
            format!("restored; the head of the audit is {head}")
        })?)
    }
}
