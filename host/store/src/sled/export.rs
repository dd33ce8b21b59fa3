//! Exports everything that is stored as JSON lines: for people, for a move to another store, and for the case that sled
//! can no longer be used.
//!
//! One line holds one entry, under the name of its kind. Records are in their stored form, with the version of their
//! format. Indexes that follow from the logs are left out. Bytes that plugins stored are hexadecimal.

use std::io::{self, Write};

use dispatch::ports::{Position, Source, StoreFault};
use domain::{Digest, TurnId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::remains::{self, Remains, lost};
use super::{SledStore, blobs, keys};
use crate::fault::fault;

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreFault),
    #[error("cannot write the export")]
    Write(#[source] io::Error),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Commit { turn: String, number: u32, position: u64, version: u8, events: &'a RawValue },
    Removed { turn: String, number: u32, position: u64, record: String },
    Lost { position: u64, record: String },
    Call { conversation: &'a str, call: &'a str, turn: String },
    Removal { position: u64, version: u8, removal: &'a RawValue },
    Plugin { position: u64, version: u8, event: &'a RawValue },
    Started { position: u64, version: u8, start: &'a RawValue },
    Audit { position: u64, hash: String, source: String },
    Suspension { version: u8, row: &'a RawValue },
    Delivery { version: u8, row: &'a RawValue },
    RunLog { version: u8, log: &'a RawValue },
    JournalEntry { turn: String, call: u16, version: u8, entry: &'a RawValue },
    Standing { version: u8, row: &'a RawValue },
    Revoked { position: u64, version: u8, revoked: &'a RawValue },
    KeyValue { key: String, value: String },
}

impl SledStore {
    /// Writes every commit, removal of turns, plugin event, start, standing approval and its end, chain entry,
    /// suspension, delivery, log of a run, entry of a journal and plugin value as one JSON line, and returns how many. A removed commit has the digest
    /// of its record, and the call ids of removed turns have lines of their own: their logs no longer name them. The source of a
    /// chain entry is hexadecimal, in the form that is hashed. The key of a plugin value is its namespace and its bucket, each
    /// after its length in two bytes, and the key itself.
    ///
    /// # Errors
    /// [`ExportError`]; the lines that were written are complete.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, ExportError> {
        let mut lines = 0;
        let happened =
            [keys::LOG, keys::REMOVED, keys::HOST_FEED, keys::STARTED, keys::REVOKED, keys::REMOVAL, keys::AUDIT];
        let rows = [keys::SUSPENSION, keys::STANDING, keys::DELIVERY, keys::RUN_LOG, keys::JOURNAL_ENTRY];
        for index in happened.into_iter().chain(rows) {
            for entry in self.reader.tree.scan_prefix([index]) {
                let (key, value) = entry.map_err(fault("export"))?;
                lines += match index {
                    keys::REMOVED => export_remains(&key, &value, out)?,
                    _ => self.export_record(index, &key, &value, out).map(|()| 1)?,
                };
            }
        }
        for entry in self.reader.tree.scan_prefix([keys::CALL]) {
            let (key, value) = entry.map_err(fault("export"))?;
            let turn = keys::tail_u128(&value).map(TurnId::from_bits);
            let call = keys::read_call(&key).zip(turn);
            let ((conversation, call), turn) =
                call.ok_or_else(|| StoreFault::damaged("export", "the entry of a call id is damaged"))?;
            if self.reader.is_removed(turn)? {
                write_line(&Line::Call { conversation, call, turn: turn.to_string() }, out)?;
                lines += 1;
            }
        }
        for entry in self.values.tree().scan_prefix([]) {
            let (key, value) = entry.map_err(fault("export"))?;
            write_line(&Line::KeyValue { key: hex(&key), value: hex(&value) }, out)?;
            lines += 1;
        }
        Ok(lines)
    }

    fn export_record(&self, index: u8, key: &[u8], value: &[u8], out: &mut dyn Write) -> Result<(), ExportError> {
        let damaged = || StoreFault::damaged("export", format!("{} is damaged", keys::in_words(key)));
        if index == keys::AUDIT {
            let (hash, source) = keys::read_link(value).ok_or_else(damaged)?;
            let position = keys::tail_u64(key).ok_or_else(damaged)?;
            let (hash, source) = (hash.to_string(), hex(&Source::to_bytes(source)));
            return write_line(&Line::Audit { position, hash, source }, out);
        }
        let (stamp, record) = match index {
            keys::LOG | keys::SUSPENSION | keys::STANDING | keys::DELIVERY | keys::JOURNAL_ENTRY => {
                keys::stamped(value).ok_or_else(damaged)?
            }
            keys::RUN_LOG => (Position::default(), keys::record(key, value).ok_or_else(damaged)?),
            _ => (Position::default(), value),
        };
        if let Some((digest, _)) = lost(record) {
            let position = keys::tail_u64(key).ok_or_else(damaged)?;
            return write_line(&Line::Lost { position, record: Digest::to_string(&digest) }, out);
        }
        let blob = blobs::referred(record).map(|digest| self.reader.blobs.read_now(digest)).transpose()?;
        let (&version, json) = blob.as_deref().unwrap_or(record).split_first().ok_or_else(damaged)?;
        let json: &RawValue = serde_json::from_slice(json).map_err(|_| damaged())?;
        let position = keys::tail_u64(key).ok_or_else(damaged)?;
        let line = match index {
            keys::LOG => {
                let (turn, number) = keys::read_pointer(&key[1..]).ok_or_else(damaged)?;
                Line::Commit { turn: TurnId::to_string(&turn), number, position: stamp.0, version, events: json }
            }
            keys::HOST_FEED => Line::Plugin { position, version, event: json },
            keys::STARTED => Line::Started { position, version, start: json },
            keys::DELIVERY => Line::Delivery { version, row: json },
            keys::RUN_LOG => Line::RunLog { version, log: json },
            keys::JOURNAL_ENTRY => {
                let (turn, call) = keys::call_of(key).ok_or_else(damaged)?;
                Line::JournalEntry { turn: turn.to_string(), call: call.0, version, entry: json }
            }
            keys::REVOKED => Line::Revoked { position, version, revoked: json },
            keys::REMOVAL => Line::Removal { position, version, removal: json },
            keys::STANDING => Line::Standing { version, row: json },
            _ => Line::Suspension { version, row: json },
        };
        write_line(&line, out)
    }
}

/// A line for each record of a removed turn.
fn export_remains(key: &[u8], value: &[u8], out: &mut dyn Write) -> Result<u64, ExportError> {
    let ((turn, first), (_, remains)) = remains::read_key(key)
        .zip(Remains::read(value))
        .ok_or_else(|| StoreFault::damaged("export", format!("{} is damaged", keys::in_words(key))))?;
    let mut lines = 0;
    for (number, (position, digest)) in (first..).zip(remains.records()) {
        let (turn, record) = (turn.to_string(), digest.to_string());
        write_line(&Line::Removed { turn, number, position: position.0, record }, out)?;
        lines += 1;
    }
    Ok(lines)
}

fn write_line(line: &Line<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut text = serde_json::to_vec(line).map_err(|error| ExportError::Write(error.into()))?;
    text.push(b'\n');
    out.write_all(&text).map_err(ExportError::Write)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
