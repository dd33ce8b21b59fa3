//! `backup`: a running host's data as one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use dispatch::ports::Head;
use serde_json::json;
use toolgate::backup;

use super::Run;
use crate::args::Connection;
use crate::client::Client;
use crate::report::{Exit, Report};
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
        if self.file.exists() {
            return Err(exists(&self.file));
        }
        let client = Client::new(&self.host)?;
        let work = PathBuf::from(format!("{}.unfinished", self.file.display()));
        let head = saved(&client, &work).and_then(|head| {
            // Unlike a renaming, this fails if the file exists.
            fs::hard_link(&work, &self.file).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.file),
                _ => error.into(),
            })?;
            Ok(head)
        });
        match fs::remove_file(&work) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let head = head?;
        let folder = self.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(terminal.line(if self.json {
            let value = json!({"file": self.file.to_string_lossy(), "head": head.to_string()});
            escape::json_line(&value.to_string())
        } else {
            format!("the head of the audit is {head}")
        })?)
    }
}

fn exists(file: &Path) -> Report {
    Report::new(Exit::Refused, format!("{} exists", file.display())).hint("name a file that does not exist")
}

/// Writes the backup, and checks that it is whole.
fn saved(client: &Client, work: &Path) -> Result<Head, Report> {
    let from = client.download("/v1/backup")?;
    // A killed command left it.
    let _ = fs::remove_file(work);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(work)?;
    let head = backup::read(Saving { from, to: &mut file }, |_, _| Ok(()))?;
    file.sync_all()?;
    Ok(head)
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
