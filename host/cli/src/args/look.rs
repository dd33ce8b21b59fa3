//! Commands that read from a host.

use clap::{Args, Subcommand, ValueEnum};
use dispatch::Action;
use dispatch::ports::Anchor;
use domain::{ConversationId, PrincipalId, ToolName, TurnId};

use super::{Connection, Format};

/// List the live tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate tools
  toolgate tools --format anthropic       the `tools` of a request to the model")]
pub(crate) struct Tools {
    /// Print JSON in the form that a model's provider wants
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// List what waits for a person or a client, and how to answer it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate pending
  toolgate pending --kind approval --tool ledger_transfer
  toolgate pending --watch                say it as soon as something waits, until Ctrl-C
  toolgate pending --state closed --json")]
pub(crate) struct Pending {
    /// Only of this conversation
    #[arg(long, value_name = "ID", value_parser = conversation)]
    pub(crate) conversation: Option<ConversationId>,
    /// Only of turns that this principal submitted
    #[arg(long, value_name = "NAME")]
    pub(crate) caller: Option<String>,
    /// Only of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only of this kind
    #[arg(long, value_enum)]
    pub(crate) kind: Option<Kind>,
    /// Those that wait, those that no longer do, or all
    #[arg(long, value_enum, default_value_t)]
    pub(crate) state: State,
    /// Stay, and say what comes and goes
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print JSON: one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Kind {
    Approval,
    Elicitation,
    ClientExec,
}

/// Which suspensions.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum State {
    #[default]
    Open,
    Closed,
    All,
}

/// Show a suspension or a turn in full.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate show susp_01935a7c000070008000000000000001
  toolgate show turn_01935a7c000070008000000000000001 --conversation support:42")]
pub(crate) struct Show {
    /// Its id
    #[arg(value_name = "SUSPENSION|TURN")]
    pub(crate) id: String,
    /// The conversation of the turn
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = super::answer::CONVERSATION, value_parser = conversation)]
    pub(crate) conversation: ConversationId,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// Follow what happens in a conversation.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate events support:42
  toolgate events support:42 --client geolocate,pick_file    attach as the client of these tools
  toolgate events support:42 --after 17-0 --json

As long as it runs with --client, calls of these tools wait for an answer (`toolgate answer`) and do not end
`unavailable`. A connection that breaks is made again where it broke.")]
pub(crate) struct Events {
    /// The conversation
    #[arg(value_parser = conversation)]
    pub(crate) conversation: ConversationId,
    /// Attach as the client that carries out these tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',', value_parser = tool)]
    pub(crate) client: Vec<ToolName>,
    /// Begin after the event with this id
    #[arg(long, value_name = "EVENT")]
    pub(crate) after: Option<String>,
    /// Print JSON: the data of one event a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// Print who did what, oldest first, or verify that nobody changed it since.
///
/// Loads, refusals and grants of plugins; submissions, decisions, starts and outcomes of calls; each with the principal and the
/// digests of what it was about.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  toolgate audit
  toolgate audit --turn turn_01935a7c000070008000000000000001
  toolgate audit --subject ledger_transfer --action approve --by alice
  toolgate audit verify --head 1041:sha256:9f86d081…"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    /// Only what came after this position
    #[arg(long, value_name = "POSITION")]
    pub(crate) after: Option<u64>,
    /// Only of this turn
    #[arg(long, value_name = "TURN")]
    pub(crate) turn: Option<TurnId>,
    /// Only of this tool or plugin
    #[arg(long, visible_aliases = ["tool", "plugin"], value_name = "NAME")]
    pub(crate) subject: Option<String>,
    /// Only what this principal did
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<PrincipalId>,
    /// Only this, such as `approve` or `plugin.loaded`
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<Action>,
    /// Print JSON: one entry a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// What else can be done with the audit.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Verify(Verify),
}

/// Work every hash of the audit out anew, and say the first position at which anything was edited, removed, inserted or moved.
///
/// Reads the data folder, or asks the host that runs on it. Exit code 1 if the audit is not what was written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate audit verify
  toolgate audit verify --data /var/lib/toolgate --head 1041:sha256:9f86d081…

Whoever can write to the data folder can make the whole chain anew, and cut off its end. Only a head that was kept where
they cannot write, such as the log of the host or the `head` of GET /v1/audit, finds that: name it with --head.")]
pub(crate) struct Verify {
    /// A head of the audit that was kept elsewhere: a hash, or that behind `POSITION:`. May be given several times
    #[arg(long, value_name = "[POSITION:]HASH")]
    pub(crate) head: Vec<Anchor>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) host: Connection,
}

/// A conversation's id, as an argument.
pub(crate) fn conversation(text: &str) -> Result<ConversationId, domain::InvalidId> {
    ConversationId::new(text)
}

/// A tool's name, as an argument.
pub(crate) fn tool(text: &str) -> Result<ToolName, domain::InvalidId> {
    ToolName::new(text)
}
