//! `store import`: fills an empty store with an export.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use clap::Args;
use dispatch::ports::FaultKind;
use store::{ImportError, Moved};
use toolgate::moving::MoveError;

use super::export::print;
use super::progress::Counted;
use crate::args::{Data, Turns, folder_instead, unread};
use crate::commands::Run;
#[cfg(feature = "postgres")]
use crate::commands::runtime;
use crate::report::Report;
use crate::terminal::Terminal;

const NOTHING: &str = "nothing was imported";

/// The bytes that are read at once.
const BUFFER: usize = 1 << 20;

/// Fill an empty store with an export of `toolgate store export`.
///
/// The store is the one that the configuration names: the data folder, or the database of `[store]`. All hosts must be stopped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate store import turns.jsonl --config postgres.toml
  gunzip < turns.jsonl.gz | toolgate store import - --data /var/lib/toolgate

The audit keeps its positions and hashes. The command verifies it and compares it with the export. If it fails or is killed, the store \
stays empty.

To a database: keep the data folder. The first host on the database moves its tokens there. To a data folder: the tokens, the ended \
sessions and the components of the database become files of the folder. Calls that ran at the time of the export run again, as \
after a kill. Never start a host on the old store again.

The tokens of an export become valid. Import only a file of an author to whom you would give an admin token.")]
pub(super) struct Import {
    /// The export; `-` reads standard input
    file: PathBuf,
    /// The maximum size of a record in bytes. A record takes up to four times as many bytes of memory
    #[arg(long, value_name = "BYTES", default_value_t = store::MAX_RECORD)]
    max_record_bytes: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

impl Run for Import {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        if let Some(report) = folder_instead(&self.file, "an export") {
            return Err(report.hint("name the file that `toolgate store export` wrote"));
        }
        let turns = self.data.turns()?;
        let input: Box<dyn Read> = if self.file.as_os_str() == "-" {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(&self.file).map_err(|error| unread(self.file.display(), error))?)
        };
        let mut input = BufReader::with_capacity(BUFFER, Counted::new(input, "read", terminal));
        let moved = self.read(&turns, &mut input)?;
        print(moved, "imported", self.json, terminal)
    }
}

impl Import {
    fn read(&self, turns: &Turns, input: &mut dyn BufRead) -> Result<Moved, Report> {
        match turns {
            Turns::Folder(_) => toolgate::moving::import(&self.data.folder()?, self.max_record_bytes, input).map_err(
                |error| match error {
                    MoveError::Import(error) => {
                        report(error, "name another folder with --data, or move `store` out of it if nobody needs it")
                    }
                    error => error.into(),
                },
            ),
            #[cfg(feature = "postgres")]
            Turns::Database(settings) => {
                let imported = runtime()?.block_on(store::import_database(
                    settings,
                    self.max_record_bytes,
                    input,
                    &toolgate::moving::check,
                ));
                imported.map_err(|error| {
                    report(error, "make a new database and name it in `[store]`, or drop the schema `toolgate` if nobody needs it")
                })
            }
        }
    }
}

fn report(error: ImportError, if_not_empty: &str) -> Report {
    let hint = match &error {
        ImportError::NotEmpty { .. } => if_not_empty,
        ImportError::Damaged { .. } | ImportError::Truncated { .. } | ImportError::Altered(_) => {
            "export again, and copy the file whole"
        }
        ImportError::TooLong { .. } => "do not trust this file; export again, and copy the file whole",
        ImportError::LargeRecord { .. } | ImportError::ManyValues { .. } | ImportError::LargeTurn { .. } => {
            "a host with the default limits stores none as large: if you trust the author of the file, allow more with --max-record-bytes"
        }
        ImportError::NotAnExport => "name a file that `toolgate store export` wrote",
        ImportError::Store(fault) if fault.kind == FaultKind::NoSpace => "free some space on the disk of the store",
        ImportError::Unanswered(_) => return error.into(),
        _ => return Report::from(error).hint(NOTHING),
    };
    Report::from(error).hint(hint).hint(NOTHING)
}
