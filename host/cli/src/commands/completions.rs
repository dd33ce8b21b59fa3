//! `completions`: the script that makes a shell complete the commands.

use std::io::Write as _;

use clap::Args;
use clap_complete::{Shell, generate};

use super::Run;
use crate::report::Report;
use crate::terminal::Terminal;

/// Print the script that makes a shell complete commands and options.
///
/// The script is generated from the definitions of the commands.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions zsh > ~/.zfunc/_toolgate
  toolgate completions fish > ~/.config/fish/completions/toolgate.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Run for Completions {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        generate(self.shell, &mut crate::definition(), "toolgate", &mut script);
        let mut out = terminal.raw();
        out.write_all(&script)?;
        out.flush()?;
        Ok(())
    }
}
