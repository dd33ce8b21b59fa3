//! Migrates a folder of an older format when it is opened. Every step can be repeated, and the version of the format is
//! written last. So a migration that was interrupted is made again by the next open, and nothing is lost meanwhile. An
//! older host refuses the folder from then on.
//!
//! Format 3 has what format 2 has, and two more indexes: the ended turns, and the records that refer to each blob.

use std::fs::File;

use dispatch::ports::{EndedTurn, StoreFault};
use domain::{Digest, Event, Turn, TurnId};

use super::blobs;
use super::folder::FORMAT;
use super::keys;
use super::reader::Reader;
use crate::fault::fault;
use crate::record::{self, Record};

/// The entries that are written at once.
const AT_ONCE: usize = 1_000;

/// Every kind of entry that can refer to a blob in format 2.
const RECORDS: [u8; 7] =
    [keys::LOG, keys::HOST_FEED, keys::STARTED, keys::REVOKED, keys::SUSPENSION, keys::STANDING, keys::DELIVERY];

/// Migrates from format 2. Reads every record once.
pub(super) fn from_2(reader: &Reader, file: &File) -> Result<(), StoreFault> {
    tracing::info!("the store is migrated to format {FORMAT}; this reads everything once");
    let mut migration = Migration { reader, file, batch: sled::Batch::default(), entries: 0 };
    for index in RECORDS {
        for entry in reader.tree.scan_prefix([index]) {
            let (key, value) = entry.map_err(fault(MIGRATE))?;
            if let Some(blob) = keys::record(&key, &value).and_then(blobs::referred) {
                migration.add(keys::reference(blob, &key), Vec::new())?;
            }
        }
    }
    let mut log = StoredLog::default();
    for entry in reader.tree.scan_prefix([keys::LOG]) {
        let (key, value) = entry.map_err(fault(MIGRATE))?;
        let Some((turn, _)) = key.get(1..).and_then(keys::read_pointer) else { continue };
        if log.turn != Some(turn) {
            migration.ended(std::mem::take(&mut log))?;
            log.turn = Some(turn);
        }
        log.values.push(value);
    }
    migration.ended(log)?;
    migration.write()?;
    reader.tree.insert(keys::FORMAT, &[FORMAT]).map_err(fault(MIGRATE))?;
    migration.write()?;
    tracing::info!("the store has format {FORMAT}");
    Ok(())
}

const MIGRATE: &str = "migrate the store";

/// The values of a turn's log.
#[derive(Default)]
struct StoredLog {
    turn: Option<TurnId>,
    values: Vec<sled::IVec>,
}

struct Migration<'a> {
    reader: &'a Reader,
    file: &'a File,
    batch: sled::Batch,
    entries: usize,
}

impl Migration<'_> {
    /// Adds a turn to the index of ended turns, if it has ended. A log that cannot be read stays as it is.
    fn ended(&mut self, log: StoredLog) -> Result<(), StoreFault> {
        let Some(turn) = log.turn else { return Ok(()) };
        let (mut events, mut bytes, mut stamp) = (Vec::new(), 0_u64, [0; keys::STAMP]);
        for value in &log.values {
            let Some((record, decoded)) = self.read(value) else {
                tracing::warn!(%turn, "the log of a turn cannot be read; retention never removes the turn");
                return Ok(());
            };
            bytes += record;
            events.extend(decoded);
            stamp.iter_mut().zip(value.iter()).for_each(|(room, byte)| *room = *byte);
        }
        let Some(ended) = Turn::replay(&events).as_ref().and_then(EndedTurn::of) else { return Ok(()) };
        let (key, size) = (keys::ended(ended.key()), bytes.to_be_bytes());
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

    /// The size of a record and its events.
    fn read(&self, value: &[u8]) -> Option<(u64, Vec<Event>)> {
        let (_, record) = keys::stamped(value)?;
        let blob = blobs::referred(record).map(|blob| self.reader.blobs.read_now(blob)).transpose().ok()?;
        let record = blob.as_deref().unwrap_or(record);
        Some((record.len() as u64, record::read_events(record).ok()?))
    }

    fn add(&mut self, key: Vec<u8>, value: Vec<u8>) -> Result<(), StoreFault> {
        self.batch.insert(key, value);
        self.entries += 1;
        if self.entries < AT_ONCE { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), StoreFault> {
        self.entries = 0;
        self.reader.blobs.sync().map_err(fault(MIGRATE))?;
        self.reader.tree.apply_batch(std::mem::take(&mut self.batch)).map_err(fault(MIGRATE))?;
        self.reader.tree.flush().map_err(fault(MIGRATE))?;
        self.file.sync_data().map_err(fault(MIGRATE))
    }
}
