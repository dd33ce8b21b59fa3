//! `audit`: who did what, oldest first.

mod verify;

use std::fmt::Write as _;

use crate::args::{Audit, AuditCommand};
use crate::client::{Client, understand};
use crate::report::Report;
use crate::terminal::Terminal;
use crate::wire::{AuditEntry, AuditPage};

pub(super) fn run(args: &Audit, terminal: &Terminal) -> Result<(), Report> {
    if let Some(AuditCommand::Verify(args)) = &args.command {
        return verify::run(args, terminal);
    }
    let client = Client::new(&args.host)?;
    let turn = args.turn.map(|turn| turn.to_string());
    let mut after = args.after;
    loop {
        let position = after.map(|after| after.to_string());
        let query = [
            ("after", position.as_deref()),
            ("limit", Some("500")),
            ("turn", turn.as_deref()),
            ("subject", args.subject.as_deref()),
            ("by", args.by.as_ref().map(|by| by.as_str())),
            ("action", args.action.map(|action| action.as_str())),
        ];
        let page: AuditPage = client.read("/v1/audit", &query)?;
        for entry in &page.entries {
            terminal.line(if args.json { text::json_line(entry.get()) } else { lines(&understand(entry.get())?) })?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// One line, and one more behind a margin for each of what may be many.
fn lines(entry: &AuditEntry) -> String {
    let mut text = format!("{}  {}  {}  {}", entry.position, entry.at, entry.by, entry.action);
    let attempt = entry.attempt.map(|attempt| attempt.to_string());
    let told = [
        ("", &entry.subject),
        ("call ", &entry.call),
        // A turn is named where no call of it is.
        ("", if entry.call.is_none() { &entry.turn } else { &None }),
        ("in ", if entry.call.is_none() { &entry.conversation } else { &None }),
        ("", &entry.suspension),
        ("to ", &entry.to),
        ("by webhook ", &entry.webhook),
        ("until ", &entry.until),
        ("via ", &entry.via),
        ("attempt ", &attempt),
        ("", &entry.outcome),
        ("", &entry.code),
        ("toolgate ", &entry.version),
        ("component ", &entry.component),
    ];
    for (name, value) in told {
        if let Some(value) = value {
            let _ = write!(text, "  {name}{value}");
        }
    }
    let mut text = text::line(&text).into_owned();
    if let Some(answer) = &entry.answer {
        let _ = write!(text, "  \"{}\"", text::line(answer));
    }
    if let Some(edited) = &entry.edited {
        let _ = write!(text, "  with {}", text::json_line(edited.get()));
    }
    if let Some(comment) = &entry.comment {
        let _ = write!(text, "  \"{}\"", text::line(comment));
    }
    let many =
        [("tool", &entry.tools), ("finding", &entry.findings), ("granted", &entry.grants), ("revoked", &entry.revoked)];
    for (name, values) in many {
        for value in values {
            let _ = write!(text, "\n    {name}: {}", text::line(value));
        }
    }
    text
}
