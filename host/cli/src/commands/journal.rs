//! `journal`: what a durable call did.

use api::{CallJournal, EntryState, JournalEntry};
use clap::Args;
use domain::{CallId, ConversationId};

use super::Run;
use crate::args::{CONVERSATION, Connection, conversation};
use crate::card;
use crate::client::{Client, parse};
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// Show what a durable call did: its host functions and its steps, in order.
///
/// The host records the result of each host function in the journal of the call. A later run gets it from there, so nothing is done
/// twice. Values, bodies and arguments are not shown. The journal is removed with the turn.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate journal call_1
  toolgate journal call_1 --conversation support:42 --json")]
pub(crate) struct Journal {
    /// The call, by the id that its caller chose
    #[arg(value_name = "CALL")]
    call: CallId,
    /// The conversation of the call
    #[arg(long, value_name = "ID", env = "TOOLGATE_CONVERSATION", default_value = CONVERSATION, value_parser = conversation)]
    conversation: ConversationId,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

impl Run for Journal {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let path = format!("/v1/conversations/{}/calls/{}/journal", self.conversation, self.call);
        let page = |after: Option<u32>| -> Result<CallJournal, Report> {
            let after = after.map(|after| after.to_string());
            parse(&client.get(&path, &[("after", after.as_deref()), ("limit", Some("500"))])?)
        };
        let mut journal = page(None)?;
        while let Some(next) = journal.next {
            let CallJournal { entries, next, length, status, .. } = page(Some(next))?;
            journal.entries.extend(entries);
            (journal.next, journal.length, journal.status) = (next, length, status);
        }
        if self.json {
            terminal.line(escape::json(&serde_json::to_string(&journal)?))?;
            return Ok(());
        }
        for line in lines(&journal, terminal) {
            terminal.line(line)?;
        }
        Ok(())
    }
}

/// The steps and the entries of a journal, in the order in which the call came to them.
fn lines(journal: &CallJournal, terminal: &Terminal) -> Vec<String> {
    let (mut lines, mut entries) = (Vec::new(), journal.entries.iter().peekable());
    for step in &journal.steps {
        while let Some(before) = entries.next_if(|entry| entry.after_step < step.step) {
            lines.push(entry(before, terminal));
        }
        lines.push(terminal.style(Style::Strong, &card::step(step)));
    }
    lines.extend(entries.map(|rest| entry(rest, terminal)));
    if lines.is_empty() {
        lines.push(format!(
            "{} has no journal: it is not durable, it has recorded nothing, or retention removed it",
            escape::line(&journal.call)
        ));
    }
    lines
}

fn entry(entry: &JournalEntry, terminal: &Terminal) -> String {
    let function = entry.function.as_deref().map_or("(recorded by an older host)".into(), escape::line);
    let end = match (entry.state, entry.bytes) {
        (EntryState::Begun, _) => terminal.style(Style::Open, "begun"),
        (EntryState::Refused, _) => "refused for now".to_owned(),
        (EntryState::Done, bytes) => format!("done, {}", card::size(bytes.unwrap_or_default())),
    };
    let run = entry.run.map_or_else(String::new, |run| format!("run {run}  "));
    format!("{:>5}  {run}{}  {function}  {end}", entry.number, terminal.style(Style::Faint, &escape::line(&entry.at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_between_the_steps_of_the_call() {
        let entry = |number: u32, after_step: u32, more: &str| {
            format!(r#"{{"number": {number}, "after_step": {after_step}, "at": "12:00", {more}}}"#)
        };
        let entries = [
            entry(0, 0, r#""run": 1, "function": "configuration", "state": "done", "bytes": 15"#),
            entry(1, 1, r#""run": 2, "function": "http POST https://api.example.com/\u001b", "state": "begun""#),
            entry(2, 1, r#""state": "done", "bytes": 2560"#),
        ];
        let step = r#"{"step": 1, "suspension": "s", "kind": "elicitation", "prompt": "Go on?", "state": "open", "since": "12:01"}"#;
        let journal = format!(
            r#"{{"turn": "t", "call": "c", "status": "awaiting", "steps": [{step}], "length": 3, "entries": [{}], "next": null}}"#,
            entries.join(",")
        );
        assert_eq!(
            lines(&serde_json::from_str(&journal).expect("a journal"), &Terminal::plain()),
            [
                "    0  run 1  12:00  configuration  done, 15 B",
                r#"step 1: question "Go on?", open since 12:01"#,
                r"    1  run 2  12:00  http POST https://api.example.com/\u{1b}  begun",
                "    2  12:00  (recorded by an older host)  done, 2.5 KiB",
            ]
        );
    }
}
