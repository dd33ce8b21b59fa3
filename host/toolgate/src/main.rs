//! The binary `toolgate`: reads the command line, carries one command out, and says how it went.

mod args;
mod card;
mod client;
mod commands;
mod escape;
mod report;
mod terminal;
mod wire;

use std::process::ExitCode;

use args::{LogFormat, Toolgate};
use clap::Parser as _;
use report::{Exit, Report};
use terminal::Terminal;
use tracing_subscriber::EnvFilter;

/// The file in the data folder that says where the host that runs on it listens.
const ADDRESS_FILE: &str = "address";

fn main() -> ExitCode {
    let Toolgate { command, log, log_format } = Toolgate::parse();
    let terminal = Terminal::new();
    let done = log_to_stderr(log.as_deref().unwrap_or(command.log()), log_format)
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

fn log_to_stderr(filter: &str, format: LogFormat) -> Result<(), Report> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Report::new(Exit::Usage, "the log filter means nothing")
            .because(error)
            .hint("as in `info` or `warn,guest=debug`")
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(Terminal::new().colours_notes()).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}
