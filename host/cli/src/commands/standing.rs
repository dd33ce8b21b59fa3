//! `standing`: lists and revokes standing approvals.

use api::StandingApproval;
use clap::{Args, Subcommand};
use domain::{StandingId, standing::StandingState};

use super::Run;
use crate::args::Connection;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// List and revoke standing approvals: approvals of later similar calls.
#[derive(Debug, Args)]
pub(crate) struct Standing {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// List the standing approvals that you may see, oldest first
    List {
        /// Only those that can still be used
        #[arg(long)]
        active: bool,
        /// Print JSON: one object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        host: Connection,
    },
    /// Revoke a standing approval: later calls ask people again
    #[command(after_help = "\
Examples:
  toolgate standing revoke standing_01935a7c000070008000000000000001")]
    Revoke {
        /// The standing approval, as `toolgate standing list` shows it
        standing: StandingId,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        host: Connection,
    },
}

impl Run for Standing {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Subcommands::List { active, json, host } => {
                let mut shown = 0;
                Client::new(&host)?.pages("/v1/standing-approvals", (&[], "standing_approvals"), None, |item| {
                    let standing: StandingApproval = parse(item)?;
                    if active && standing.state.0 != StandingState::Active {
                        return Ok(());
                    }
                    shown += 1;
                    Ok(terminal.line(if json { escape::json_line(item) } else { lines(&standing, terminal) })?)
                })?;
                if shown == 0 && !json {
                    terminal.line("there are no standing approvals")?;
                }
            }
            Subcommands::Revoke { standing, json, host } => {
                let answer = Client::new(&host)?.delete(&format!("/v1/standing-approvals/{standing}"))?;
                terminal.line(if json { escape::json_line(&answer) } else { lines(&parse(&answer)?, terminal) })?;
            }
        }
        Ok(())
    }
}

fn lines(standing: &StandingApproval, terminal: &Terminal) -> String {
    let StandingApproval { id, state, tool, plugin, caller, by, uses, used, .. } = standing;
    let style = if state.0 == StandingState::Active { Style::Open } else { Style::Faint };
    let revoked = match (&standing.revoked_by, &standing.revoked_at) {
        (Some(by), Some(at)) => format!(", revoked by {by} at {at}"),
        _ => String::new(),
    };
    let pin = serde_json::to_string(&standing.pin).unwrap_or_default();
    format!(
        "{}  {}  {}\n    {}\n    arguments {}, of which {} must be equal",
        terminal.style(Style::Strong, &escape::line(id)),
        terminal.style(style, &state.to_string()),
        terminal.style(Style::Strong, &escape::line(&format!("{tool} ({plugin})"))),
        escape::line(&format!("by {by} for {caller}, {used} of {uses} uses, until {}{revoked}", standing.expires_at)),
        escape::json_line(standing.arguments.as_str()),
        escape::json_line(&pin),
    )
}
