//! The maximum size of each kind of line. An export may come from a stranger, and an import holds one line in memory.

use dispatch::ports::LogLine;
use domain::{
    Event, Suspension, TurnId,
    approvers::{Delegation, Need, Vote},
    doubt::DoubtfulRequest,
    retention::RemovedTurn,
};

use super::ImportError;
use crate::key_value::{MAX_FULL_KEY, MAX_VALUE};

/// The maximum size of a document, in bytes.
pub(crate) const MAX_DOCUMENT: usize = 16 << 20;

/// The maximum size of a component, as the registry has it.
pub(crate) const MAX_COMPONENT: usize = 64 << 20;

/// The maximum size of the record of a component, as the registry has it.
pub(crate) const MAX_COMPONENT_RECORD: usize = 128 << 20;

/// The maximum size of a record that an import takes by default, in bytes. With the default limits, all results of a turn have at most
/// 32 MiB, and their JSON at most twice as much as a string.
pub const MAX_RECORD: usize = 64 << 20;

/// The memory of one record, and that of all records of a turn together, may be this many times the maximum size of a record.
pub(crate) const MEMORY: u64 = 4;

/// The memory that a record of a turn takes beside its content, in bytes.
pub(crate) const PER_RECORD: u64 = 256;

/// The memory that each JSON value of a record takes when it is read, beside the bytes of its text. The smallest value for its memory
/// is a short text in a list: 24 bytes in a vector with room for twice as many, 24 in the list that is made of it, and 32 for the text.
const PER_VALUE: u64 = 128;

// The other values in lists are objects. Each counts once, and once more for each of its members.
const _: () = assert!(
    2 * size_of::<Event>() as u64 <= 3 * PER_VALUE
        && size_of::<Suspension>() as u64 <= 7 * PER_VALUE
        && 3 * size_of::<Need>() as u64 <= 4 * PER_VALUE
        && 3 * size_of::<Vote>() as u64 <= 5 * PER_VALUE
        && 3 * size_of::<Delegation>() as u64 <= 5 * PER_VALUE
        && 3 * size_of::<DoubtfulRequest>() as u64 <= 4 * PER_VALUE
        && 2 * size_of::<LogLine>() as u64 <= 4 * PER_VALUE
        && 2 * size_of::<RemovedTurn>() as u64 <= 3 * PER_VALUE
);

/// The names of the documents, in the order of their lines. A store has no others.
pub const DOCUMENTS: [&str; 2] = ["ended-sessions", "tokens"];

/// The maximum size of ids, numbers and times in a line, and of the names of its members.
const IDS: usize = 4 << 10;

/// The size of the beginning of a line: `{"`, its kind, and `":`. No kind is as long.
pub(super) const BEGIN: usize = 24;

/// A kind of line.
pub(super) struct Kind {
    pub(super) name: &'static str,
    content: Content,
}

enum Content {
    /// Ids, numbers and times.
    Ids,
    /// A record too.
    Record,
    /// Bytes as hexadecimal digits too, at most this number.
    Hex(usize),
}

/// In the order of their lines.
const KINDS: [Kind; 17] = [
    Kind { name: "store", content: Content::Ids },
    Kind { name: "retention_time", content: Content::Ids },
    Kind { name: "commit", content: Content::Record },
    Kind { name: "owner", content: Content::Ids },
    Kind { name: "call", content: Content::Ids },
    Kind { name: "suspension", content: Content::Record },
    Kind { name: "ended_turn", content: Content::Record },
    Kind { name: "standing", content: Content::Record },
    Kind { name: "denial", content: Content::Ids },
    Kind { name: "delivery", content: Content::Record },
    Kind { name: "run_log", content: Content::Record },
    Kind { name: "journal", content: Content::Ids },
    Kind { name: "journal_entry", content: Content::Record },
    Kind { name: "value", content: Content::Hex(MAX_FULL_KEY + MAX_VALUE) },
    Kind { name: "document", content: Content::Hex(MAX_DOCUMENT) },
    Kind { name: "component", content: Content::Hex(MAX_COMPONENT + MAX_COMPONENT_RECORD) },
    Kind { name: "end", content: Content::Ids },
];

impl Kind {
    /// The kind of a line by its beginning, and its place in the order of kinds.
    pub(super) fn of(begin: &[u8]) -> Option<(usize, &'static Self)> {
        let name = begin.strip_prefix(b"{\"")?.strip_suffix(b"\":")?;
        KINDS.iter().enumerate().find(|(_, kind)| kind.name.as_bytes() == name)
    }

    pub(super) fn has_record(&self) -> bool {
        matches!(self.content, Content::Record)
    }

    /// The maximum size of a line. A record has at most `max_record` bytes.
    pub(super) fn max(&self, max_record: usize) -> usize {
        match self.content {
            Content::Ids => IDS,
            Content::Record => max_record.saturating_add(IDS),
            Content::Hex(bytes) => 2 * bytes + IDS,
        }
    }
}

/// The maximum memory that a record takes when it is read, without the bytes themselves. It is found without reading the record,
/// because small values take many times the memory of their JSON.
pub(crate) fn memory(record: &[u8]) -> u64 {
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    // Behind the version.
    for byte in record.iter().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => values += 1,
            _ => {}
        }
    }
    record.len() as u64 + values * PER_VALUE
}

/// The events of one turn.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) all: Vec<Event>,
    bytes: u64,
}

impl Events {
    /// Adds those of a record.
    pub(crate) fn add(&mut self, turn: TurnId, record: &[u8], events: Vec<Event>, max: u64) -> Result<(), ImportError> {
        self.bytes += PER_RECORD + memory(record);
        if self.bytes > max {
            return Err(ImportError::LargeTurn { turn, max });
        }
        self.all.extend(events);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_outside_of_texts_take_memory() {
        for (record, values) in
            [("1", 0), ("{}", 1), (r#"{"a":1,"b":[2,3]}"#, 4), (r#"["",""]"#, 2), (r#"["[,{\",[{,\\",1]"#, 2)]
        {
            let record = [b"\x01", record.as_bytes()].concat();
            assert_eq!(memory(&record), record.len() as u64 + 128 * values);
        }
    }
}
