//! Events of a response (`text/event-stream`) from a server that may send anything. The bytes of an event are bounded.

/// An event, as far as this host uses it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The text of a message.
    Message(Vec<u8>),
    /// A comment, an event of another type, or one without data, with its size.
    Other(usize),
}

/// Reads events from pieces of a stream.
pub(super) struct Events {
    held: Vec<u8>,
    /// The bytes of `held` that were read.
    read: usize,
    /// The bytes of `held` that were read or have no line break.
    searched: usize,
    data: Vec<u8>,
    has_data: bool,
    is_other_type: bool,
    /// The bytes of the event so far.
    size: usize,
    max: usize,
    is_first_line: bool,
    /// The id of the last event, to continue a stream behind it.
    pub(super) last_id: Option<String>,
    /// The pause before a stream is continued, in milliseconds, if the server names one.
    pub(super) retry: Option<u64>,
}

/// The longest id that is kept, in bytes.
const MAX_ID: usize = 1 << 10;

impl Events {
    /// `max` is the largest event, in bytes.
    pub(super) const fn new(max: usize) -> Self {
        Self {
            held: Vec::new(),
            read: 0,
            searched: 0,
            data: Vec::new(),
            has_data: false,
            is_other_type: false,
            size: 0,
            max,
            is_first_line: true,
            last_id: None,
            retry: None,
        }
    }

    /// Adds a piece of the stream.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.held.drain(..self.read);
        self.searched -= self.read;
        self.read = 0;
        self.held.extend_from_slice(piece);
    }

    /// The size of the event that has not arrived completely.
    pub(super) fn unfinished(&self) -> usize {
        self.size.saturating_add(self.held.len() - self.read)
    }

    /// A further stream continues where the last one ended.
    pub(super) fn restart(&mut self) {
        let (id, retry) = (self.last_id.take(), self.retry);
        *self = Self { last_id: id, retry, ..Self::new(self.max) };
    }

    /// The next event that has arrived completely.
    ///
    /// # Errors
    /// The event is too large. The text continues a sentence about the server.
    pub(super) fn next(&mut self) -> Result<Option<Event>, String> {
        let too_long = |max: usize| Err(format!("sent an event of more than {max} bytes"));
        while let Some(at) = self.held[self.searched..].iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let end = self.searched + at;
            let is_carriage = self.held[end] == b'\r';
            // A line feed may follow.
            if is_carriage && end + 1 == self.held.len() {
                break;
            }
            let width = if is_carriage && self.held[end + 1] == b'\n' { 2 } else { 1 };
            self.size = self.size.saturating_add(end + width - self.read);
            if self.size > self.max {
                return too_long(self.max);
            }
            let line = self.held[self.read..end].to_vec();
            (self.read, self.searched) = (end + width, end + width);
            if let Some(event) = self.line(&line) {
                return Ok(Some(event));
            }
        }
        let is_carriage = self.held.last() == Some(&b'\r');
        self.searched = self.held.len() - usize::from(is_carriage && !self.held[self.searched..].contains(&b'\n'));
        if self.unfinished() > self.max {
            return too_long(self.max);
        }
        Ok(None)
    }

    fn line(&mut self, line: &[u8]) -> Option<Event> {
        let line = if std::mem::take(&mut self.is_first_line) {
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            let (data, size) = (std::mem::take(&mut self.data), std::mem::take(&mut self.size));
            let is_other = std::mem::take(&mut self.is_other_type);
            let has_data = std::mem::take(&mut self.has_data);
            // An event without data only has an id: the stream can be continued.
            let is_message = has_data && !is_other && !data.is_empty();
            return Some(if is_message { Event::Message(data) } else { Event::Other(size) });
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, [].as_slice()),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.is_other_type = !matches!(value, b"" | b"message"),
            b"id" if value.len() <= MAX_ID && value.iter().all(|byte| (b' '..=b'~').contains(byte)) => {
                self.last_id = str::from_utf8(value).ok().filter(|id| !id.is_empty()).map(str::to_owned);
            }
            b"retry" => self.retry = str::from_utf8(value).ok().and_then(|text| text.parse().ok()).or(self.retry),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &mut Events, text: &[u8], piece: usize) -> Vec<Event> {
        let mut all = Vec::new();
        for piece in text.chunks(piece) {
            events.push(piece);
            while let Some(event) = events.next().unwrap() {
                all.push(event);
            }
        }
        all
    }

    #[test]
    fn unfinished_event_has_a_size() {
        let mut events = Events::new(64);
        assert_eq!(read(&mut events, b"data: a\n\n:b\ndata: c", 4).len(), 1);
        assert_eq!(events.unfinished(), b":b\ndata: c".len());
    }

    #[test]
    fn events_are_read_in_pieces_of_any_size() {
        let text = "\u{feff}: hello\r\n\r\nid: 7\nretry: 250\ndata:\n\nevent: message\rdata: {\"a\":\rdata: 1}\r\revent: ping\ndata: x\n\n\
                    data: last\n\ndata: unfinished";
        for piece in 1..=text.len() {
            let mut events = Events::new(64);
            let all = read(&mut events, text.as_bytes(), piece);
            let messages: Vec<_> = all.iter().filter(|event| matches!(event, Event::Message(_))).collect();
            let expected = [Event::Message(b"{\"a\":\n1}".to_vec()), Event::Message(b"last".to_vec())];
            assert_eq!(messages, expected.iter().collect::<Vec<_>>(), "pieces of {piece}");
            assert_eq!(
                (all.len(), events.last_id.as_deref(), events.retry),
                (5, Some("7"), Some(250)),
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn endless_events_and_lines_are_refused() {
        for (endless, max) in [("data: x\n", 1_000), ("x", 1_000), ("\u{fe}", 1_000), ("id: 1\r", 1_000)] {
            let mut events = Events::new(max);
            let why = (0..=max).find_map(|_| {
                events.push(endless.as_bytes());
                events.next().err()
            });
            assert!(why.unwrap().contains("an event of more than 1000 bytes"), "{endless}");
            assert!(events.held.len() <= max + endless.len() && events.data.len() <= max);
        }
    }

    #[test]
    fn odd_ids_are_not_sent_back() {
        let mut events = Events::new(10_000);
        let long = format!("id: {}\ndata: a\n\n", "x".repeat(MAX_ID + 1));
        for odd in ["id: a\u{0}b\ndata: a\n\n", "id: \u{e9}\ndata: a\n\n", &long] {
            read(&mut events, odd.as_bytes(), 1_000);
            assert_eq!(events.last_id, None);
        }
    }
}
