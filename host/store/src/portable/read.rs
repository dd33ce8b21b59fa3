//! Reading lines, with their records decoded.

use std::io::{BufRead, Read as _};

use dispatch::ports::{Denial, Head, Position, Source};
use domain::{
    CallId, Digest, Event,
    event::{CallEvent, HostStarted, PluginEvent},
    journal::Entry,
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::bounds::{self, BEGIN, DOCUMENTS, Kind, MEMORY};
use super::item::{CommitItem, Content, Item, Recorded};
use super::order::Key;
use super::{EntryItem, FORMAT, Hex, ImportError, Line, Moved, Shared, Stored, StoredRecord, head};
use crate::key_value::{MAX_VALUE, is_full_key};
use crate::record::{self, Record, Unreadable};

/// The memory that is kept for the next line. A larger line gives its memory back.
const KEPT: usize = 1 << 20;

/// The maximum size of the reason in an error, in bytes.
const MAX_REASON: usize = 200;

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
    max_record: usize,
    /// The place of the last line in the order of kinds.
    kind: usize,
    /// The position of the last commit.
    position: u64,
    /// The key of the last line with one.
    key: Option<Key>,
}

impl<'a> LineReader<'a> {
    /// Reads the first line. Later ones may have records of this size.
    pub(crate) fn begin(input: &'a mut dyn BufRead, max_record: usize) -> Result<Self, ImportError> {
        let moved = Moved { lines: 0, head: Head::START };
        let (text, kind, position, key) = (Vec::new(), 0, 0, None);
        let mut lines = Self { input, hash: Sha256::new(), moved, text, max_record, kind, position, key };
        match lines.read() {
            Ok(true) => {}
            Err(error @ ImportError::Read(_)) => return Err(error),
            Ok(false) | Err(_) => return Err(ImportError::NotAnExport),
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

    /// The maximum memory of a record, and of all records of a turn together.
    pub(crate) fn max_memory(&self) -> u64 {
        (self.max_record as u64).saturating_mul(MEMORY)
    }

    /// The number of lines that were read, and the head.
    pub(crate) fn moved(&self) -> Moved {
        self.moved
    }

    /// For `map_err`: the last line is damaged.
    pub(crate) fn damaged(&self, reason: impl Into<String>) -> ImportError {
        damaged(self.moved.lines, reason)
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
                self.follow(position)?;
                let content = self.content(source, content)?;
                Item::Commit(CommitItem { head: head(position, hash), source, conversation, content })
            }
            Line::Owner { conversation, owner } => Item::Owner(conversation, owner),
            Line::Call { conversation, id, turn } => Item::Call(conversation, id, turn),
            Line::Suspension(record) => Item::Suspension(self.recorded(record)?),
            Line::EndedTurn { position, end, bytes, record } => {
                Item::Ended { position: position.map(Position), end, bytes, ended: self.recorded(record)? }
            }
            Line::Standing { used, revoked, record } => {
                let mut given = self.recorded::<StandingRow>(record)?;
                (given.row.used, given.row.revoked) = (used, revoked.map(|revoked| (revoked.by, revoked.at)));
                Item::Standing(Box::new(given))
            }
            Line::Denial { conversation, alike, at } => Item::Denial(Denial { conversation, alike, at }),
            Line::Delivery(record) => Item::Delivery(self.recorded(record)?),
            Line::RunLog(record) => Item::RunLog(self.recorded(record)?),
            Line::Journal { turn, call, run, length } => Item::Journal { turn, call, run, length },
            Line::JournalEntry { turn, call, record } => {
                Item::JournalEntry(EntryItem { turn, call, entry: self.recorded::<Entry>(record)? })
            }
            Line::Value { key: Hex(key), value: Hex(value) } => {
                if !is_full_key(&key) || value.len() > MAX_VALUE {
                    return Err(self.damaged("no plugin can write its key or its value"));
                }
                Item::Value { key, value }
            }
            Line::Document { name, body: Hex(body) } => {
                if !DOCUMENTS.contains(&name.as_str()) {
                    let reason = format!("it has the document `{name}`, which this toolgate does not know");
                    return Err(ImportError::NewerRecord { line: self.moved.lines, reason: short(reason) });
                }
                Item::Shared(Shared::Document { name, body })
            }
            Line::Component { digest, bytes: Hex(bytes), record: Hex(record) } => {
                if Digest::of(&bytes) != digest {
                    return Err(self.damaged("the bytes of the component have another digest"));
                }
                Item::Shared(Shared::Component { digest, bytes, record })
            }
        };
        self.ascend(&item)?;
        Ok(Some(item))
    }

    /// The key of each line is larger than that of the line before it. Otherwise a later line could replace an earlier one.
    fn ascend(&mut self, item: &Item) -> Result<(), ImportError> {
        let Some(key) = Key::of(item) else { return Ok(()) };
        let refused = self.key.as_ref().and_then(|before| key.refused_after(before));
        self.key = Some(key);
        refused.map_or(Ok(()), |reason| Err(self.damaged(reason)))
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

    /// Each commit has the next position. A store would keep two of one position, and the audit would show one of them.
    fn follow(&mut self, position: u64) -> Result<(), ImportError> {
        let before = std::mem::replace(&mut self.position, position);
        if before.checked_add(1) == Some(position) {
            return Ok(());
        }
        Err(self.damaged(format!("its position is {position}, and the commit before it has {before}")))
    }

    /// Reads a line of a known kind, up to the maximum size of the kind. Returns whether there was one.
    fn read(&mut self) -> Result<bool, ImportError> {
        self.text.clear();
        let line = self.moved.lines + 1;
        let has_kind = self.read_to(b':', BEGIN)?;
        if self.text.is_empty() {
            return Ok(false);
        }
        let Some((place, kind)) = Kind::of(&self.text) else {
            let is_cut = !has_kind && self.text.len() < BEGIN && !self.text.contains(&b'\n');
            return Err(if is_cut {
                ImportError::Truncated { line: line - 1 }
            } else {
                let begin = String::from_utf8_lossy(&self.text);
                ImportError::Damaged { line, reason: format!("no kind of line begins with `{}`", begin.trim_end()) }
            });
        };
        if place < self.kind {
            let reason = format!("a line of the kind `{}` comes too late", kind.name);
            return Err(ImportError::Damaged { line, reason });
        }
        self.kind = place;
        let max = kind.max(self.max_record);
        if !self.read_to(b'\n', max - self.text.len())? {
            return Err(if self.text.len() < max {
                ImportError::Truncated { line: line - 1 }
            } else if kind.has_record() {
                ImportError::LargeRecord { line, max: self.max_record }
            } else {
                ImportError::TooLong { line, kind: kind.name, max }
            });
        }
        self.moved.lines = line;
        self.hash.update(&self.text);
        Ok(true)
    }

    /// Reads until after a byte, at most `max` bytes. Returns whether the byte came.
    fn read_to(&mut self, end: u8, max: usize) -> Result<bool, ImportError> {
        let mut input = (&mut *self.input).take(max as u64);
        input.read_until(end, &mut self.text).map_err(ImportError::Read)?;
        Ok(self.text.last() == Some(&end))
    }

    fn parsed(&mut self) -> Result<Line, ImportError> {
        let text = std::mem::take(&mut self.text);
        let line = serde_json::from_slice(&text).map_err(|error| self.damaged(error.to_string()));
        if text.capacity() <= KEPT {
            self.text = text;
        }
        line
    }

    fn content(&self, source: Source, content: Stored) -> Result<Content, ImportError> {
        let record = match content {
            Stored::Removed { digest, by } => return Ok(Content::Removed { digest, by: Position(by) }),
            Stored::Record(record) => self.record(record)?,
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

    fn recorded<T: Record>(&self, record: StoredRecord) -> Result<Recorded<T>, ImportError> {
        let record = self.record(record)?;
        let row = T::read(&record).map_err(|unreadable| self.unreadable(unreadable))?;
        Ok(Recorded { row, record })
    }

    fn record(&self, record: StoredRecord) -> Result<Vec<u8>, ImportError> {
        let (record, line) = (record.into_bytes(), self.moved.lines);
        if record.len() > self.max_record {
            return Err(ImportError::LargeRecord { line, max: self.max_record });
        }
        let max = self.max_memory();
        if bounds::memory(&record) > max { Err(ImportError::ManyValues { line, max }) } else { Ok(record) }
    }

    fn unreadable(&self, unreadable: Unreadable) -> ImportError {
        let (line, reason) = (self.moved.lines, short(unreadable.to_string()));
        match unreadable {
            Unreadable::Newer { .. } => ImportError::NewerRecord { line, reason },
            Unreadable::Damaged(_) => ImportError::Damaged { line, reason },
        }
    }
}

/// This line is damaged.
pub(crate) fn damaged(line: u64, reason: impl Into<String>) -> ImportError {
    ImportError::Damaged { line, reason: short(reason.into()) }
}

/// The beginning of a reason, which may quote a long line.
fn short(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    reason
}

fn requested(events: Vec<Event>) -> Vec<CallId> {
    let requested = events.into_iter().filter_map(|event| match event {
        Event::Call { event: CallEvent::Requested { id, .. }, .. } => Some(id),
        _ => None,
    });
    requested.collect()
}

#[cfg(test)]
mod tests;
