//! The binary `toolgate`: reads the command line, carries one command out, and says how it went.

mod args;
mod card;
mod client;
mod commands;
mod log;
mod report;
mod terminal;
mod wire;

use std::process::ExitCode;

use args::{Command, Toolgate};
use clap::Parser as _;
use terminal::Terminal;

/// The file in the data folder that says where the host that runs on it listens.
const ADDRESS_FILE: &str = "address";

fn main() -> ExitCode {
    let Toolgate { command, log, log_format } = Toolgate::parse();
    let command = match command {
        // A process of its own, which reads what a stranger wrote: nothing else of the host is set up in it.
        Command::CompileComponent(compile) => return toolgate::compile_child(compile.bounds),
        command => command,
    };
    let terminal = Terminal::new();
    let done = log::to_stderr(log.as_deref().unwrap_or(command.log()), log_format)
        .and_then(|()| commands::run(command, &terminal));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            if !report.is_silent() {
                report.print(&terminal);
            }
            ExitCode::from(report.code())
        }
    }
}
