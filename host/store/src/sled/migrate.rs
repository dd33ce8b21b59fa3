//! Migrates a folder of an older format when it is opened. Every step can be repeated. First come the steps that only add
//! entries, and then the version of the format: an older host refuses the folder from then on. With the version comes a
//! mark, and then the steps that change entries. The mark goes last. So a migration that was interrupted, before or after
//! the version, is made again by the next open, and nothing is lost meanwhile.
//!
//! Format 3 has what format 2 has, and two more indexes: the ended turns, and the records that refer to each blob.
//! Format 4 has other indexes of the suspensions, which also count them (`inbox.rs`), and the size of the records of each
//! principal.
//! Format 5 has one entry for each removed turn, instead of one for each of its records (`remains.rs`), and the logs of
//! calls.
//! Format 6 has the ends of turns in feeds (`feeds.rs`), and the ids of open suspensions by audience (`inbox.rs`).
//! Format 7 has the ids of ended suspensions by their ends (`inbox.rs`), who ended them in their rows, and the journals of durable
//! calls.
//! Format 8 has several entries for a removed turn with many commits (`remains.rs`), which older hosts misread. The single entries
//! of format 7 are read too, so only the version changes.

use std::collections::{HashMap, HashSet};

use dispatch::ports::{EndedTurn, Head, Position, RowChange, StoreFault, SuspensionRow, TurnEnding};
use domain::{Digest, Event, PrincipalId, SuspensionId, Turn, TurnId};

use super::database_file::DatabaseFile;
use super::folder::FORMAT;
use super::inbox;
use super::keys::{self, read_count};
use super::plan::Plan;
use super::reader::Reader;
use super::remains::{self, tombstone};
use super::{blobs, feeds};
use crate::fault::fault;
use crate::record::{self, Record};

/// The largest gap that is filled in the log of a removed turn, in records. A salvage can leave gaps.
const MAX_GAP: usize = 1_000;

/// Every kind of entry that can refer to a blob in format 2.
const RECORDS: [u8; 7] =
    [keys::LOG, keys::HOST_FEED, keys::STARTED, keys::REVOKED, keys::SUSPENSION, keys::STANDING, keys::DELIVERY];

/// The indexes of the suspensions in formats 2 and 3: the open ones, those of a conversation, and its open ones.
const OLD_INDEXES: [u8; 3] = [b'o', b'k', b'q'];

/// Writes the batches of a migration.
trait Batches {
    /// The number of entries that are written at once.
    fn size(&self) -> usize;

    /// Writes a batch, all of it or nothing. Returns when it is on disk.
    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault>;
}

/// The database of the store.
struct Database<'a> {
    reader: &'a Reader,
    file: &'a DatabaseFile,
}

impl Batches for Database<'_> {
    fn size(&self) -> usize {
        1_000
    }

    fn write(&mut self, batch: sled::Batch) -> Result<(), StoreFault> {
        self.reader.blobs.sync().map_err(fault(MIGRATE))?;
        self.reader.tree.apply_batch(batch).map_err(fault(MIGRATE))?;
        self.reader.tree.flush().map_err(fault(MIGRATE))?;
        self.file.sync().map_err(fault(MIGRATE))
    }
}

/// Migrates from an older format. Reads every record once, except from format 7.
pub(super) fn from(format: u8, reader: &Reader, file: &DatabaseFile) -> Result<(), StoreFault> {
    tracing::info!("the store is migrated from format {format} to format {FORMAT}; this can take some time");
    in_batches(format, reader, &mut Database { reader, file })?;
    tracing::info!("the store has format {FORMAT}");
    Ok(())
}

fn in_batches(format: u8, reader: &Reader, batches: &mut dyn Batches) -> Result<(), StoreFault> {
    let (batch, entries) = (sled::Batch::default(), 0);
    let mut migration = Migration { format, reader, batches, batch, entries, sums: HashMap::new() };
    // An older host may have changed what these follow from since a migration was interrupted.
    if migration.makes_ends() {
        migration.clear(&[keys::CLOSED])?;
    }
    if migration.makes_feeds() {
        migration.clear(&[keys::ENDS, keys::ENDS_OF, keys::WAITING])?;
    }
    if migration.makes_counts() {
        migration.clear(&[keys::SELECTED, keys::AUDIENCE, keys::KEPT])?;
    }
    migration.write()?;
    if format < 3 {
        migration.references()?;
    }
    if migration.makes_counts() {
        migration.suspensions()?;
    }
    if migration.makes_ends() {
        migration.turns()?;
    }
    for (key, (count, record)) in std::mem::take(&mut migration.sums) {
        let value = [&[0; keys::STAMP], count.to_be_bytes().as_slice(), &record].concat();
        if let Some(blob) = blobs::referred(&record) {
            migration.add(keys::reference(blob, &key), Vec::new())?;
        }
        migration.add(key, value)?;
    }
    migration.write()?;
    migration.batch.insert(keys::FOLDING, Vec::new());
    migration.batch.insert(keys::FORMAT, vec![FORMAT]);
    migration.write()?;
    migration.clear(&OLD_INDEXES)?;
    migration.fold()?;
    migration.ended_by()?;
    migration.unrefer()?;
    migration.batch.remove(keys::FOLDING);
    migration.write()
}

const MIGRATE: &str = "migrate the store";

/// The values of a turn's log.
#[derive(Default)]
struct StoredLog {
    turn: Option<TurnId>,
    values: Vec<sled::IVec>,
}

struct Migration<'a> {
    format: u8,
    reader: &'a Reader,
    batches: &'a mut dyn Batches,
    batch: sled::Batch,
    entries: usize,
    /// The counts and the records behind them, by key.
    sums: HashMap<Vec<u8>, (u64, Vec<u8>)>,
}

impl Migration<'_> {
    /// Whether the indexes of format 4 are made. Format 4 may lack some, if its migration was interrupted. Hosts of
    /// format 5 need theirs until the version changes.
    fn makes_counts(&self) -> bool {
        self.format < 5
    }

    /// Whether the indexes of format 6 are made. Hosts of format 6 need theirs until the version changes.
    fn makes_feeds(&self) -> bool {
        self.format < 6
    }

    /// Whether the index of format 7 is made. Hosts of format 7 need theirs until the version changes.
    fn makes_ends(&self) -> bool {
        self.format < 7
    }

    fn clear(&mut self, indexes: &[u8]) -> Result<(), StoreFault> {
        for entry in indexes.iter().flat_map(|index| self.reader.tree.scan_prefix([*index]).keys()) {
            self.batch.remove(entry.map_err(fault(MIGRATE))?);
            self.counted()?;
        }
        Ok(())
    }

    fn references(&mut self) -> Result<(), StoreFault> {
        for entry in RECORDS.iter().flat_map(|index| self.reader.tree.scan_prefix([*index])) {
            let (key, value) = entry.map_err(fault(MIGRATE))?;
            if let Some(blob) = keys::record(&key, &value).and_then(blobs::referred) {
                self.add(keys::reference(blob, &key), Vec::new())?;
            }
        }
        Ok(())
    }

    fn suspensions(&mut self) -> Result<(), StoreFault> {
        for entry in self.reader.tree.scan_prefix([keys::SUSPENSION]) {
            let (key, value) = entry.map_err(fault(MIGRATE))?;
            let Some(row) = self.record(&value).and_then(|row| SuspensionRow::read(&row).ok()) else {
                tracing::warn!("{} cannot be read, so no list contains it", keys::in_words(&key));
                continue;
            };
            for entry in inbox::entries(&row, row.is_open()) {
                self.add(entry, Vec::new())?;
            }
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<(), StoreFault> {
        let mut log = StoredLog::default();
        for entry in self.reader.tree.scan_prefix([keys::LOG]) {
            let (key, value) = entry.map_err(fault(MIGRATE))?;
            let Some((turn, _)) = key.get(1..).and_then(keys::read_pointer) else { continue };
            if log.turn != Some(turn) {
                self.turn(std::mem::take(&mut log))?;
                log.turn = Some(turn);
            }
            log.values.push(value);
        }
        self.turn(log)
    }

    /// Adds a turn to the indexes. A log that cannot be read stays as it is.
    fn turn(&mut self, log: StoredLog) -> Result<(), StoreFault> {
        let Some(id) = log.turn else { return Ok(()) };
        let is_removed = |value: &sled::IVec| keys::stamped(value).is_some_and(|(_, it)| tombstone(it).is_some());
        if log.values.first().is_some_and(is_removed) {
            return Ok(());
        }
        let (mut events, mut bytes, mut stamp) = (Vec::<Event>::new(), 0_u64, [0; keys::STAMP]);
        let mut settled = None;
        for value in &log.values {
            let record = self.record(value);
            let decoded = record.as_deref().and_then(|record| record::read_events(record).ok());
            let Some((record, decoded)) = record.zip(decoded) else {
                tracing::warn!(turn = %id, "the log of a turn cannot be read; nothing counts it, and retention never removes it");
                return Ok(());
            };
            bytes += record.len() as u64;
            stamp.iter_mut().zip(value.iter()).for_each(|(room, byte)| *room = *byte);
            let end = decoded.iter().find_map(|event| match event {
                Event::TurnSettled { end, .. } => Some(*end),
                _ => None,
            });
            settled = end.map(|end| (end, Position(u64::from_be_bytes(stamp)))).or(settled);
            events.extend(decoded);
        }
        let Some(turn) = Turn::replay(&events) else { return Ok(()) };
        self.ends(&events, &turn)?;
        if !self.makes_feeds() {
            return Ok(());
        }
        self.open_suspensions(&turn)?;
        let ended = EndedTurn::of(&turn).map(|ended| (keys::ended(ended.key()), ended));
        if self.makes_counts() {
            if self.format >= 3
                && let Some((key, _)) = &ended
            {
                // A removal subtracts the size in this entry. It can count the logs of calls.
                let entry = self.reader.tree.get(key).map_err(fault(MIGRATE))?;
                let counted = entry.as_deref().and_then(keys::stamped).and_then(|(_, rest)| read_count(rest));
                bytes = counted.map_or(bytes, |(counted, _)| counted);
            } else {
                // A salvaged store has journals of open turns.
                bytes = bytes.saturating_add(self.reader.sizes_of_calls(id)?.counted());
            }
            self.kept(&turn.caller, bytes);
        }
        let Some((key, ended)) = ended else { return Ok(()) };
        if let Some((end, position)) = settled {
            for (feed, value) in feeds::entries(&TurnEnding::of(&ended, end)) {
                self.add(keys::at(&feed, position), value)?;
            }
        }
        if self.format >= 3 {
            return Ok(());
        }
        let size = bytes.to_be_bytes();
        let mut record = Vec::new();
        ended.write(&mut record).map_err(fault(MIGRATE))?;
        // As a commit does it, because a removal compares the values.
        if size.len() + record.len() > blobs::MAX_INLINE {
            let blob = Digest::of(&record);
            self.reader.blobs.write_one(blob, &record).map_err(fault(MIGRATE))?;
            self.add(keys::reference(blob, &key), Vec::new())?;
            record = blobs::reference(blob).to_vec();
        }
        self.add(key, [stamp.as_slice(), &size, &record].concat())
    }

    /// Adds the ended suspensions of a turn to the index of ends. Its rows do not say who ended them yet.
    fn ends(&mut self, events: &[Event], turn: &Turn) -> Result<(), StoreFault> {
        for change in dispatch::index_rows(events, turn) {
            let RowChange::Suspension(row) = change else { continue };
            // No list contains a row that cannot be read.
            if self.row(row.id)?.is_some() {
                for entry in inbox::ends(&row) {
                    self.add(entry, Vec::new())?;
                }
            }
        }
        Ok(())
    }

    /// The row of a suspension, with its value. `None` if it cannot be read.
    fn row(&self, id: SuspensionId) -> Result<Option<(sled::IVec, SuspensionRow)>, StoreFault> {
        let value = self.reader.tree.get(keys::suspension(id)).map_err(fault(MIGRATE))?;
        Ok(value.and_then(|value| {
            let row = self.record(&value).and_then(|row| SuspensionRow::read(&row).ok())?;
            Some((value, row))
        }))
    }

    /// Adds to the rows of suspensions who ended them, as the index of ends has it.
    fn ended_by(&mut self) -> Result<(), StoreFault> {
        let tree = self.reader.tree.clone();
        let mut in_batch = HashSet::new();
        for key in tree.scan_prefix(inbox::all_ends()).keys() {
            let key = key.map_err(fault(MIGRATE))?;
            let Some((by, id)) = inbox::read_end(&key) else { continue };
            if in_batch.len() == self.batches.size() || !in_batch.insert(id) {
                self.write()?;
                in_batch = HashSet::from([id]);
            }
            let Some((before, mut row)) = self.row(id)?.filter(|(_, row)| !row.ended_by.contains(&by)) else {
                continue;
            };
            row.ended_by.push(by);
            let (key, mut plan) = (keys::suspension(id), Plan::default());
            let mut value = plan.value(keys::STAMP, |out| row.write(out))?;
            value.iter_mut().zip(before.iter()).take(keys::STAMP).for_each(|(room, byte)| *room = *byte);
            for (digest, blob) in plan.blobs {
                self.reader.blobs.write_one(digest, &blob).map_err(fault(MIGRATE))?;
                self.add(keys::reference(digest, &key), Vec::new())?;
            }
            self.add(key, value)?;
        }
        self.write()
    }

    /// Removes the references of removed records. Hosts of older formats left some.
    fn unrefer(&mut self) -> Result<(), StoreFault> {
        let tree = self.reader.tree.clone();
        for key in tree.scan_prefix([keys::BLOB]).keys() {
            let key = key.map_err(fault(MIGRATE))?;
            let Some((blob, of)) = keys::read_reference(&key) else { continue };
            let value = tree.get(of).map_err(fault(MIGRATE))?;
            let refers = value.is_some_and(|value| keys::record(of, &value).and_then(blobs::referred) == Some(blob));
            if !refers {
                self.batch.remove(key);
                self.counted()?;
            }
        }
        self.write()
    }

    /// Folds the tombstones of each removed turn into one entry. Each turn is in one batch.
    fn fold(&mut self) -> Result<(), StoreFault> {
        let tree = self.reader.tree.clone();
        for entry in tree.scan_prefix([keys::REMOVED_BEFORE]) {
            let (key, value) = entry.map_err(fault(MIGRATE))?;
            let turn = keys::tail_u128(&key).map(TurnId::from_bits);
            let Some((turn, (by, conversation))) = turn.zip(keys::stamped(&value)) else { continue };
            let mut records = Vec::new();
            for entry in tree.scan_prefix(keys::log_of(turn)) {
                let (key, value) = entry.map_err(fault(MIGRATE))?;
                let stamped = keys::stamped(&value).and_then(|(at, record)| Some((at, tombstone(record)?)));
                let Some((number, record)) = keys::tail_u32(&key).zip(stamped) else { continue };
                let missing = (number as usize).saturating_sub(records.len());
                if missing < MAX_GAP {
                    records.extend(std::iter::repeat_n((Position::default(), Head::START.hash), missing));
                    records.push(record);
                    self.batch.remove(key);
                    self.entries += 1;
                }
            }
            for (key, value) in remains::entries(turn, by, conversation, &records) {
                self.batch.insert(key, value);
            }
            self.batch.remove(key);
            self.entries += 2;
            if self.entries >= self.batches.size() {
                self.write()?;
            }
        }
        self.write()
    }

    fn kept(&mut self, caller: &PrincipalId, bytes: u64) {
        let (sum, _) = self.sums.entry(keys::kept(caller)).or_default();
        *sum = sum.saturating_add(bytes);
    }

    fn open_suspensions(&mut self, turn: &Turn) -> Result<(), StoreFault> {
        for call in &turn.calls {
            for (suspension, closed) in &call.suspensions {
                // Nobody is asked about the others. A salvaged store has some.
                if closed.is_some() || !suspension.kind().is_asked() {
                    continue;
                }
                let audience = suspension.audience();
                let (of, mut plan) = ((&turn.conversation, &turn.caller, &*call.tool), Plan::default());
                let record = plan.value(0, |out| audience.write(out))?;
                let keys = inbox::counts(of, &record);
                for key in &keys {
                    self.add(inbox::waiting(key, suspension.id), Vec::new())?;
                }
                if !self.makes_counts() {
                    continue;
                }
                for (digest, blob) in plan.blobs {
                    self.reader.blobs.write_one(digest, &blob).map_err(fault(MIGRATE))?;
                }
                for key in keys {
                    self.sums.entry(key).or_insert_with(|| (0, record.clone())).0 += 1;
                }
            }
        }
        Ok(())
    }

    /// The record in a value, from the tree or from its blob.
    fn record(&self, value: &[u8]) -> Option<Vec<u8>> {
        let (_, record) = keys::stamped(value)?;
        match blobs::referred(record) {
            None => Some(record.to_vec()),
            Some(blob) => self.reader.blobs.read_now(blob).ok(),
        }
    }

    fn add(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreFault> {
        self.batch.insert(key, value);
        self.counted()
    }

    fn counted(&mut self) -> Result<(), StoreFault> {
        self.entries += 1;
        if self.entries < self.batches.size() { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), StoreFault> {
        self.entries = 0;
        self.batches.write(std::mem::take(&mut self.batch))
    }
}

#[cfg(test)]
mod tests;
