//! `store export`: everything in the store as JSON lines.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use store::{ExportError, Moved, StoreSettings};

use super::progress::Counted;
use crate::args::{Data, NO_STORE, Turns};
use crate::commands::Run;
#[cfg(feature = "postgres")]
use crate::commands::runtime;
use crate::new_file;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Write the whole store as JSON lines, which `toolgate store import` reads.
///
/// The host of a data folder must be stopped, and a folder of an older version is refused. Hosts on a database may run: the export
/// is one snapshot of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate store export --output turns.jsonl
  toolgate store export --config postgres.toml | gzip > turns.jsonl.gz

It has turns, suspensions, the audit, standing approvals, deliveries, journals and logs of calls, and the data of plugins. \
From a database, it also has the tokens, the ended sessions and the components. A data folder has these in files of its own: keep the \
folder. Keys, checkpoints and compiled code are never part of it.")]
pub(super) struct Export {
    /// A new file, which only you can read. Default: standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON. Without --output, only errors
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

impl Run for Export {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let turns = self.data.turns()?;
        let Some(output) = &self.output else {
            let moved = write(&turns, &mut Counted::new(terminal.raw(), "wrote", terminal))?;
            if !self.json {
                terminal.note(&format!("{}\n", in_words("exported", moved)));
            }
            return Ok(());
        };
        let moved =
            new_file::write(output, |file| write(&turns, &mut Counted::new(BufWriter::new(file), "wrote", terminal)))?;
        print(moved, "exported", self.json, terminal)
    }
}

fn write(turns: &Turns, out: &mut dyn Write) -> Result<Moved, Report> {
    match turns {
        Turns::Folder(folder) if !folder.is_dir() => {
            Err(Report::new(Exit::Refused, format!("there is no store in {}", folder.display())).hint(NO_STORE))
        }
        Turns::Folder(folder) => {
            let opened = store::open(folder, &StoreSettings { migrates: false, ..StoreSettings::default() })?;
            opened.export(out).map_err(report)
        }
        #[cfg(feature = "postgres")]
        Turns::Database(settings) => runtime()?.block_on(store::export_database(settings, out)).map_err(report),
    }
}

fn report(error: ExportError) -> Report {
    let is_damage = matches!(&error, ExportError::Store(fault) if fault.is_damage());
    let report = Report::from(error);
    if is_damage { report.hint("`toolgate store salvage` copies what is intact of a data folder") } else { report }
}

/// Prints what was moved.
pub(super) fn print(moved: Moved, verb: &str, json: bool, terminal: &Terminal) -> Result<(), Report> {
    Ok(terminal.line(if json {
        json!({"lines": moved.lines, "head": moved.head.to_string()}).to_string()
    } else {
        in_words(verb, moved)
    })?)
}

fn in_words(verb: &str, moved: Moved) -> String {
    format!("{verb} {} lines; the head of the audit is {}", moved.lines, moved.head)
}
