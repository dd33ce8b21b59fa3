//! Reading lines, with their records decoded.

use std::io::{BufRead, Read as _};

use dispatch::ports::{DeliveryRow, Denial, EndedTurn, Head, Position, RunLog, Source, SuspensionRow};
use domain::{
    CallId, CallIndex, ConversationId, Digest, Event, PrincipalId, Timestamp, TurnId,
    event::{CallEvent, HostStarted, PluginEvent, TurnEnd},
    journal::Entry,
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{EntryItem, FORMAT, Hex, ImportError, Line, Moved, Shared, Stored, StoredRecord, head};
use crate::record::{self, Record, Unreadable};

/// The maximum size of a line. No record is as large.
const MAX_LINE: u64 = 1 << 30;

/// A decoded record with its stored form.
pub(crate) struct Recorded<T> {
    pub(crate) row: T,
    pub(crate) record: Vec<u8>,
}

/// A line between the first and the last one.
pub(crate) enum Item {
    RetentionTime(Timestamp),
    Commit(CommitItem),
    Owner(ConversationId, PrincipalId),
    Call(ConversationId, CallId, TurnId),
    Suspension(Recorded<SuspensionRow>),
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "a data folder finds the position and the end in the log")
    )]
    Ended {
        position: Option<Position>,
        end: TurnEnd,
        bytes: u64,
        ended: Recorded<EndedTurn>,
    },
    Standing(Box<Recorded<StandingRow>>),
    Denial(Denial),
    Delivery(Recorded<DeliveryRow>),
    RunLog(Recorded<RunLog>),
    Journal {
        turn: TurnId,
        call: CallIndex,
        run: Option<u32>,
        length: u32,
    },
    JournalEntry(EntryItem),
    Value {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Shared(Shared),
}

/// An entry of the audit.
pub(crate) struct CommitItem {
    pub(crate) head: Head,
    pub(crate) source: Source,
    /// Of a turn.
    pub(crate) conversation: Option<ConversationId>,
    pub(crate) content: Content,
}

pub(crate) enum Content {
    /// The stored form, and the ids of the calls that it requests.
    Record(Vec<u8>, Vec<CallId>),
    Removed {
        digest: Digest,
        by: Position,
    },
}

/// The first line, as far as each format has it.
#[derive(Deserialize)]
struct First {
    store: FirstStore,
}

#[derive(Deserialize)]
struct FirstStore {
    format: u32,
}

/// Reads the lines of an export.
pub(crate) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    hash: Sha256,
    moved: Moved,
    text: Vec<u8>,
    /// The maximum size of a line.
    max: u64,
}

impl<'a> LineReader<'a> {
    /// Reads the first line.
    pub(crate) fn begin(input: &'a mut dyn BufRead) -> Result<Self, ImportError> {
        Self::within(input, MAX_LINE)
    }

    fn within(input: &'a mut dyn BufRead, max: u64) -> Result<Self, ImportError> {
        let moved = Moved { lines: 0, head: Head::START };
        let mut lines = Self { input, hash: Sha256::new(), moved, text: Vec::new(), max };
        if !lines.read()? {
            return Err(ImportError::NotAnExport);
        }
        let First { store: FirstStore { format } } =
            serde_json::from_slice(&lines.text).map_err(|_| ImportError::NotAnExport)?;
        if format > FORMAT {
            return Err(ImportError::Newer { found: format, known: FORMAT });
        }
        let Line::Store { position, hash, .. } = lines.parsed()? else { return Err(ImportError::NotAnExport) };
        lines.moved.head = head(position, hash);
        Ok(lines)
    }

    /// The head of the audit, as the first line has it.
    pub(crate) fn head(&self) -> Head {
        self.moved.head
    }

    /// The number of lines that were read, and the head.
    pub(crate) fn moved(&self) -> Moved {
        self.moved
    }

    /// For `map_err`: the last line is damaged.
    pub(crate) fn damaged(&self, reason: impl Into<String>) -> ImportError {
        ImportError::Damaged { line: self.moved.lines, reason: reason.into() }
    }

    /// The next line. `None` after the last one, if the lines are those that were written.
    pub(crate) fn next(&mut self) -> Result<Option<Item>, ImportError> {
        let (before, lines) = (self.hash.clone(), self.moved.lines);
        if !self.read()? {
            return Err(ImportError::Truncated { line: lines });
        }
        let item = match self.parsed()? {
            Line::End { lines: expected, digest } => {
                self.moved.lines = lines;
                return self.end(expected, digest, before).map(|()| None);
            }
            Line::Store { .. } => return Err(self.damaged("it is a second first line")),
            Line::RetentionTime { at } => Item::RetentionTime(at),
            Line::Commit { position, hash, source, content } => {
                let (source, conversation) = source.source();
                let content = self.content(source, content)?;
                Item::Commit(CommitItem { head: head(position, hash), source, conversation, content })
            }
            Line::Owner { conversation, owner } => Item::Owner(conversation, owner),
            Line::Call { conversation, id, turn } => Item::Call(conversation, id, turn),
            Line::Suspension(record) => Item::Suspension(self.recorded(&record)?),
            Line::EndedTurn { position, end, bytes, record } => {
                Item::Ended { position: position.map(Position), end, bytes, ended: self.recorded(&record)? }
            }
            Line::Standing { used, revoked, record } => {
                let mut given = self.recorded::<StandingRow>(&record)?;
                (given.row.used, given.row.revoked) = (used, revoked.map(|revoked| (revoked.by, revoked.at)));
                Item::Standing(Box::new(given))
            }
            Line::Denial { conversation, alike, at } => Item::Denial(Denial { conversation, alike, at }),
            Line::Delivery(record) => Item::Delivery(self.recorded(&record)?),
            Line::RunLog(record) => Item::RunLog(self.recorded(&record)?),
            Line::Journal { turn, call, run, length } => Item::Journal { turn, call, run, length },
            Line::JournalEntry { turn, call, record } => {
                Item::JournalEntry(EntryItem { turn, call, entry: self.recorded::<Entry>(&record)? })
            }
            Line::Value { key: Hex(key), value: Hex(value) } => Item::Value { key, value },
            Line::Document { name, body: Hex(body) } => Item::Shared(Shared::Document { name, body }),
            Line::Component { digest, bytes: Hex(bytes), record: Hex(record) } => {
                if Digest::of(&bytes) != digest {
                    return Err(self.damaged("the bytes of the component have another digest"));
                }
                Item::Shared(Shared::Component { digest, bytes, record })
            }
        };
        Ok(Some(item))
    }

    fn end(&mut self, expected: u64, digest: Digest, before: Sha256) -> Result<(), ImportError> {
        let altered = |what: String| Err(ImportError::Altered(what));
        let lines = self.moved.lines;
        if expected != lines {
            return altered(format!("it has {lines} lines, and its last one says {expected}"));
        }
        let found = Digest::from_bytes(before.finalize().into());
        if found != digest {
            return altered(format!("its lines have the digest {found}, and its last one says {digest}"));
        }
        if self.read()? {
            return altered("it goes on after its last line".to_owned());
        }
        Ok(())
    }

    /// Reads a line. Returns whether there was one.
    fn read(&mut self) -> Result<bool, ImportError> {
        self.text.clear();
        let mut input = (&mut *self.input).take(self.max);
        let size = input.read_until(b'\n', &mut self.text).map_err(ImportError::Read)?;
        if size == 0 {
            return Ok(false);
        }
        if self.text.last() != Some(&b'\n') {
            let line = self.moved.lines;
            return Err(if size as u64 == self.max {
                ImportError::Damaged { line: line + 1, reason: format!("it has more than {} bytes", self.max) }
            } else {
                ImportError::Truncated { line }
            });
        }
        self.moved.lines += 1;
        self.hash.update(&self.text);
        Ok(true)
    }

    fn parsed(&self) -> Result<Line, ImportError> {
        serde_json::from_slice(&self.text).map_err(|error| self.damaged(error.to_string()))
    }

    fn content(&self, source: Source, content: Stored) -> Result<Content, ImportError> {
        let record = match content {
            Stored::Removed { digest, by } => return Ok(Content::Removed { digest, by: Position(by) }),
            Stored::Record(record) => record.bytes(),
        };
        let mut calls = Vec::new();
        let read = match source {
            Source::Turn { .. } => record::read_events(&record).map(|events| calls = requested(events)),
            Source::Plugin => PluginEvent::read(&record).map(drop),
            Source::Started => HostStarted::read(&record).map(drop),
            Source::Revoked => StandingRevoked::read(&record).map(drop),
            Source::Removal => Removal::read(&record).map(drop),
        };
        read.map_err(|unreadable| self.unreadable(unreadable))?;
        Ok(Content::Record(record, calls))
    }

    fn recorded<T: Record>(&self, record: &StoredRecord) -> Result<Recorded<T>, ImportError> {
        let record = record.bytes();
        let row = T::read(&record).map_err(|unreadable| self.unreadable(unreadable))?;
        Ok(Recorded { row, record })
    }

    fn unreadable(&self, unreadable: Unreadable) -> ImportError {
        let (line, reason) = (self.moved.lines, unreadable.to_string());
        match unreadable {
            Unreadable::Newer { .. } => ImportError::NewerRecord { line, reason },
            Unreadable::Damaged(_) => ImportError::Damaged { line, reason },
        }
    }
}

fn requested(events: Vec<Event>) -> Vec<CallId> {
    let requested = events.into_iter().filter_map(|event| match event {
        Event::Call { event: CallEvent::Requested { id, .. }, .. } => Some(id),
        _ => None,
    });
    requested.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_is_too_long_is_refused() {
        let first = format!("{{\"store\":{{\"format\":1,\"position\":0,\"hash\":\"{}\"}}}}\n", Head::START.hash);
        let max = first.len() as u64;
        let read = |second: &str| {
            let text = format!("{first}{second}");
            let mut input = text.as_bytes();
            LineReader::within(&mut input, max).unwrap().next().map(drop).unwrap_err().to_string()
        };
        let long = format!("line 2 is damaged: it has more than {max} bytes");
        assert_eq!(read(&"x".repeat(first.len())), long);
        assert_eq!(read(&format!("{}\n", "x".repeat(first.len()))), long);
        assert!(read(&format!("{}\n", "x".repeat(first.len() - 1))).starts_with("line 2 is damaged: expected value"));
        assert!(read("x").contains("it was cut off"));
    }
}
