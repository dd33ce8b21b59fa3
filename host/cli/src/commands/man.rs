//! `man`: the manual pages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use super::{Run, author};
use crate::args::{listing_shared_options_once, not_a_file};
use crate::report::Report;
use crate::terminal::Terminal;

/// Write the manual pages into a folder: one for each command.
///
/// The pages are generated from the definitions of the commands. The folder is made if it does not exist.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate man ~/.local/share/man/man1 && man toolgate-serve")]
pub(crate) struct Man {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Run for Man {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let folder = &self.folder;
        not_a_file(folder)?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        clap_mangen::generate_to(listing_shared_options_once(crate::definition()), folder)
            .with_context(|| format!("cannot write into {}", folder.display()))?;
        let text = format!("the manual pages are in {}", author::shown(folder));
        let written = json!({ "folder": folder.to_string_lossy() });
        terminal.line(if self.json { escape::json(&written.to_string()) } else { text })?;
        Ok(())
    }
}
