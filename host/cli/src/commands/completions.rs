//! `completions`: the script that makes a shell complete the commands.

use std::io::Write as _;

use clap::Args;
use clap_complete::{Shell, generate};
use serde_json::json;

use super::Run;
use crate::args::with_host_options_in_front;
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
    /// Print JSON: the shell and the script
    #[arg(long)]
    json: bool,
}

impl Run for Completions {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        generate(self.shell, &mut with_host_options_in_front(crate::definition()), "toolgate", &mut script);
        if self.json {
            let value = json!({ "shell": self.shell.to_string(), "script": String::from_utf8_lossy(&script) });
            return Ok(terminal.line(value.to_string())?);
        }
        let mut out = terminal.raw();
        out.write_all(&script)?;
        out.flush()?;
        Ok(())
    }
}
