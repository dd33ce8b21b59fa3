//! `store`: maintenance of the store, and moving it.

mod export;
mod import;
mod progress;
mod salvage;

use std::sync::Arc;

use clap::{Args, Subcommand};
use dispatch::ports::{Audit as _, Clock as _, Head};
use dispatch::{Amount, Mode, Pruned};
use domain::retention::RemovalRule;
use serde_json::json;
use toolgate::WallClock;
use toolgate::config::Config;

use super::{Run, runtime};
use crate::args::{Data, NO_STORE};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// Maintain the store, and move it to another one.
#[derive(Debug, Args)]
pub(crate) struct Store {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Export(export::Export),
    Import(import::Import),
    Prune(Prune),
    Salvage(salvage::Salvage),
}

/// Remove the ended turns that `[retention]` in the configuration no longer keeps.
///
/// The host must be stopped: the command writes to its data folder. A running host does the same by itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate store prune --dry-run
  toolgate store prune --data /var/lib/toolgate --config /etc/toolgate.toml

The audit keeps an entry for each removed turn, with the rule. Its hash chain stays the same, so `toolgate audit verify` still \
verifies it. The call ids of removed turns are never accepted again.")]
struct Prune {
    /// Remove nothing, and print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

impl Run for Store {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Subcommands::Export(export) => export.run(terminal),
            Subcommands::Import(import) => import.run(terminal),
            Subcommands::Prune(prune) => prune.run(terminal),
            Subcommands::Salvage(salvage) => salvage.run(terminal),
        }
    }
}

impl Prune {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let rules = Config::read(self.data.config.as_deref())?.retention.rules();
        let ignores_declarations = rules.declared_min.is_some();
        let data = self.data.folder()?;
        let folder = self.data.store(NO_STORE, "the running host removes ended turns by the same rules")?;
        let settings = store::StoreSettings { migrates: !self.dry_run, ..store::StoreSettings::default() };
        let opened = Arc::new(store::open(&folder, &settings)?);
        let mode = if self.dry_run { Mode::DryRun } else { Mode::Remove };
        let (pruned, head) = runtime()?.block_on(async {
            let (log, outbox, turns) = (opened.clone(), opened.clone(), opened.clone());
            let pruned = dispatch::prune(log, outbox, turns, rules, WallClock.now(), mode).await?;
            if mode == Mode::Remove {
                // Also if it removed nothing: the last one may have been killed before it wrote its checkpoint.
                let written = toolgate::checkpoint::write(opened.as_ref(), &data, WallClock.now()).await;
                written.map_err(|error| {
                    let what = "retention is done, but the checkpoint of the audit could not be written";
                    Report::new(Exit::HostFault, what).because(error)
                })?;
            }
            Ok::<_, Report>((pruned, opened.head().await?))
        })?;
        self.print(&pruned, head, ignores_declarations, terminal)
    }

    fn print(
        &self,
        pruned: &Pruned,
        head: Head,
        ignores_declarations: bool,
        terminal: &Terminal,
    ) -> Result<(), Report> {
        let Pruned { removed, logs, journals, held, undelivered, above, .. } = pruned;
        if self.json {
            let amount = |amount: &Amount| json!({"turns": amount.turns, "bytes": amount.bytes});
            let of_rule = |(rule, of): (&RemovalRule, &Amount)| json!({"rule": rule.to_string(), "turns": of.turns, "bytes": of.bytes});
            let removed: Vec<_> = removed.iter().map(of_rule).collect();
            let value = json!({
                "dry_run": self.dry_run,
                "removed": removed,
                "logs": amount(logs),
                "journals": amount(journals),
                "held": amount(held),
                "undelivered": amount(undelivered),
                "above": above,
                "ignores_declarations": ignores_declarations,
                "head": head.to_string(),
            });
            return Ok(terminal.line(value.to_string())?);
        }
        let verb = if self.dry_run { "would remove" } else { "removed" };
        for (rule, amount) in removed {
            terminal.line(format!("{verb} {}: {}", in_words(amount), escape::line(&rule.to_string())))?;
        }
        for (what, amount) in [("logs", logs), ("journals", journals)] {
            if amount.turns > 0 {
                terminal.line(format!("{verb} the {what} of calls of {}", in_words(amount)))?;
            }
        }
        if removed.is_empty() && logs.turns + journals.turns == 0 {
            terminal.line(format!("{verb} nothing"))?;
        }
        for (amount, why) in [(held, "a hold keeps them"), (undelivered, "a delivery to a webhook is still to come")] {
            if amount.turns > 0 {
                terminal.line(format!("kept {}: {why}", in_words(amount)))?;
            }
        }
        if *above > 0 {
            terminal.line(format!(
                "kept {above} bytes more than turns_bytes: the turns are too young, or wait for a delivery"
            ))?;
        }
        if ignores_declarations {
            terminal.line(
                "no tool's own `retention` counted: the tools of a stopped host are not known, and a running host may \
                 remove more (`retention.declared_days_min`)",
            )?;
        }
        if !self.dry_run && !removed.is_empty() {
            terminal.line(format!("the head of the audit is {head}"))?;
        }
        Ok(())
    }
}

fn in_words(amount: &Amount) -> String {
    let turns = if amount.turns == 1 { "turn" } else { "turns" };
    format!("{} {turns} with {} bytes", amount.turns, amount.bytes)
}
