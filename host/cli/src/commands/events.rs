//! `events`: prints the events of a conversation, or of the host. If the connection breaks, it continues after the last event.

use std::io::BufRead;
use std::time::Duration;

use clap::Args;
use domain::{ConversationId, ToolName};
use serde_json::Value;

use super::Run;
use crate::args::{Connection, conversation, tool};
use crate::client::Client;
use crate::report::Report;
use crate::terminal::{Style, Terminal};

/// The pause before the next attempt to connect. A host takes about as long to restart.
const PAUSE: Duration = Duration::from_secs(1);

/// Failed attempts to connect, in a row, after which the command gives up.
const MAX_FAILURES: usize = 60;

/// Follow the events of a conversation, or of the host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate events support:42
  toolgate events support:42 --client geolocate,pick_file    attach as the client of these tools
  toolgate events support:42 --after 17-0 --json
  toolgate events support:42 --after now                     only events that are still to come
  toolgate events --host

While it runs with --client, calls of these tools wait for an answer (`toolgate answer`) and do not end \
`unavailable`. If the connection breaks, the command connects again and goes on after the last event that it printed.

--host prints `turn.settled` of each stored turn that you may see; for an admin also what happens to plugins.")]
pub(crate) struct Events {
    /// The conversation
    #[arg(value_parser = conversation, required_unless_present_any = ["all", "named"], conflicts_with = "all")]
    conversation: Option<ConversationId>,
    /// The conversation, as most commands take it
    #[arg(long = "conversation", value_name = "ID", value_parser = conversation, conflicts_with_all = ["all", "conversation"], hide = true)]
    named: Option<ConversationId>,
    /// Follow the ends of all turns that you may see; as an admin also the plugins
    #[arg(long = "host")]
    all: bool,
    /// Attach as the client that runs these tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',', value_parser = tool, conflicts_with = "all")]
    client: Vec<ToolName>,
    /// Start after the event with this id, or with the next event [default: with the first; `now` with --client]
    #[arg(long, value_name = "EVENT|now")]
    after: Option<String>,
    /// Print JSON: the data of one event a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Connection,
}

/// One event of a stream (the HTML standard, "Server-sent events").
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

impl Run for Events {
    fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let client = Client::new(&self.host)?;
        let tools: Vec<&str> = self.client.iter().map(ToolName::as_str).collect();
        let tools = tools.join(",");
        let path = match self.named.as_ref().or(self.conversation.as_ref()) {
            Some(conversation) => format!("/v1/conversations/{conversation}/events"),
            None => "/v1/events".to_owned(),
        };
        let query = [("client", (!tools.is_empty()).then_some(tools.as_str())), ("after", self.after.as_deref())];
        // The id of the last event takes precedence over `after`.
        let mut last = None;
        let (mut is_connected, mut failures) = (false, 0);
        loop {
            match client.stream(&path, &query, last.as_deref().map(|id| ("last-event-id", id)).as_slice()) {
                Ok(mut stream) => {
                    (is_connected, failures) = (true, 0);
                    while let Some(event) = next(&mut stream, &mut last) {
                        terminal.line(if self.json {
                            escape::json_line(&event.data)
                        } else {
                            line(&event, terminal)
                        })?;
                    }
                    terminal.note("the connection broke; connecting again\n");
                }
                Err(report) if is_connected && report.is_unreachable() && failures < MAX_FAILURES => failures += 1,
                Err(report) => return Err(report),
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// The next event. `None` if the stream ended or broke; an incomplete event is dropped. Sets the `last` id, which may have
/// come without an event.
pub(super) fn next(stream: &mut impl BufRead, last: &mut Option<String>) -> Option<Event> {
    let (mut event, mut id) = (Event::default(), None);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let text = line.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            if id.is_some() {
                *last = id.take();
            }
            if event.data.is_empty() {
                event = Event::default();
                continue;
            }
            return Some(event);
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = Some(value.to_owned()),
            "event" => value.clone_into(&mut event.name),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => event.data.extend(["\n", value]),
            _ => {}
        }
    }
}

/// An event for people: its time, its name, its turn, and the rest as JSON.
fn line(event: &Event, terminal: &Terminal) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(&event.data) else {
        return format!("{}  {}", escape::line(&event.name), escape::line(&event.data));
    };
    let mut take = |name: &str| match members.shift_remove(name) {
        Some(Value::String(text)) => escape::line(&text).into_owned(),
        Some(other) => escape::json_line(&other.to_string()),
        None => String::new(),
    };
    let (name, at, turn) = (take("event"), take("at"), take("turn"));
    let rest = escape::json_line(&Value::Object(members).to_string());
    let name = if name.is_empty() { escape::line(&event.name).into_owned() } else { name };
    format!("{at}  {}  {turn}  {}", terminal.style(Style::Strong, &name), terminal.style(Style::Faint, &rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_event_is_dropped() {
        let mut stream =
            ": keep-alive\n\nid: 3-0\nevent: a\ndata: {\"x\":1}\n\ndata: one\ndata:two\n\nid: 4-0\ndata: half\n"
                .as_bytes();
        let mut last = None;
        let first = Event { name: "a".into(), data: "{\"x\":1}".into() };
        assert_eq!(next(&mut stream, &mut last), Some(first));
        assert_eq!(next(&mut stream, &mut last).map(|event| event.data), Some("one\ntwo".into()));
        assert_eq!(next(&mut stream, &mut last), None);
        assert_eq!(last.as_deref(), Some("3-0"));
    }

    #[test]
    fn id_without_an_event_is_kept() {
        let mut last = None;
        assert_eq!(next(&mut "id: 17\n\n: keep-alive\n\n".as_bytes(), &mut last), None);
        assert_eq!(last.as_deref(), Some("17"));
    }
}
