//! Registers the commands. A new command is one file here and two lines in this file: its `mod`, and its line in `register!`.

mod answer;
mod approve;
mod audit;
mod author;
mod backup;
mod build;
mod call;
mod cancel;
mod check;
mod completions;
mod config;
mod conform;
mod conversations;
mod delegate;
mod deny;
mod dev;
mod drain;
mod events;
mod grants;
#[cfg(feature = "mcp")]
mod hook;
mod hosts;
mod journal;
pub(crate) mod logs;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod new;
mod opened;
mod pack;
mod pending;
mod policy;
mod progress;
mod restore;
mod serve;
mod show;
mod signal;
mod standing;
mod status;
mod stop;
mod store;
mod submit;
mod token;
mod tools;
mod turns;
#[cfg(feature = "upstream")]
mod upstream;
mod verify_build;

use anyhow::Context as _;
use clap::Subcommand;
use tokio::runtime::Runtime;
use toolgate::CompilerProgram;

use crate::report::Report;
use crate::terminal::Terminal;

/// The first argument that makes this binary the compiler of one component.
pub(crate) const COMPILE: &str = "compile-component";

/// The first argument that makes this binary the parent of an upstream MCP server.
#[cfg(feature = "upstream")]
pub(crate) const SUPERVISE: &str = "supervise-upstream";

/// A command. Its fields are its arguments, and its doc comment is its help text.
trait Run {
    /// The log filter, unless the user names one. Only a host runs long enough to need a log; the other commands print.
    const LOG: &'static str = "warn";

    /// Runs the command.
    fn run(self, terminal: &Terminal) -> Result<(), Report>;
}

macro_rules! register {
    ($($(#[$only:meta])? $module:ident::$command:ident,)*) => {
        /// Every command.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$only])? $command($module::$command),)*
        }

        impl Command {
            /// The log filter, unless the user names one.
            pub(crate) fn log(&self) -> &'static str {
                match self {
                    $($(#[$only])? Self::$command(_) => $module::$command::LOG,)*
                }
            }

            /// Runs the command.
            pub(crate) fn run(self, terminal: &Terminal) -> Result<(), Report> {
                match self {
                    $($(#[$only])? Self::$command(command) => command.run(terminal),)*
                }
            }
        }
    };
}

// In the order of `toolgate --help`.
register! {
    serve::Serve,
    #[cfg(feature = "mcp")]
    mcp::Mcp,
    #[cfg(feature = "mcp")]
    hook::Hook,
    check::Check,
    conform::Conform,
    pack::Pack,
    grants::Grants,
    #[cfg(feature = "upstream")]
    upstream::Upstream,
    call::Call,
    status::Status,
    hosts::Hosts,
    drain::Drain,
    tools::Tools,
    submit::Submit,
    conversations::Conversations,
    turns::Turns,
    show::Show,
    logs::Logs,
    journal::Journal,
    cancel::Cancel,
    pending::Pending,
    approve::Approve,
    deny::Deny,
    answer::Answer,
    signal::Signal,
    progress::Progress,
    delegate::Delegate,
    standing::Standing,
    events::Events,
    audit::Audit,
    policy::Policy,
    new::New,
    build::Build,
    verify_build::VerifyBuild,
    dev::Dev,
    token::Token,
    config::Config,
    backup::Backup,
    restore::Restore,
    store::Store,
    completions::Completions,
    man::Man,
}

/// This binary, run again as the compiler.
fn compiler() -> anyhow::Result<CompilerProgram> {
    CompilerProgram::itself([COMPILE]).context("cannot find the file of this program, which compiles components")
}

/// This binary, run again as the parent of an upstream MCP server.
#[cfg(feature = "upstream")]
fn supervisor() -> anyhow::Result<CompilerProgram> {
    CompilerProgram::itself([SUPERVISE]).context("cannot find the file of this program, which ends upstream servers")
}

/// Keeps the upstream MCP servers of a configuration that are programs of the same user out of this process.
#[cfg(feature = "upstream")]
fn hide_from_upstreams(config: &toolgate::config::Config) -> anyhow::Result<()> {
    if config.upstream.values().all(|table| table.command.is_empty()) {
        return Ok(());
    }
    toolgate::upstream::hide_from_servers().context("cannot hide the environment from upstream MCP servers")
}

/// The threads that run a host.
fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use crate::args::WIDTH;

    fn without_json(command: &Command, path: &str, found: &mut Vec<String>) {
        let path = format!("{path} {}", command.get_name());
        let has_json = command.get_arguments().any(|arg| arg.get_id() == "json");
        if !has_json && command.get_subcommands().next().is_none() {
            found.push(path.trim().to_owned());
        }
        command.get_subcommands().for_each(|command| without_json(command, &path, found));
    }

    #[test]
    fn every_command_has_json() {
        let (mut found, definition) = (Vec::new(), crate::definition());
        definition.get_subcommands().for_each(|command| without_json(command, "", &mut found));
        assert_eq!(found, Vec::<String>::new());
        assert!(definition.get_subcommands().count() > 25, "it looks at all commands");
    }

    /// The lines of the texts after the help that a terminal would break again: paragraphs of several lines, and long examples.
    fn broken_twice(command: &Command, found: &mut Vec<String>) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let lines: Vec<&str> = text.lines().chain([""]).collect();
        let broken = lines.windows(2).filter(|pair| match pair {
            [line, next] if is_prose(line) => is_prose(next),
            pair => pair[0].chars().count() > WIDTH,
        });
        found.extend(broken.map(|pair| format!("{}: {}", command.get_name(), pair[0])));
        command.get_subcommands().for_each(|command| broken_twice(command, found));
    }

    #[test]
    fn only_the_terminal_breaks_lines_of_help() {
        let mut found = Vec::new();
        broken_twice(&crate::definition(), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
