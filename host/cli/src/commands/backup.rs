//! `backup`: a running host's data as one file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;
use dispatch::ports::Head;
use serde_json::json;
use toolgate::backup;

use super::Run;
use crate::args::Connection;
use crate::client::Client;
use crate::new_file;
use crate::report::Report;
use crate::terminal::Terminal;

/// Back up the data of a running host to a file.
///
/// Needs the role admin. Writes wait while the host copies its database; reads go on.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate backup toolgate-2026-01-31.backup
  toolgate restore toolgate-2026-01-31.backup /var/lib/toolgate-restored

The file gets its name when it is whole. Only you can read it. It has everything that turns and plugins stored, components and \
the hashes of tokens. It has no session key, so every session and one-time link ends with a restore.")]
pub(crate) struct Backup {
    /// The new file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Backup {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let head = new_file::write(&self.file, |file| saved(&client, file))?;
        Ok(terminal.line(if self.json {
            let value = json!({"file": self.file.to_string_lossy(), "head": head.to_string()});
            escape::json_line(&value.to_string())
        } else {
            format!("the head of the audit is {head}")
        })?)
    }
}

/// Writes the backup, and checks that it is whole.
fn saved(client: &Client, file: &mut File) -> Result<Head, Report> {
    let from = client.download("/v1/backup")?;
    Ok(backup::read(Saving { from, to: file }, |_, _| Ok(()))?)
}

/// Writes everything that is read.
struct Saving<'a, R> {
    from: R,
    to: &'a mut File,
}

impl<R: Read> Read for Saving<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.to.write_all(&buffer[..read])?;
        Ok(read)
    }
}
