//! Commands about the operator's rules.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::{ConversationId, PrincipalId, ToolName};

use super::{Connection, look};

/// Say what the operator's rules make of a call, or what they were tried with.
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// What can be asked of rules.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    Explain(Explain),
    Test(Test),
}

/// Say what would become of a call, and why: each rule with whether it fits, and which one decides.
///
/// Without --url it reads the configuration and the plugins' folder as they are now, and asks no policy that is a component.
/// With --url it asks a host, which knows those, too. Nothing is called.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate policy explain ledger_transfer '{\"amount\":5000}'
  toolgate policy explain ledger_transfer '{\"amount\":5000}' --caller agent-7
  toolgate policy explain ledger_transfer '{}' --url http://127.0.0.1:7420 --json")]
pub(crate) struct Explain {
    /// The tool
    #[arg(value_name = "TOOL", value_parser = look::tool)]
    pub(crate) tool: ToolName,
    /// The arguments: a JSON object
    #[arg(value_name = "ARGUMENTS", default_value = "{}")]
    pub(crate) arguments: String,
    /// Who would make the call
    #[arg(long, value_name = "NAME", default_value = "agent", value_parser = str::parse::<PrincipalId>)]
    pub(crate) caller: PrincipalId,
    /// In which conversation; with --url only
    #[arg(long, value_name = "ID", value_parser = look::conversation, requires = "url")]
    pub(crate) conversation: Option<ConversationId>,
    /// What would come with the turn: a JSON object; with --url only
    #[arg(long, value_name = "JSON", requires = "url")]
    pub(crate) context: Option<String>,
    /// The folder of plugins, without --url [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// Try every rule with its own examples.
///
/// The same is done whenever the configuration is read: a host does not start with a rule that does not do what its examples
/// say. Prints how many examples each rule has.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The configuration [default: ./toolgate.toml, if there is one]
    #[arg(long, env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
