//! Writes a store in its portable form (`portable.rs`).

use std::collections::HashMap;
use std::io::Write;

use dispatch::ports::{Position, Source, StoreFault};
use domain::{ConversationId, Event, PrincipalId, TurnId, event::TurnEnd};

use super::journals::JournalHead;
use super::keys::{self, StandingUsage};
use super::reader::Reader;
use super::remains::{self, Remains, lost};
use super::{SledStore, blobs, chain};
use crate::fault::fault;
use crate::portable::{ExportError, Hex, Line, LineWriter, Moved, Place, Revocation, Stored, StoredRecord};
use crate::record;

/// The operation that fails.
const EXPORT: &str = "export";

/// The maximum number of turns whose conversations are remembered. If there are more, all are forgotten.
const MAX_TURNS: usize = 1 << 14;

impl SledStore {
    /// Writes everything that is stored as JSON lines. Commits that are made meanwhile may be in it in part.
    ///
    /// # Errors
    /// [`ExportError`]; the lines that were written are no whole export.
    pub fn export(&self, out: &mut dyn Write) -> Result<Moved, ExportError> {
        let reader = &self.reader;
        let lines = LineWriter::begin(out, chain::head(&reader.tree)?)?;
        let mut export = Export { reader, lines, conversations: HashMap::new() };
        if let Some(value) = reader.tree.get(keys::RETENTION_TIME).map_err(fault(EXPORT))? {
            let at = keys::tail_u64(&value).ok_or_else(|| damaged(keys::RETENTION_TIME))?;
            export.lines.line(&Line::RetentionTime { at: domain::Timestamp::from_millis(at) })?;
        }
        for index in [
            keys::AUDIT,
            keys::OWNER,
            keys::CALL,
            keys::SUSPENSION,
            keys::ENDED,
            keys::STANDING,
            keys::DENIED,
            keys::DELIVERY,
            keys::RUN_LOG,
            keys::JOURNAL,
            keys::JOURNAL_ENTRY,
        ] {
            for entry in reader.tree.scan_prefix([index]) {
                let (key, value) = entry.map_err(fault(EXPORT))?;
                if let Some(line) = export.line_of(index, &key, &value)? {
                    export.lines.line(&line)?;
                }
            }
        }
        for entry in self.values.tree().scan_prefix([]) {
            let (key, value) = entry.map_err(fault(EXPORT))?;
            export.lines.line(&Line::Value { key: Hex(key.to_vec()), value: Hex(value.to_vec()) })?;
        }
        export.lines.end()
    }
}

struct Export<'a> {
    reader: &'a Reader,
    lines: LineWriter<'a>,
    /// The conversations of some turns.
    conversations: HashMap<TurnId, ConversationId>,
}

impl Export<'_> {
    /// The line of an entry. `None`: the logs say the same.
    fn line_of(&mut self, index: u8, key: &[u8], value: &[u8]) -> Result<Option<Line>, StoreFault> {
        let damaged = || damaged(key);
        let rest = || Ok::<_, StoreFault>(keys::stamped(value).ok_or_else(damaged)?.1);
        let recorded = || self.record(key, keys::record(key, value).ok_or_else(damaged)?);
        Ok(Some(match index {
            keys::AUDIT => self.commit(key, value)?,
            keys::OWNER => {
                let conversation = parsed(key.get(1..)).ok_or_else(damaged)?;
                Line::Owner { conversation, owner: parsed::<PrincipalId>(Some(rest()?)).ok_or_else(damaged)? }
            }
            keys::CALL => {
                let turn = TurnId::from_bits(keys::tail_u128(value).ok_or_else(damaged)?);
                if !self.reader.is_removed(turn)? {
                    return Ok(None);
                }
                let (conversation, id) = keys::read_call(key).ok_or_else(damaged)?;
                let (conversation, id) = (conversation.parse().ok(), id.parse().ok());
                let (conversation, id) = conversation.zip(id).ok_or_else(damaged)?;
                Line::Call { conversation, id, turn }
            }
            keys::SUSPENSION => Line::Suspension(recorded()?),
            keys::ENDED => {
                let turn = TurnId::from_bits(keys::tail_u128(key).ok_or_else(damaged)?);
                let (bytes, _) = keys::read_count(rest()?).ok_or_else(damaged)?;
                let (position, end) = self.end_of(turn)?.ok_or_else(damaged)?;
                Line::EndedTurn { position: Some(position.0), end, bytes, record: recorded()? }
            }
            keys::STANDING => {
                let id = key.get(1..).ok_or_else(damaged)?;
                let usage = self.reader.tree.get([&[keys::STANDING_STATE], id].concat()).map_err(fault(EXPORT))?;
                let usage =
                    usage.as_deref().and_then(keys::stamped).and_then(|(_, usage)| StandingUsage::from_bytes(usage));
                let StandingUsage { used, revoked, .. } = usage.ok_or_else(damaged)?;
                let revoked = revoked.map(|(at, by)| {
                    Ok::<_, StoreFault>(Revocation { by: PrincipalId::new(&by).map_err(|_| damaged())?, at })
                });
                Line::Standing { used, revoked: revoked.transpose()?, record: recorded()? }
            }
            keys::DENIED => {
                let denial = keys::read_denial(key, rest()?).ok_or_else(damaged)?;
                Line::Denial { conversation: denial.conversation, alike: denial.alike, at: denial.at }
            }
            keys::DELIVERY => Line::Delivery(recorded()?),
            keys::RUN_LOG => Line::RunLog(recorded()?),
            keys::JOURNAL => {
                let (turn, call) = keys::call_of(key).ok_or_else(damaged)?;
                let JournalHead { run, length, .. } = JournalHead::read(rest()?).ok_or_else(damaged)?;
                Line::Journal { turn, call, run: Some(run).filter(|run| *run > 0), length }
            }
            _ => {
                let (turn, call) = keys::call_of(key).ok_or_else(damaged)?;
                Line::JournalEntry { turn, call, record: recorded()? }
            }
        }))
    }

    /// An entry of the audit, with its record.
    fn commit(&mut self, key: &[u8], value: &[u8]) -> Result<Line, StoreFault> {
        let (hash, source) = keys::read_link(value).ok_or_else(|| damaged(key))?;
        let position = Position(keys::tail_u64(key).ok_or_else(|| damaged(key))?);
        let place = chain::key_of(position, source);
        let damaged = || damaged(&place);
        let stored = self.reader.tree.get(&place).map_err(fault(EXPORT))?;
        let (content, conversation) = match (source, stored) {
            (Source::Turn { turn, .. }, Some(stored)) => {
                let (_, record) = keys::stamped(&stored).filter(|(at, _)| *at == position).ok_or_else(damaged)?;
                (Stored::Record(self.record(&place, record)?), Some(self.conversation(turn)?))
            }
            (Source::Turn { turn, number }, None) => {
                let get = |key: &[u8]| self.reader.tree.get(key).map_err(fault(EXPORT));
                let record = remains::record_of(turn, number, get)?.filter(|(at, _)| *at == position);
                let (_, digest) = record.ok_or_else(damaged)?;
                let removed = get(&keys::removed(turn))?.ok_or_else(damaged)?;
                let (by, remains) = Remains::read(&removed).ok_or_else(damaged)?;
                let conversation = ConversationId::new(remains.conversation).map_err(|_| damaged())?;
                (Stored::Removed { digest, by: by.0 }, Some(conversation))
            }
            (_, stored) => {
                let stored = stored.ok_or_else(damaged)?;
                let content = match lost(&stored) {
                    Some((digest, by)) => Stored::Removed { digest, by: by.0 },
                    None => Stored::Record(self.record(&place, &stored)?),
                };
                (content, None)
            }
        };
        let source = Place::of(source, conversation).ok_or_else(damaged)?;
        Ok(Line::Commit { position: position.0, hash, source, content })
    }

    /// A record, from the tree or from its file.
    fn record(&self, key: &[u8], record: &[u8]) -> Result<StoredRecord, StoreFault> {
        let blob = blobs::referred(record).map(|digest| self.reader.blobs.read_now(digest)).transpose()?;
        StoredRecord::of(blob.as_deref().unwrap_or(record)).ok_or_else(|| damaged(key))
    }

    /// The conversation of a turn, which the first commit names.
    fn conversation(&mut self, turn: TurnId) -> Result<ConversationId, StoreFault> {
        if let Some(conversation) = self.conversations.get(&turn) {
            return Ok(conversation.clone());
        }
        let named = self.events(&keys::log(turn, 0))?.into_iter().find_map(|event| match event {
            Event::TurnStarted { conversation, .. } => Some(conversation),
            _ => None,
        });
        let conversation = named.ok_or_else(|| damaged(&keys::log(turn, 0)))?;
        if self.conversations.len() == MAX_TURNS {
            self.conversations.clear();
        }
        self.conversations.insert(turn, conversation.clone());
        Ok(conversation)
    }

    /// The position of the commit that ended a turn, and how it ended.
    fn end_of(&self, turn: TurnId) -> Result<Option<(Position, TurnEnd)>, StoreFault> {
        for entry in self.reader.tree.scan_prefix(keys::log_of(turn)).rev() {
            let (key, value) = entry.map_err(fault(EXPORT))?;
            let end = self.events(&key)?.into_iter().find_map(|event| match event {
                Event::TurnSettled { end, .. } => Some(end),
                _ => None,
            });
            if let Some((end, (position, _))) = end.zip(keys::stamped(&value)) {
                return Ok(Some((position, end)));
            }
        }
        Ok(None)
    }

    /// The events of the commit under a key.
    fn events(&self, key: &[u8]) -> Result<Vec<Event>, StoreFault> {
        let value = self.reader.tree.get(key).map_err(fault(EXPORT))?.ok_or_else(|| damaged(key))?;
        let (_, record) = keys::stamped(&value).ok_or_else(|| damaged(key))?;
        let blob = blobs::referred(record).map(|digest| self.reader.blobs.read_now(digest)).transpose()?;
        record::read_events(blob.as_deref().unwrap_or(record))
            .map_err(|unreadable| StoreFault::damaged(EXPORT, format!("{}: {unreadable}", keys::in_words(key))))
    }
}

fn parsed<T: std::str::FromStr>(bytes: Option<&[u8]>) -> Option<T> {
    std::str::from_utf8(bytes?).ok()?.parse().ok()
}

fn damaged(key: &[u8]) -> StoreFault {
    StoreFault::damaged(EXPORT, format!("{} is damaged", keys::in_words(key)))
}
