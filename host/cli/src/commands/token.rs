//! `token`: who may speak to the host. Works on the data folder; a host that runs on it notices with the next request.

use std::path::PathBuf;

use anyhow::Context as _;
use dispatch::ports::Clock as _;
use serde_json::json;
use toolgate::WallClock;
use toolgate::config::Config;
use toolgate::tokens::{Holder, Tokens};

use crate::args::{Data, TokenCommand};
use crate::report::Report;
use crate::terminal::{Ink, Terminal};

pub(super) fn run(command: TokenCommand, terminal: &Terminal) -> Result<(), Report> {
    match command {
        TokenCommand::Create { name, roles, mut groups, conversation, data } => {
            let folder = folder(&data)?;
            toolgate::private_folder(&folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            let mut roles: Vec<domain::Role> = roles.into_iter().map(Into::into).collect();
            roles.sort_unstable();
            roles.dedup();
            groups.sort_unstable();
            groups.dedup();
            let holder = Holder { name, roles, groups, conversation, created_at: WallClock.now() };
            let token = Tokens::open(&folder)?.create(holder)?;
            terminal.note("Nobody can look this token up again:\n");
            terminal.line(token)?;
        }
        TokenCommand::List { json, data } => {
            for holder in Tokens::open(&folder(&data)?)?.list()? {
                terminal.line(line(&holder, json, terminal))?;
            }
        }
        TokenCommand::Revoke { name, data } => {
            let folder = folder(&data)?;
            Tokens::open(&folder)?.revoke(&name)?;
            terminal.line(format!("the token of {name} is revoked"))?;
        }
    }
    Ok(())
}

fn folder(data: &Data) -> Result<PathBuf, Report> {
    let config = Config::read(data.config.as_deref())?;
    Ok(data.folder.clone().unwrap_or_else(|| config.data_folder()))
}

fn line(holder: &Holder, json: bool, terminal: &Terminal) -> String {
    let roles: Vec<&str> = holder.roles.iter().map(|role| role.as_str()).collect();
    let conversation = holder.conversation.as_ref().map(ToString::to_string);
    let at = server::wire::rfc3339(holder.created_at);
    let groups: Vec<String> = holder.groups.iter().map(ToString::to_string).collect();
    if json {
        return json!({"name": holder.name.as_str(), "roles": roles, "groups": groups, "conversation": conversation, "created_at": at})
            .to_string();
    }
    let name = terminal.ink(Ink::Strong, holder.name.as_str());
    let only = conversation.map_or_else(String::new, |conversation| format!("  only {conversation}"));
    let groups = if groups.is_empty() { String::new() } else { format!("  in {}", groups.join(", ")) };
    format!("{name}  {}{groups}{only}  since {at}", roles.join(", "))
}
