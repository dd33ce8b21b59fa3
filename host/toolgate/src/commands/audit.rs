//! `audit`: who decided what, oldest first.

use std::fmt::Write as _;

use crate::args::Audit;
use crate::client::{Client, understand};
use crate::report::Report;
use crate::terminal::Terminal;
use crate::wire::{AuditEntry, AuditPage};

pub(super) fn run(args: &Audit, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let mut after = args.after;
    loop {
        let position = after.map(|after| after.to_string());
        let page: AuditPage = client.read("/v1/audit", &[("after", position.as_deref()), ("limit", Some("500"))])?;
        for entry in &page.entries {
            terminal.line(if args.json { text::json_line(entry.get()) } else { line(&understand(entry.get())?) })?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn line(entry: &AuditEntry) -> String {
    let mut text = format!("{}  {}  {}", entry.at, entry.by, entry.action);
    for (name, value) in [("", &entry.subject), ("call ", &entry.call), ("", &entry.suspension)] {
        if let Some(value) = value {
            let _ = write!(text, "  {name}{value}");
        }
    }
    let mut text = text::line(&text).into_owned();
    if let Some(edited) = &entry.edited {
        let _ = write!(text, "  with {}", text::json_line(edited.get()));
    }
    if let Some(comment) = &entry.comment {
        let _ = write!(text, "  \"{}\"", text::line(comment));
    }
    text
}
