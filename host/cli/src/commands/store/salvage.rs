//! `store salvage`: makes a new data folder from what is intact in a damaged one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use dispatch::ports::Clock as _;
use serde_json::json;
use store::{SalvageError, Salvaged, StoreSettings};
use toolgate::WallClock;

use crate::args::not_a_file;
use crate::commands::Run;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Files of a data folder that a new one does not get: they are about a running host, or can be made again.
const LEFT_OUT: [&str; 6] = ["store", "compiled", "address", "lock", "tokens.lock", "backup.unfinished"];

/// Make a new data folder from what is intact in a damaged one.
///
/// The host must be stopped. The damaged folder stays as it is. The disk needs room for two more copies of the store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate store salvage /var/lib/toolgate /var/lib/toolgate-salvaged
  toolgate audit verify --data /var/lib/toolgate-salvaged

A turn with a lost record is left out as a whole, and its call ids are never accepted again. The audit keeps all its \
positions and hashes. Its last entry names everything that is lost.")]
pub(super) struct Salvage {
    /// The damaged data folder
    source: PathBuf,
    /// The new data folder. It must not exist
    target: PathBuf,
    /// Go on if call ids of lost turns are lost too. Their calls can then be submitted again, and run again
    #[arg(long)]
    forget_call_ids: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Run for Salvage {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        not_a_file(&self.source)?;
        let damaged = self.source.join("store");
        if !damaged.is_dir() {
            return Err(Report::new(Exit::Refused, format!("there is no store in {}", self.source.display())));
        }
        if self.target.exists() {
            let message = format!("{} exists", self.target.display());
            return Err(Report::new(Exit::Refused, message).hint("name a folder that does not exist"));
        }
        // The folder gets its name when it is whole.
        let mut work = self.target.as_os_str().to_owned();
        work.push(".unfinished");
        let work = PathBuf::from(work);
        if work.exists() {
            return Err(SalvageError::Unfinished(work).into());
        }
        toolgate::private_folder(&work)?;
        let done = self.salvaged(&damaged, &work);
        let Ok(salvaged) = &done else {
            fs::remove_dir_all(&work)?;
            return done.map(drop);
        };
        self.print(salvaged, terminal)
    }
}

impl Salvage {
    fn salvaged(&self, damaged: &Path, work: &Path) -> Result<Salvaged, Report> {
        let (settings, now) = (StoreSettings::default(), WallClock.now());
        let salvaged = store::salvage(damaged, &work.join("store"), &settings, now, self.forget_call_ids);
        let salvaged = salvaged.map_err(|error| {
            let hint = match &error {
                SalvageError::CallIds => "--forget-call-ids accepts that",
                _ => "restore a backup, or keep the folder for somebody who knows sled",
            };
            Report::from(error).hint(hint)
        })?;
        copy(&self.source, work, &LEFT_OUT)?;
        File::open(work)?.sync_all()?;
        fs::rename(work, &self.target)?;
        File::open(parent(&self.target))?.sync_all()?;
        Ok(salvaged)
    }

    fn print(&self, salvaged: &Salvaged, terminal: &Terminal) -> Result<(), Report> {
        let Salvaged { commits, turns, lost, entries, incomplete, values: (values, all_values), head } = salvaged;
        if self.json {
            let turns: Vec<_> = turns.iter().map(ToString::to_string).collect();
            let value = json!({
                "commits": commits,
                "turns_left_out": turns,
                "lost_positions": lost,
                "lost_entries": entries,
                "incomplete": incomplete,
                "values": values,
                "all_values": all_values,
                "head": head.to_string(),
            });
            return Ok(terminal.line(value.to_string())?);
        }
        terminal.line(format!("kept {commits} commits and {values} values of plugins"))?;
        for turn in turns {
            terminal.line(format!("left out {turn}: a record of it is lost"))?;
        }
        for position in lost {
            terminal.line(format!("lost the commit at position {position}"))?;
        }
        for (entry, count) in entries {
            terminal.line(format!("lost {count}: {entry}"))?;
        }
        for kind in incomplete {
            terminal.line(format!("a damaged part had {kind}; those that follow from the commits were made again"))?;
        }
        if !all_values {
            terminal.line("some values of plugins are lost, and nobody knows which")?;
        }
        Ok(terminal.line(format!("the head of the audit is {head}"))?)
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies the files of a folder, with those of its folders, and syncs them.
fn copy(from: &Path, to: &Path, left_out: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if left_out.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let (from, to) = (entry.path(), to.join(name));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to, &[])?;
        } else if kind.is_file() {
            fs::copy(&from, &to)?;
            File::open(&to)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}
