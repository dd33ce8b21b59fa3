//! `token`: makes, lists and revokes bearer tokens, in the data folder or in the database of the hosts. A running host sees the change at its next
//! request.

use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use domain::{ConversationId, PrincipalId, ids::Group, principal::Role};
use serde_json::json;
use toolgate::config::Config;
use toolgate::tokens::{TokenHolder, Tokens};

use super::Run;
use crate::args::{Data, conversation};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Make, list and revoke bearer tokens.
#[derive(Debug, Args)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Make a token and print it, once
    #[command(after_help = "\
Examples:
  toolgate token create --name agent --role caller
  toolgate token create --name alice --role approver
  toolgate token create --name page-42 --role client --conversation support:42")]
    Create {
        /// The holder's name, as the audit log shows it
        #[arg(long)]
        name: PrincipalId,
        /// A role of the holder; may be given several times
        #[arg(long = "role", required = true, value_parser = role(), value_name = "ROLE")]
        roles: Vec<Role>,
        /// A group of the holder, for rules that name groups; may be given several times
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<Group>,
        /// The only conversation that the token opens
        #[arg(long, value_name = "ID", value_parser = conversation)]
        conversation: Option<ConversationId>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
    /// List the holders of tokens
    List {
        /// Print JSON: one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
    /// Revoke a token: the next request with it is refused
    Revoke {
        /// The holder's name
        name: PrincipalId,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
}

/// Parses a role.
fn role() -> impl TypedValueParser<Value = Role> {
    let help = |role| match role {
        Role::Caller => "Submit turns, read and cancel its own",
        Role::Approver => "Answer approvals and questions",
        Role::Client => "Run client tools",
        Role::Admin => "Everything, including plugins and the audit log",
    };
    PossibleValuesParser::new(Role::ALL.map(|role| PossibleValue::new(role.as_str()).help(help(role))))
        .try_map(|role| role.parse())
}

impl Run for Token {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        super::runtime()?.block_on(self.done(terminal))
    }
}

/// The tokens of the host on a data folder.
async fn opened(data: &Data) -> Result<Tokens, Report> {
    let config = Config::read(data.config.as_deref())?;
    Ok(Tokens::configured(&config, &data.folder()?).await?)
}

impl Token {
    async fn done(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Subcommands::Create { name, mut roles, mut groups, conversation, json, data } => {
                let folder = data.folder()?;
                toolgate::private_folder(&folder)
                    .with_context(|| format!("cannot make the folder {}", folder.display()))?;
                roles.sort_unstable();
                roles.dedup();
                groups.sort_unstable();
                groups.dedup();
                let tokens = opened(&data).await?;
                let now = tokens.now().await?;
                let is_first = tokens.is_unused().await?;
                let shown = name.to_string();
                let token = tokens.create(TokenHolder { name, roles, groups, conversation, created_at: now }).await?;
                if is_first {
                    // `serve` makes one only where nobody is an admin. The commands of the folder's owner need one.
                    tokens.make_admin(now).await?;
                    let file = Tokens::admin_file(&folder);
                    terminal.note(&format!("An admin token for this folder's owner is in {}.\n", file.display()));
                }
                terminal.note("Keep this token: it is not shown again.\n");
                terminal.line(if json { json!({"name": shown, "token": token}).to_string() } else { token })?;
            }
            Subcommands::List { json, data } => {
                for holder in opened(&data).await?.list().await? {
                    terminal.line(line(&holder, json, terminal))?;
                }
            }
            Subcommands::Revoke { name, json, data } => {
                opened(&data).await?.revoke(&name).await?;
                let revoked = json!({"name": name.as_str(), "revoked": true});
                terminal.line(if json { revoked.to_string() } else { format!("the token of {name} is revoked") })?;
            }
        }
        Ok(())
    }
}

fn line(holder: &TokenHolder, json: bool, terminal: &Terminal) -> String {
    let roles: Vec<&str> = holder.roles.iter().map(|role| role.as_str()).collect();
    let conversation = holder.conversation.as_ref().map(ToString::to_string);
    let at = api::rfc3339(holder.created_at);
    let groups: Vec<String> = holder.groups.iter().map(ToString::to_string).collect();
    if json {
        return json!({"name": holder.name.as_str(), "roles": roles, "groups": groups, "conversation": conversation, "created_at": at})
            .to_string();
    }
    let name = terminal.style(Style::Strong, holder.name.as_str());
    let only = conversation.map_or_else(String::new, |conversation| format!("  only {conversation}"));
    let groups = if groups.is_empty() { String::new() } else { format!("  in {}", groups.join(", ")) };
    format!("{name}  {}{groups}{only}  since {at}", roles.join(", "))
}
