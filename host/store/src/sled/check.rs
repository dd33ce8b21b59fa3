//! Checks that stored data is consistent.
//!
//! sled verifies a checksum of every page that it reads. This looks for what a checksum cannot find: logs with gaps,
//! records that cannot be decoded, index entries that point nowhere. Opening checks the last entries of every kind. For
//! logs, suspensions and the chain these are the newest, which a crash could have damaged; this takes a few
//! milliseconds at any size. [`SledStore::check`] checks everything, and [`super::verify()`] the whole chain.

use std::fmt;

use dispatch::ports::{DeliveryRow, EndedTurn, Head, Position, Recorded, RunLog, Source, StoreFault, SuspensionRow};
use domain::{
    Event, StandingId, SuspensionId, TurnId,
    event::{CallEvent, HostStarted, PluginEvent},
    journal::{Entry, JournalSummary},
    retention::Removal,
    standing::{StandingRevoked, StandingRow},
    suspension::Audience,
};

use super::durable::Durable;
use super::journals::{self, JournalHead};
use super::keys::{self, read_count};
use super::reader::Reader;
use super::remains::{self, Remains, lost, tombstone};
use super::set_aside::SetAside;
use super::{SledStore, blobs, chain, feeds};
use crate::fault::fault;
use crate::record::{self, Record, Unreadable};

/// How many entries of each kind are checked when a store is opened.
const SAMPLE: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCheck {
    /// The number of checked entries.
    pub entries: u64,
    pub problems: Vec<Inconsistency>,
}

/// An inconsistency of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inconsistency {
    text: String,
    newer: Option<(u8, u8)>,
    structural: bool,
    /// The turn whose log has the problem, or is missing a record.
    turn: Option<TurnId>,
}

impl Inconsistency {
    /// The version of a record, and the newest that this host knows, if the only problem is that it is newer.
    #[must_use]
    pub fn newer(&self) -> Option<(u8, u8)> {
        self.newer
    }

    /// Whether the order of commits or the chain of the audit is wrong. Every other problem is one of a single record.
    pub(super) fn is_structural(&self) -> bool {
        self.structural
    }

    fn structural(text: impl Into<String>) -> Self {
        Self { structural: true, ..text.into().into() }
    }

    /// Sets the record aside. Its turn is not read any more, because its last commits may be missing.
    pub(super) fn set_aside(&self, set_aside: &SetAside) {
        match self.turn {
            None => set_aside.note(self.text.clone(), "it was found when the store was opened"),
            Some(turn) => {
                set_aside.note(format!("the log of {turn}"), &self.text);
                set_aside.close(turn);
            }
        }
    }
}

impl From<String> for Inconsistency {
    fn from(text: String) -> Self {
        Self { text, newer: None, structural: false, turn: None }
    }
}

impl From<&str> for Inconsistency {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl SledStore {
    /// Checks everything that is stored. Takes about two seconds for each million cached commits. The host may commit
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreFault`] if the disk cannot be read.
    pub fn check(&self) -> Result<StoreCheck, StoreFault> {
        Check { reader: &self.reader, limit: usize::MAX, is_migrated: true, found: StoreCheck::default() }.all()
    }
}

/// Checks the last entries of each kind. Before a migration, large records have no entries that refer to them.
pub(super) fn sample(reader: &Reader, is_migrated: bool) -> Result<StoreCheck, StoreFault> {
    Check { reader, limit: SAMPLE, is_migrated, found: StoreCheck::default() }.all()
}

struct Check<'a> {
    reader: &'a Reader,
    limit: usize,
    is_migrated: bool,
    found: StoreCheck,
}

impl Check<'_> {
    fn all(mut self) -> Result<StoreCheck, StoreFault> {
        if let Durable::Failed(_, fault) = &*self.reader.durable.borrow() {
            return Err(fault.clone());
        }
        let is_migrated = self.is_migrated;
        let is_complete = self.limit > SAMPLE;
        self.each(keys::LOG, |reader, key, value| {
            let (position, record) = keys::stamped(value).ok_or("its commit position is missing")?;
            let (turn, number) = keys::read_pointer(&key[1..]).ok_or("its key is damaged")?;
            let head = chain::head(&reader.tree).map_err(|fault| fault.to_string())?;
            if position > head.position {
                let text = format!("its position {} is higher than the last assigned position", position.0);
                return Err(Inconsistency::structural(text));
            }
            // A salvage may not have found every record of a turn that it left out.
            if !is_migrated && tombstone(record).is_some() {
                return points_to(reader, &keys::removed_before(turn));
            }
            if number > 0 && !exists(reader, &keys::log(turn, number - 1))? {
                return Err(format!("the commit before number {number} of {turn} is missing").into());
            }
            if let Some(blob) = blobs::referred(record).filter(|_| is_migrated) {
                points_to(reader, &keys::reference(blob, key))?;
            }
            let events = decode(reader, record, record::read_events)?;
            if is_complete { summaries(reader, turn, &events) } else { Ok(()) }
        })?;
        self.removals()?;
        self.each(keys::FEED, |reader, _, value| {
            let (turn, number) = keys::read_pointer(value).ok_or("it is damaged")?;
            points_to(reader, &keys::log(turn, number))
        })?;
        self.each(keys::HOST_FEED, |reader, _, value| is_fact(reader, value, PluginEvent::read))?;
        self.each(keys::STARTED, |reader, _, value| is_fact(reader, value, HostStarted::read))?;
        self.each(keys::REVOKED, |reader, _, value| is_fact(reader, value, StandingRevoked::read))?;
        self.each(keys::STANDING, |reader, key, value| {
            let (_, record) = keys::stamped(value).ok_or("its commit position is missing")?;
            let id = StandingId::from_bits(keys::tail_u128(key).ok_or("its key is damaged")?);
            points_to(reader, &keys::standing(keys::STANDING_STATE, id))?;
            decode(reader, record, StandingRow::read).map(drop)
        })?;
        self.each(keys::AUDIT, check_chain_entry)?;
        self.each(keys::SUSPENSION, |reader, _, value| {
            let (_, record) = keys::stamped(value).ok_or("its commit position is missing")?;
            decode(reader, record, SuspensionRow::read).map(drop)
        })?;
        if self.is_migrated {
            self.derived()?;
        }
        self.each(keys::DELIVERY, |reader, _, value| {
            let (_, record) = keys::stamped(value).ok_or("its commit position is missing")?;
            decode(reader, record, DeliveryRow::read).map(drop)
        })?;
        self.of_calls()?;
        self.each(keys::TO_DELIVER, |reader, key, _| {
            let (webhook, _, subject, number) = keys::read_to_deliver(key).ok_or("its key is damaged")?;
            points_to(reader, &keys::delivery(subject, number, webhook))
        })?;
        self.each(keys::UNFINISHED, |reader, key, value| {
            let turn = TurnId::from_bits(keys::tail_u128(key).ok_or("its key is damaged")?);
            let due = keys::read_due(value).ok_or("it is damaged")?;
            points_to(reader, &keys::log(turn, 0))?;
            points_to(reader, &keys::due(due.at, turn))
        })?;
        self.each(keys::DUE, |reader, key, _| {
            let turn = TurnId::from_bits(keys::tail_u128(key).ok_or("its key is damaged")?);
            points_to(reader, &keys::unfinished(turn))
        })?;
        Ok(self.found)
    }

    /// Checks the logs and the journals of calls.
    fn of_calls(&mut self) -> Result<(), StoreFault> {
        self.each(keys::RUN_LOG, |reader, key, value| {
            let record = keys::record(key, value).ok_or("its number of lines is missing")?;
            let turn = keys::turn_of_call(key).ok_or("its key is damaged")?;
            points_to(reader, &keys::log(turn, 0))?;
            decode(reader, record, RunLog::read).map(drop)
        })?;
        // Opening looks only for the last entry of each, because a journal can be long.
        let last = if self.limit == SAMPLE { 1 } else { u32::MAX };
        self.each(keys::JOURNAL, |reader, key, value| {
            let (_, journal) = keys::stamped(value).ok_or("its commit position is missing")?;
            let (turn, call) = keys::call_of(key).ok_or("its key is damaged")?;
            points_to(reader, &keys::log(turn, 0))?;
            let JournalHead { length, .. } = JournalHead::read(journal).ok_or("it is damaged")?;
            let mut numbers = length.saturating_sub(last)..length;
            numbers.try_for_each(|number| points_to(reader, &journals::entry(turn, call, number)))
        })?;
        self.each(keys::JOURNAL_ENTRY, |reader, key, value| {
            let (_, record) = keys::stamped(value).ok_or("its commit position is missing")?;
            let (head, number) = journals::head_of(key).zip(keys::tail_u32(key)).ok_or("its key is damaged")?;
            let head = reader.tree.get(head).map_err(|error| error.to_string())?.ok_or("its head is missing")?;
            let head = keys::stamped(&head).and_then(|(_, head)| JournalHead::read(head));
            let JournalHead { length, .. } = head.ok_or("its head is damaged")?;
            if number >= length {
                return Err(format!("entry {number} is beyond its length {length}").into());
            }
            let entry = decode(reader, record, Entry::read)?;
            if entry.number == number { Ok(()) } else { Err(format!("entry {number} has another number").into()) }
        })
    }

    /// Checks the ends of turns in feeds, the indexes of the inbox, and the sizes of principals.
    fn derived(&mut self) -> Result<(), StoreFault> {
        for index in [keys::ENDS, keys::ENDS_OF] {
            self.each(index, |reader, _, value| {
                let ending = feeds::read(value).ok_or("it is damaged")?;
                points_to(reader, &keys::log(ending.turn, 0))
            })?;
        }
        for index in [keys::SELECTED, keys::CLOSED, keys::WAITING] {
            self.each(index, |reader, key, _| {
                let id = keys::tail_u128(key).ok_or("its key is damaged")?;
                points_to(reader, &keys::suspension(SuspensionId::from_bits(id)))
            })?;
        }
        self.each(keys::AUDIENCE, |reader, _, value| {
            let (_, record) = count(value).ok_or("it is damaged")?;
            decode(reader, record, Audience::read).map(drop)
        })?;
        self.each(keys::KEPT, |_, _, value| Ok(count(value).map(drop).ok_or("it is damaged")?))
    }

    /// Checks the ended turns, the removed ones and the removals.
    fn removals(&mut self) -> Result<(), StoreFault> {
        self.each(keys::REMOVAL, |reader, _, value| is_fact(reader, value, Removal::read))?;
        self.each(keys::REMOVED, |reader, key, value| {
            let (by, remains) = Remains::read(value).ok_or("it is damaged")?;
            let (turn, _) = remains::read_key(key).ok_or("its key is damaged")?;
            points_to(reader, &keys::removed(turn))?;
            points_to(reader, &keys::at(&[keys::REMOVAL], by))?;
            // A salvage does not know the positions of all commits.
            let mut known = remains.records().filter(|(position, _)| *position != Position::default());
            known.try_for_each(|(position, _)| points_to(reader, &keys::at(&[keys::AUDIT], position)))
        })?;
        self.each(keys::ENDED, |reader, key, value| {
            let record = keys::record(key, value).ok_or("its size is missing")?;
            let turn = TurnId::from_bits(keys::tail_u128(key).ok_or("its key is damaged")?);
            points_to(reader, &keys::log(turn, 0))?;
            decode(reader, record, EndedTurn::read).map(drop)
        })
    }

    /// Checks the entries of an index, the last first.
    fn each(
        &mut self,
        index: u8,
        check: impl Fn(&super::Reader, &[u8], &[u8]) -> Result<(), Inconsistency>,
    ) -> Result<(), StoreFault> {
        for entry in self.reader.tree.scan_prefix([index]).rev().take(self.limit) {
            let (key, value) = entry.map_err(fault("check what is stored"))?;
            self.found.entries += 1;
            let checked = check(self.reader, &key, &value);
            // A commit may have changed the entry since it was read. Only unchanged entries are reported.
            let current = || self.reader.tree.get(&key).map_err(fault("check what is stored"));
            if let Err(problem) = checked
                && current()? == Some(value)
            {
                let text = format!("{}: {problem}", keys::in_words(&key));
                let turn = turn_of(index, &key, &current()?.unwrap_or_default());
                self.found.problems.push(Inconsistency { text, turn, ..problem });
            }
        }
        Ok(())
    }
}

/// The turn that an entry is about, if it is one of a log, or points to one.
fn turn_of(index: u8, key: &[u8], value: &[u8]) -> Option<TurnId> {
    match index {
        keys::LOG => key.get(1..).and_then(keys::read_pointer).map(|(turn, _)| turn),
        keys::FEED => keys::read_pointer(value).map(|(turn, _)| turn),
        keys::AUDIT => match keys::read_link(value)?.1 {
            Source::Turn { turn, .. } => Some(turn),
            Source::Plugin | Source::Started | Source::Revoked | Source::Removal => None,
        },
        keys::UNFINISHED | keys::DUE => keys::tail_u128(key).map(TurnId::from_bits),
        _ => None,
    }
}

/// Compares the receipts in these events with the journals of their calls, where they still exist.
fn summaries(reader: &Reader, turn: TurnId, events: &[Event]) -> Result<(), Inconsistency> {
    for event in events {
        let Event::Call { call, event: CallEvent::Settled { receipt: Some(receipt), .. } } = event else { continue };
        let Some(expected) = receipt.journal else { continue };
        if !exists(reader, &journals::head(turn, *call))? {
            continue;
        }
        let mut found = JournalSummary::default();
        for number in 0..expected.entries {
            let value = reader.tree.get(journals::entry(turn, *call, number)).map_err(|error| error.to_string())?;
            // A missing or damaged entry is reported on its own.
            let Some(value) = value else { return Ok(()) };
            let (_, record) = keys::stamped(&value).ok_or("the commit position of a journal's entry is missing")?;
            found = found.then(&decode(reader, record, Entry::read)?);
        }
        if found != expected {
            let (call, entries) = (call.0, expected.entries);
            return Err(
                format!("the receipt of call {call} does not fit the first {entries} entries of its journal").into()
            );
        }
    }
    Ok(())
}

/// Checks that an entry of the chain follows from the entry before it and from its record.
fn check_chain_entry(reader: &Reader, key: &[u8], value: &[u8]) -> Result<(), Inconsistency> {
    let text = |error: &dyn fmt::Display| Inconsistency::from(error.to_string());
    let position = keys::tail_u64(key).filter(|position| *position > 0);
    let position = position.ok_or_else(|| Inconsistency::structural("its key is damaged"))?;
    let before = Position(position - 1);
    let before = match before {
        Position(0) => Head::START,
        before => {
            let link = reader.tree.get(keys::at(&[keys::AUDIT], before)).map_err(|error| text(&error))?;
            let (hash, _) = link
                .and_then(|link| keys::read_link(&link))
                .ok_or_else(|| Inconsistency::structural("the chain entry before it is missing"))?;
            Head { position: before, hash }
        }
    };
    let link = reader.link(Position(position), value).map_err(|fault| text(&fault))?;
    let record = link.record.digest().ok_or("the record of its commit is missing or damaged")?;
    // A salvage found neither the entry before it nor this record.
    let is_unknown = |digest| digest == Head::START.hash && lost_or_removed(link.record);
    let is_first = before.position == Position(0);
    let fits = before.then(link.source, record) == link.head
        || is_unknown(record)
        || (!is_first && before.hash == Head::START.hash);
    if fits {
        Ok(())
    } else if !reader.is_readable(link.head.position, link.source) {
        Err("the record of its commit is damaged".into())
    } else {
        Err(Inconsistency::structural(
            "its hash does not follow from its record and the hash before; run `toolgate audit verify` for details",
        ))
    }
}

fn count(value: &[u8]) -> Option<(u64, &[u8])> {
    read_count(keys::stamped(value)?.1)
}

fn lost_or_removed(record: Recorded) -> bool {
    matches!(record, Recorded::Removed { by: Some(_), .. })
}

fn exists(reader: &Reader, key: &[u8]) -> Result<bool, Inconsistency> {
    reader.tree.contains_key(key).map_err(|error| error.to_string().into())
}

fn points_to(reader: &Reader, key: &[u8]) -> Result<(), Inconsistency> {
    let missing = || format!("it points to {}, which is missing", keys::in_words(key)).into();
    if exists(reader, key)? { Ok(()) } else { Err(missing()) }
}

/// Checks a record that belongs to no turn. A salvage may have replaced it.
fn is_fact<T>(reader: &Reader, value: &[u8], read: fn(&[u8]) -> Result<T, Unreadable>) -> Result<(), Inconsistency> {
    if lost(value).is_some() { Ok(()) } else { decode(reader, value, read).map(drop) }
}

/// Decodes a record, or the blob that it refers to.
fn decode<T>(reader: &Reader, value: &[u8], read: fn(&[u8]) -> Result<T, Unreadable>) -> Result<T, Inconsistency> {
    let decoded = match blobs::referred(value) {
        None => read(value),
        Some(digest) => read(&reader.blobs.read_now(digest).map_err(|fault| fault.to_string())?),
    };
    decoded.map_err(|unreadable| {
        let newer = match unreadable {
            Unreadable::Newer { found, known } => Some((found, known)),
            Unreadable::Damaged(_) => None,
        };
        Inconsistency { newer, ..unreadable.to_string().into() }
    })
}
