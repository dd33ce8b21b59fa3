//! The entries of a salvaged store beside the commits.

use std::collections::{HashMap, HashSet};

use dispatch::ports::{
    Commit, DeliveryRow, EndedTurn, Position, RowChange, RunLog, StoreFault, Subject, SuspensionRow,
};
use domain::{Event, StandingId, Timestamp, Turn, TurnId, effect::Due, journal::Entry, standing::StandingRow};

use super::super::building::AT_ONCE;
use super::super::plan::{Change, Earlier, Plan};
use super::super::remains::{self, Remains};
use super::super::tree::{Tree, attempt};
use super::super::{
    VALUES, blobs,
    journals::{self, JournalHead},
    keys,
};
use super::{SALVAGE, Salvage, scan, unless_damaged};
use crate::fault::fault;
use crate::record::{self, Record};

pub(super) const CALLS: &str = "call ids";
const JOURNALS: &str = "journals of calls";
const REMOVED_TURNS: &str = "removed turns";

/// The kinds of entries. Those of the first group follow from the logs.
const KINDS: [(u8, &str); 18] = [
    (keys::OWNER, "owners of conversations"),
    (keys::CALL, CALLS),
    (keys::DUE, "due times"),
    (keys::UNFINISHED, "unfinished turns"),
    (keys::SUSPENSION, "suspensions"),
    (keys::ENDED, "ended turns"),
    (keys::FEED, "entries of conversations"),
    (keys::DELIVERY, "deliveries"),
    (keys::TO_DELIVER, "deliveries to come"),
    (keys::RUN_LOG, "logs of calls"),
    (keys::JOURNAL, JOURNALS),
    (keys::JOURNAL_ENTRY, JOURNALS),
    (keys::STANDING, "standing approvals"),
    (keys::STANDING_STATE, "uses of standing approvals"),
    (keys::DENIED, "denials"),
    (keys::REMOVED, REMOVED_TURNS),
    (keys::REMOVED_BEFORE, REMOVED_TURNS),
    (keys::LOG, "commits"),
];

impl Salvage {
    /// Copies every intact entry. An entry whose record is damaged is left out.
    pub(super) fn rows(&mut self) -> Result<(), StoreFault> {
        for (index, kind) in KINDS {
            let mut entries = Vec::new();
            let source = self.source.clone();
            let complete = scan(&source, &[index], |key, value| {
                // The commits follow the chain.
                if index != keys::LOG {
                    entries.push((key.to_vec(), value.to_vec()));
                }
                if entries.len() < AT_ONCE { Ok(()) } else { self.take(&mut entries) }
            })?;
            self.take(&mut entries)?;
            if !complete || self.is_cut {
                self.found.incomplete.insert(kind);
            }
        }
        Ok(())
    }

    fn take(&mut self, entries: &mut Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), StoreFault> {
        for (key, value) in entries.drain(..) {
            if !self.is_intact(&key, &value)? {
                self.count_lost(&key);
            } else if let (Some(&keys::REMOVED), Some((turn, _))) = (key.first(), remains::read_key(&key)) {
                // In the form of format 4, as the rest of the new store. The commits follow the chain.
                let (by, remains) = Remains::read(&value).unwrap_or_default();
                let name = remains.conversation.as_bytes();
                self.out.put(keys::removed_before(turn), removed_by(by, name))?;
            } else {
                self.out.put(key, value)?;
            }
        }
        Ok(())
    }

    fn is_intact(&self, key: &[u8], value: &[u8]) -> Result<bool, StoreFault> {
        let Some(&index) = key.first() else { return Ok(false) };
        let reads: fn(&[u8]) -> bool = match index {
            keys::SUSPENSION => |row| SuspensionRow::read(row).is_ok(),
            keys::DELIVERY => |row| DeliveryRow::read(row).is_ok(),
            keys::RUN_LOG => |row| RunLog::read(row).is_ok(),
            keys::JOURNAL_ENTRY => |row| Entry::read(row).is_ok(),
            keys::JOURNAL => {
                return Ok(keys::stamped(value).is_some_and(|(_, journal)| JournalHead::read(journal).is_some()));
            }
            keys::STANDING => |row| StandingRow::read(row).is_ok(),
            keys::ENDED => |row| EndedTurn::read(row).is_ok(),
            keys::REMOVED => return Ok(Remains::read(value).is_some()),
            _ => return Ok(true),
        };
        let Some(record) = keys::record(key, value) else { return Ok(false) };
        Ok(self.whole(record)?.is_some_and(|row| reads(&row)))
    }

    /// Copies the plugins' values.
    pub(super) fn values(&mut self, db: &sled::Db, to: &Tree) -> Result<(), StoreFault> {
        let Some(values) = unless_damaged(attempt(|| db.open_tree(VALUES)))? else { return Ok(()) };
        let mut count = 0;
        let complete = scan(&Tree::new(values), &[], |key, value| {
            count += 1;
            to.insert(key, value).map(drop).map_err(fault(SALVAGE))
        })?;
        self.found.values = (count, complete && !self.is_cut);
        to.flush().map(drop).map_err(fault(SALVAGE))
    }

    /// Makes the entries again that follow from the logs, if some are lost, and removes those of turns that are left out.
    pub(super) fn derived(&mut self) -> Result<(), StoreFault> {
        if !self.found.incomplete.is_empty() || !self.found.entries.is_empty() {
            let tree = self.out.tree.clone();
            let mut log: (Option<TurnId>, Vec<Event>) = (None, Vec::new());
            for entry in tree.scan_prefix([keys::LOG]) {
                let (key, value) = entry.map_err(fault(SALVAGE))?;
                let Some((turn, number)) = key.get(1..).and_then(keys::read_pointer) else { continue };
                if log.0 != Some(turn) {
                    self.derive(&std::mem::take(&mut log.1))?;
                    log.0 = Some(turn);
                }
                let Some((position, record)) = keys::stamped(&value) else { continue };
                let Some(record) = self.whole(record)? else { continue };
                log.1.extend(record::read_events(&record).unwrap_or_default());
                if let Some(turn) = Turn::replay(&log.1) {
                    let feed = keys::at(&keys::feed(&turn.conversation), position);
                    self.out.put(feed, keys::pointer(turn.id, number))?;
                }
            }
            self.derive(&log.1)?;
            self.out.write()?;
            self.pair()?;
        }
        self.out.write()?;
        self.forget_turns()
    }

    /// Makes entries again that follow from other entries, and removes those that point to lost ones.
    fn pair(&mut self) -> Result<(), StoreFault> {
        let tree = self.out.tree.clone();
        let is_lost = |key: &[u8]| tree.contains_key(key).map(|is_there| !is_there).map_err(fault(SALVAGE));
        for entry in tree.scan_prefix([keys::UNFINISHED]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            if let Some((turn, due)) = keys::tail_u128(&key).map(TurnId::from_bits).zip(keys::read_due(&value)) {
                self.out.put(keys::due(due.at, turn), vec![u8::from(due.running)])?;
            }
        }
        for entry in tree.scan_prefix([keys::DUE]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let at = key.get(1..9).and_then(keys::tail_u64).map(Timestamp::from_millis);
            let Some((at, turn)) = at.zip(keys::tail_u128(&key).map(TurnId::from_bits)) else { continue };
            if is_lost(&keys::unfinished(turn))? {
                let due = Due { at, running: value.first() == Some(&1) };
                self.out.put(keys::unfinished(turn), keys::due_value(due).to_vec())?;
            }
        }
        for key in tree.scan_prefix([keys::TO_DELIVER]).keys() {
            let key = key.map_err(fault(SALVAGE))?;
            let Some((webhook, _, subject, number)) = keys::read_to_deliver(&key) else { continue };
            if is_lost(&keys::delivery(subject, number, webhook))? {
                self.out.remove(key.to_vec())?;
            }
        }
        for key in tree.scan_prefix([keys::STANDING]).keys() {
            let key = key.map_err(fault(SALVAGE))?;
            let Some(id) = keys::tail_u128(&key).map(StandingId::from_bits) else { continue };
            if is_lost(&keys::standing(keys::STANDING_STATE, id))? {
                self.out.remove(key.to_vec())?;
            }
        }
        // Without its head, the journal of a call would be empty, and the next run would repeat its effects.
        let mut lost_heads = HashMap::new();
        for key in tree.scan_prefix([keys::JOURNAL_ENTRY]).keys() {
            let key = key.map_err(fault(SALVAGE))?;
            let Some((head, number)) = journals::head_of(&key).zip(keys::tail_u32(&key)) else { continue };
            if is_lost(&head)? {
                lost_heads.insert(head, number.saturating_add(1));
            }
        }
        let stamp = self.found.head.position.0.to_be_bytes();
        for (head, length) in lost_heads {
            let value = JournalHead { length, ..JournalHead::default() }.value();
            self.out.put(head, [stamp.as_slice(), &value].concat())?;
        }
        Ok(())
    }

    fn derive(&mut self, events: &[Event]) -> Result<(), StoreFault> {
        let Some(turn) = Turn::replay(events) else { return Ok(()) };
        let rows = dispatch::index_rows(events, &turn).into_iter().filter(|row| {
            use RowChange::{Call, Ended, Owner, Suspension};
            matches!(row, Owner { .. } | Call { .. } | RowChange::Due { .. } | Ended(..) | Suspension(_))
        });
        let plan = Plan::of(&Commit::rows(rows.collect()), self.earlier(turn.id)?)?;
        let stamp = self.found.head.position.0.to_be_bytes();
        for (digest, bytes) in plan.blobs {
            self.blobs.write_one(digest, &bytes).map_err(fault(SALVAGE))?;
        }
        for (key, value) in plan.plain {
            self.out.put(key, value)?;
        }
        for (key, mut value) in plan.stamped {
            value.iter_mut().zip(stamp).for_each(|(room, byte)| *room = byte);
            self.out.put(key, value)?;
        }
        for (key, change) in plan.checked {
            if let Change::Put(value) | Change::Claim(_, value) | Change::Ended(_, value) = change {
                self.out.put(key, [stamp.as_slice(), &value].concat())?;
            }
        }
        Ok(())
    }

    /// The sizes of a turn's records, and of the logs and the journals of its calls.
    fn earlier(&self, turn: TurnId) -> Result<Earlier, StoreFault> {
        let mut earlier = Earlier::default();
        let of_calls = keys::OF_CALLS.map(|kind| self.out.tree.scan_prefix(keys::of_calls(kind, turn)));
        for entry in self.out.tree.scan_prefix(keys::log_of(turn)).chain(of_calls.into_iter().flatten()) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let record = keys::record(&key, &value).map(|record| self.whole(record)).transpose()?.flatten();
            let size = record.map_or(0, |record| record.len() as u64);
            if key.first() == Some(&keys::LOG) {
                earlier.bytes += size;
            } else {
                earlier.add(&key, &value, |_| size);
            }
        }
        Ok(earlier)
    }

    /// Removes what points to turns that are left out, except their call ids.
    fn forget_turns(&mut self) -> Result<(), StoreFault> {
        let turns = self.found.turns.clone();
        if turns.is_empty() {
            return Ok(());
        }
        let tree = self.out.tree.clone();
        let of_turn = |bytes: &[u8]| keys::tail_u128(bytes).map(TurnId::from_bits).filter(|turn| turns.contains(turn));
        let mut conversations = HashMap::new();
        for entry in tree.scan_prefix([keys::FEED]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let Some((turn, _)) = keys::read_pointer(&value).filter(|(turn, _)| turns.contains(turn)) else { continue };
            if let Some(name) = key.get(2..key.len().saturating_sub(8)) {
                conversations.insert(turn, name.to_vec());
            }
            self.out.remove(key.to_vec())?;
        }
        let mut suspensions = HashSet::new();
        for entry in tree.scan_prefix([keys::SUSPENSION]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let Some((_, record)) = keys::stamped(&value) else { continue };
            let row = self.whole(record)?.and_then(|row| SuspensionRow::read(&row).ok());
            let Some(row) = row.filter(|row| turns.contains(&row.turn)) else { continue };
            let blob = blobs::referred(record);
            if let Some(blob) = blob {
                self.out.remove(keys::reference(blob, &key))?;
            }
            self.out.remove(keys::suspension(row.id))?;
            conversations.entry(row.turn).or_insert_with(|| row.conversation.as_str().as_bytes().to_vec());
            suspensions.insert(row.id);
        }
        for index in [keys::UNFINISHED, keys::DUE, keys::ENDED] {
            for key in tree.scan_prefix([index]).keys() {
                let key = key.map_err(fault(SALVAGE))?;
                if of_turn(&key).is_some() {
                    self.out.remove(key.to_vec())?;
                }
            }
        }
        for key in keys::OF_CALLS.iter().flat_map(|kind| tree.scan_prefix([*kind]).keys()) {
            let key = key.map_err(fault(SALVAGE))?;
            if keys::turn_of_call(&key).is_none_or(|turn| turns.contains(&turn)) {
                self.out.remove(key.to_vec())?;
            }
        }
        let suspensions = suspensions.into_iter().map(Subject::Suspension);
        self.forget_deliveries(&suspensions.chain(turns.iter().copied().map(Subject::Turn)).collect())?;
        for turn in turns {
            let name = conversations.remove(&turn).unwrap_or_else(|| UNKNOWN.to_vec());
            self.out.put(keys::removed_before(turn), removed_by(self.found.head.position, &name))?;
        }
        Ok(())
    }

    fn forget_deliveries(&mut self, subjects: &HashSet<Subject>) -> Result<(), StoreFault> {
        let tree = self.out.tree.clone();
        for subject in subjects {
            for key in tree.scan_prefix(keys::deliveries_of(*subject)).keys() {
                let key = key.map_err(fault(SALVAGE))?;
                if keys::subject_of_delivery(&key) == Some(*subject) {
                    self.out.remove(key.to_vec())?;
                }
            }
        }
        for key in tree.scan_prefix([keys::TO_DELIVER]).keys() {
            let key = key.map_err(fault(SALVAGE))?;
            let of = keys::read_to_deliver(&key).map(|(_, _, subject, _)| subject);
            if of.is_none_or(|of| subjects.contains(&of)) {
                self.out.remove(key.to_vec())?;
            }
        }
        Ok(())
    }
}

/// The entry of a removed turn in format 4.
fn removed_by(by: Position, conversation: &[u8]) -> Vec<u8> {
    [by.0.to_be_bytes().as_slice(), conversation].concat()
}

/// The conversation of a turn that is left out, if nothing names it.
const UNKNOWN: &[u8] = b"unknown";
