//! `export`: the store of a stopped host, one JSON object a line.

use std::io::Write as _;

use clap::Args;

use super::Run;
use crate::args::{Data, NO_STORE};
use crate::report::Report;
use crate::terminal::Terminal;

/// Write every record of the store to standard output, one JSON object a line.
///
/// The host must be stopped: the command reads its data folder. It does not migrate a folder of an older version, and
/// refuses it.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Print an error as JSON too. The records are JSON in any case
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

impl Run for Export {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let folder = self.data.store(NO_STORE, "export the database with the tools of PostgreSQL, such as pg_dump")?;
        let opened =
            store::open(&folder, &store::StoreSettings { migrates: false, ..store::StoreSettings::default() })?;
        let mut out = terminal.raw();
        let count = opened.export(&mut out)?;
        out.flush()?;
        if !self.json {
            terminal.note(&format!("{count} records\n"));
        }
        Ok(())
    }
}
