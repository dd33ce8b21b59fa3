//! Commands that make things: plugins and tokens.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use domain::{ConversationId, Group, PrincipalId, Role};
use kit::Language;

use super::Data;
use super::look::conversation;

/// Write a plugin to start from, in any language: one tool, with a test.
///
/// The folder stands alone: it carries the SDK and the interface, and `toolgate build` builds it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate new hello && cd hello && toolgate build
  toolgate new hello --lang python")]
pub(crate) struct New {
    /// The plugin's name: at most 50 small letters, digits, `_` and `-`, beginning with a letter
    pub(crate) name: String,
    /// The language: rust, python, js, ts, go or c
    #[arg(long, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// The folder to write [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Make, list and revoke bearer tokens.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// What to do with tokens. Works on the data folder; a host that runs on it notices.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it, once
    #[command(after_help = "\
Examples:
  toolgate token create --name agent --role caller
  toolgate token create --name alice --role approver
  toolgate token create --name page-42 --role client --conversation support:42")]
    Create {
        /// Whose it is, as the audit will show it
        #[arg(long)]
        name: PrincipalId,
        /// What its holder may do; may be given several times
        #[arg(long = "role", required = true, value_enum, value_name = "ROLE")]
        roles: Vec<RoleName>,
        /// A group that its holder belongs to, for rules that ask a group; may be given several times
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<Group>,
        /// The only conversation that it opens
        #[arg(long, value_name = "ID", value_parser = conversation)]
        conversation: Option<ConversationId>,
        #[command(flatten)]
        data: Data,
    },
    /// List who holds tokens
    List {
        /// Print JSON: one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
    /// Revoke a token: it counts no more from the next request on
    Revoke {
        /// Whose
        name: PrincipalId,
        #[command(flatten)]
        data: Data,
    },
}

/// What a token's holder may do.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RoleName {
    /// Submit turns, read and cancel its own
    Caller,
    /// Answer approvals and questions
    Approver,
    /// Carry out client tools
    Client,
    /// Everything, plugins and the audit included
    Admin,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Caller => Self::Caller,
            RoleName::Approver => Self::Approver,
            RoleName::Client => Self::Client,
            RoleName::Admin => Self::Admin,
        }
    }
}
