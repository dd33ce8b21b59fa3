//! The binary `toolgate`: reads the command line, runs one command, and reports errors.
//!
//! `commands.rs` registers the commands. Each command is one file or folder in `commands/`.

mod address;
mod args;
mod card;
mod client;
mod commands;
mod log;
mod new_file;
mod own;
mod report;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use commands::Command;
use log::LogFormat;
use report::Report;
use terminal::Terminal;

/// A host for agent tools that are WebAssembly components.
///
/// It checks tools when they are loaded and runs them in a sandbox. Calls that wait for a person or a client survive a restart.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = args::WIDTH, after_help = FIRST_STEPS)]
struct Toolgate {
    #[command(subcommand)]
    command: Command,
    /// The log filter for standard error, as in RUST_LOG: `info`, `debug`, `guest=debug`
    #[arg(long, global = true, env = "TOOLGATE_LOG", value_name = "FILTER", help_heading = args::LOGGING)]
    log: Option<String>,
    /// The form of log lines
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT", help_heading = args::LOGGING)]
    log_format: LogFormat,
}

const FIRST_STEPS: &str = "\
First steps:
  toolgate new hello && cd hello          write a plugin to start from; --lang python, js, ts, go, c
  toolgate build                          build it, in any of these languages: build/hello.wasm
  toolgate check build/hello.wasm         check whether a host would load it
  toolgate conform build/hello.wasm       test whether its tools behave as callers expect
  toolgate grants build/hello.wasm        show what it requests, and the lines that grant it
  toolgate call build/hello.wasm '{\"text\":\"a\"}'   make one call, without a server
  toolgate serve                          serve the folder ./plugins on 127.0.0.1:7420
  toolgate submit answer.json             run the tool calls of a model's answer
  toolgate pending                        list what waits, and how to answer it

Exit codes: 0 success; 1 refused or failed; 2 a mistake on the command line or in the configuration; \
3 the host cannot be reached; 4 the host or this machine failed; 5 a tool of a build is missing or does not work; \
74 the database has lost commits, and a person decides how to go on; 75 the host must be started again.

With --json, a command that fails prints its error as one JSON object on standard output: `ok` (false), `error`, `causes`, `hints`, \
and the problem's `code` if a host has refused the request. `call` prints a call that failed as its outcome: `error` has `code` and \
`message`.";

/// Every command with its options.
fn definition() -> clap::Command {
    Toolgate::command()
}

fn main() -> ExitCode {
    // The compiler's process reads a stranger's component. It sets up nothing else of the host.
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == commands::COMPILE) {
        return toolgate::compile_child(arguments);
    }
    #[cfg(feature = "upstream")]
    if first.is_some_and(|first| first == commands::SUPERVISE) {
        return toolgate::upstream::supervise(arguments);
    }
    let terminal = Terminal::new();
    let words = args::with_host_options_behind(&definition(), std::env::args_os());
    let matches = match args::listing_shared_options_once(definition()).try_get_matches_from(&words) {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() && args::has_json(&words) => {
            let report = Report::of_words(&error).for_json(true, &terminal);
            report.print(&terminal);
            return report.exit_code();
        }
        Err(error) => error.exit(),
    };
    let json = args::is_json(&matches);
    let Toolgate { command, log, log_format } =
        Toolgate::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut definition()).exit());
    let done =
        log::to_stderr(log.as_deref().unwrap_or(command.log()), log_format).and_then(|()| command.run(&terminal));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            let report = report.for_json(json, &terminal);
            report.print(&terminal);
            report.exit_code()
        }
    }
}
