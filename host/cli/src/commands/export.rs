//! `export`: everything that the store of a stopped host holds, one JSON object a line.

use std::io::Write as _;

use toolgate::config::Config;

use crate::args::Export;
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

pub(super) fn run(args: &Export, terminal: &Terminal) -> Result<(), Report> {
    let config = Config::read(args.data.config.as_deref())?;
    let folder = args.data.folder.clone().unwrap_or_else(|| config.data_folder()).join("store");
    if !folder.is_dir() {
        return Err(Report::new(Exit::Refused, format!("there is no store in {}", folder.display()))
            .hint("name the host's own folder with --data"));
    }
    let store = store::open(&folder, &store::Settings::default()).map_err(anyhow::Error::from)?;
    let mut out = terminal.raw();
    let count = store.export(&mut out).map_err(anyhow::Error::from)?;
    out.flush()?;
    terminal.note(&format!("{count} records\n"));
    Ok(())
}
