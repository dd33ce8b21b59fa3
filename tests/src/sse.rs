//! Reads a stream of events (HTML standard, "Server-sent events").

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its id. Absent for events that are not stored.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// A stream of events.
pub struct Events {
    lines: BufReader<Box<dyn Read + Send>>,
}

impl Events {
    pub(crate) fn new(stream: impl Read + Send + 'static) -> Self {
        Self { lines: BufReader::new(Box::new(stream)) }
    }

    /// The next event. `None` when the stream has ended or is broken.
    pub fn next_or_end(&mut self) -> Option<Event> {
        let (mut id, mut name, mut data) = (None, String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\n', '\r']);
            match line.split_once(": ") {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("data", value)) => data.push_str(value),
                _ if line.is_empty() && !data.is_empty() => {
                    return Some(Event { id, name, data: serde_json::from_str(&data).ok()? });
                }
                // The id of a position without an event.
                _ if line.is_empty() => id = None,
                // A comment that keeps the connection alive.
                _ => {}
            }
        }
    }

    /// The next event.
    ///
    /// # Panics
    /// When the stream has ended.
    pub fn take(&mut self) -> Event {
        self.next_or_end().expect("the stream of events continues")
    }

    /// All events up to and including the first that matches.
    ///
    /// # Panics
    /// When the stream ends before.
    pub fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            events.push(self.take());
            if events.last().is_some_and(&wanted) {
                return events;
            }
        }
    }

    /// The next event of this name. Skips other events.
    ///
    /// # Panics
    /// When the stream ends before.
    pub fn named(&mut self, name: &str) -> Event {
        let mut events = self.until(|event| event.name == name);
        events.pop().expect("there is a last one")
    }
}
