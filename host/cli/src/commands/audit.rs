//! `audit`: the audit log, oldest entry first.

mod verify;

use std::fmt::Write as _;

use api::AuditEntry;
use clap::{Args, Subcommand};
use dispatch::Action;
use domain::{PrincipalId, TurnId};

use self::verify::Verify;
use super::Run;
use crate::args::Connection;
use crate::client::{Client, PAGE, parse};
use crate::report::Report;
use crate::terminal::Terminal;

/// Print the audit log, oldest entry first, or verify that nobody has changed it.
///
/// It records loads, refusals and grants of plugins, and submissions, decisions, starts and outcomes of calls. Each entry names
/// the principal and the digests.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  toolgate audit
  toolgate audit --turn turn_01935a7c000070008000000000000001
  toolgate audit --subject ledger_transfer --action approve --by alice
  toolgate audit verify --head 1041:sha256:9f86d081…
  toolgate audit checkpoint > newest.json"
)]
pub(crate) struct Audit {
    #[command(subcommand)]
    command: Option<Subcommands>,
    /// Only entries after this position
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    /// Only of this turn
    #[arg(long, value_name = "TURN")]
    turn: Option<TurnId>,
    /// Only of this tool or plugin
    #[arg(long, visible_aliases = ["tool", "plugin"], value_name = "NAME")]
    subject: Option<String>,
    /// Only actions of this principal
    #[arg(long, value_name = "NAME")]
    by: Option<PrincipalId>,
    /// Only this action, such as `approve` or `plugin.loaded`
    #[arg(long, value_name = "ACTION")]
    action: Option<Action>,
    /// Print JSON: one entry a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Verify(Verify),
    Checkpoint(Checkpoint),
}

/// Print the newest signed checkpoint of a running host.
///
/// The host writes one after each run of retention that removed turns. Needs the role admin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate audit checkpoint > newest.json
  toolgate audit verify --checkpoint newest.json --key ed25519:Kx8…

Keep the file where nobody who can write to the host's data folder can write. `toolgate status` shows the public key.")]
struct Checkpoint {
    /// Print an error as JSON too, and no note. The checkpoint is JSON in any case
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Checkpoint {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let text = Client::new(&self.host)?.get("/v1/audit/checkpoint", &[])?;
        terminal.line(escape::json(&text))?;
        if !self.json {
            terminal.note("keep it where nobody who can write to the host's data folder can write\n");
        }
        Ok(())
    }
}

impl Run for Audit {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        match self.command {
            Some(Subcommands::Verify(verify)) => verify.run(terminal),
            Some(Subcommands::Checkpoint(checkpoint)) => checkpoint.run(terminal),
            None => self.print(terminal),
        }
    }
}

impl Audit {
    fn print(&self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let turn = self.turn.map(|turn| turn.to_string());
        let after = self.after.map(|after| after.to_string());
        let query = [
            ("after", after.as_deref()),
            ("limit", Some(PAGE)),
            ("turn", turn.as_deref()),
            ("subject", self.subject.as_deref()),
            ("by", self.by.as_ref().map(PrincipalId::as_str)),
            ("action", self.action.map(Action::as_str)),
        ];
        client.pages("/v1/audit", (&query, "entries"), None, |entry| {
            Ok(terminal.line(if self.json { escape::json_line(entry) } else { lines(&parse(entry)?) })?)
        })?;
        Ok(())
    }
}

/// One line for the entry, and one indented line for each tool, finding, grant and revocation.
fn lines(entry: &AuditEntry) -> String {
    let mut line = format!("{}  {}  {}  {}", entry.position, entry.at, entry.by, entry.action);
    let attempt = entry.attempt.map(|attempt| attempt.to_string());
    let via = entry.via.map(|via| via.to_string());
    let outcome = entry.outcome.map(|outcome| outcome.to_string());
    let code = entry.code.map(|code| code.to_string());
    let members = [
        ("", &entry.subject),
        ("call ", &entry.call),
        // The call names its turn already.
        ("", if entry.call.is_none() { &entry.turn } else { &None }),
        ("in ", if entry.call.is_none() { &entry.conversation } else { &None }),
        ("", &entry.suspension),
        ("to ", &entry.to),
        ("by webhook ", &entry.webhook),
        ("until ", &entry.until),
        ("via ", &via),
        ("attempt ", &attempt),
        ("", &outcome),
        ("", &code),
        ("toolgate ", &entry.version),
        ("component ", &entry.component),
    ];
    for (name, value) in members {
        if let Some(value) = value {
            let _ = write!(line, "  {name}{value}");
        }
    }
    let mut line = escape::line(&line).into_owned();
    if let Some(answer) = &entry.answer {
        let _ = write!(line, "  \"{}\"", escape::line(answer));
    }
    if let Some(edited) = &entry.edited {
        let _ = write!(line, "  with {}", escape::json_line(edited.as_str()));
    }
    if let Some(comment) = &entry.comment {
        let _ = write!(line, "  \"{}\"", escape::line(comment));
    }
    if let Some(rule) = entry.rule.as_ref().filter(|_| entry.action.0 == Action::TurnRemoved) {
        let _ = write!(line, "  by the rule: {}", escape::line(rule));
    }
    let many =
        [("tool", &entry.tools), ("finding", &entry.findings), ("granted", &entry.grants), ("revoked", &entry.revoked)];
    for (name, values) in many {
        for value in values {
            let _ = write!(line, "\n    {name}: {}", escape::line(value));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_words_of_the_entry() {
        let entry = r#"{"position": 7, "hash": "", "at": "now", "by": "ann", "action": "call.settled", "call": "c",
            "via": "link", "attempt": 2, "outcome": "failed", "code": "out_of_time"}"#;
        let entry = parse(entry).expect("an entry");
        assert_eq!(lines(&entry), "7  now  ann  call.settled  call c  via link  attempt 2  failed  out_of_time");
        let entry = r#"{"position": 8, "hash": "", "at": "now", "by": "system", "action": "turn.removed", "turn": "t",
            "rule": "ended turns are kept for 1 day"}"#;
        let entry = parse(entry).expect("an entry");
        assert_eq!(lines(&entry), "8  now  system  turn.removed  t  by the rule: ended turns are kept for 1 day");
    }
}
