//! `events`: what happens in a conversation, as it happens. A connection that breaks is made again where it broke.

use std::io::BufRead;
use std::time::Duration;

use serde_json::Value;

use crate::args::Events;
use crate::client::Client;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// How long to wait before a connection is made again; a host that starts anew takes about as long.
const AGAIN: Duration = Duration::from_secs(1);

/// How often in a row a host may be out of reach.
const PATIENCE: usize = 60;

/// One event of a stream (the HTML standard, "Server-sent events").
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    id: Option<String>,
    name: String,
    data: String,
}

pub(super) fn run(args: &Events, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let tools: Vec<&str> = args.client.iter().map(domain::ToolName::as_str).collect();
    let tools = tools.join(",");
    let path = format!("/v1/conversations/{}/events", args.conversation);
    let query = [("client", (!tools.is_empty()).then_some(tools.as_str()))];
    let mut last = args.after.clone();
    let (mut begun, mut missed) = (false, 0);
    loop {
        match client.stream(&path, &query, last.as_deref()) {
            Ok(mut stream) => {
                (begun, missed) = (true, 0);
                while let Some(event) = next(&mut stream) {
                    terminal.line(if args.json { text::json_line(&event.data) } else { line(&event, terminal) })?;
                    last = event.id.or(last);
                }
                terminal.note("the connection broke; connecting again\n");
            }
            Err(report) if begun && report.code() == Exit::Unreachable as u8 && missed < PATIENCE => missed += 1,
            Err(report) => return Err(report),
        }
        std::thread::sleep(AGAIN);
    }
}

/// The next event; `None` when the stream ended or broke, and with it the event that had begun.
fn next(stream: &mut impl BufRead) -> Option<Event> {
    let mut event = Event::default();
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let text = line.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            if event.data.is_empty() {
                event = Event::default();
                continue;
            }
            return Some(event);
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut event.name),
            "data" if event.data.is_empty() => value.clone_into(&mut event.data),
            "data" => event.data.extend(["\n", value]),
            _ => {}
        }
    }
}

/// An event for people: when, what, about which call, and the rest as JSON.
fn line(event: &Event, terminal: &Terminal) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(&event.data) else {
        return format!("{}  {}", text::line(&event.name), text::line(&event.data));
    };
    let mut take = |name: &str| match members.shift_remove(name) {
        Some(Value::String(text)) => text::line(&text).into_owned(),
        Some(other) => text::json_line(&other.to_string()),
        None => String::new(),
    };
    let (name, at, turn) = (take("event"), take("at"), take("turn"));
    let rest = text::json_line(&Value::Object(members).to_string());
    let name = if name.is_empty() { text::line(&event.name).into_owned() } else { name };
    format!("{at}  {}  {turn}  {}", terminal.ink(Ink::Strong, &name), terminal.ink(Ink::Faint, &rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_event_by_event_and_half_an_event_is_none() {
        let mut stream =
            ": keep-alive\n\nid: 3-0\nevent: a\ndata: {\"x\":1}\n\ndata: one\ndata:two\n\ndata: half\n".as_bytes();
        let first = Event { id: Some("3-0".into()), name: "a".into(), data: "{\"x\":1}".into() };
        assert_eq!(next(&mut stream), Some(first));
        assert_eq!(next(&mut stream).map(|event| event.data), Some("one\ntwo".into()));
        assert_eq!(next(&mut stream), None);
    }
}
