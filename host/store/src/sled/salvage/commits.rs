//! The commits of a salvaged store: the chain of the audit, and the records behind it.

use std::collections::{BTreeMap, BTreeSet};

use dispatch::ports::{Head, Position, Source, StoreFault};
use domain::{
    Digest, Event, Timestamp, Turn, TurnId,
    retention::{Removal, RemovalRule, RemovedTurn},
};

use super::super::remains::{self, Remains, lost, lost_record, tombstone, tombstone_of};
use super::super::{blobs, chain, keys};
use super::{SALVAGE, Salvage, scan};
use crate::fault::fault;
use crate::record::{self, Record};

/// The record of a commit in the damaged store.
enum Found {
    /// Its value, and its digest.
    Whole(Vec<u8>, Digest),
    /// Its digest, if that is still known.
    Lost(Option<Digest>),
}

/// The entries that have the records of commits.
const RECORDS: [u8; 5] = [keys::LOG, keys::HOST_FEED, keys::STARTED, keys::REVOKED, keys::REMOVAL];

/// Salvage accepts at most this many lost commits, or as many as the store has. It treats a position beyond that as damaged.
/// Otherwise one damaged number could keep it running without end.
const MAX_LOST: u64 = 1_000_000;

/// An unknown digest or hash.
const UNKNOWN: Digest = Head::START.hash;

impl Salvage {
    /// Copies the chain with its records, and ends it with an entry about everything that is lost.
    pub(super) fn commits(&mut self, at: Timestamp) -> Result<(), StoreFault> {
        let mut last = self.last()?;
        // At least one commit is lost without a trace. Its position shows the cut.
        last.0 += u64::from(self.is_cut);
        let strays = self.strays(last)?;
        let end = Position(last.0 + 1);
        let mut before = Some(Head::START);
        for position in (1..=last.0).map(Position) {
            let link = self.get(&keys::at(&[keys::AUDIT], position))?.and_then(|link| keys::read_link(&link));
            let source = link.map(|(_, source)| source).or_else(|| strays.get(&position).copied());
            let stored = link.map(|(hash, _)| hash).filter(|hash| *hash != UNKNOWN);
            before = self.commit(position, before, (stored, source), end)?;
        }
        self.out.write()?;
        let commits = self.leave_out()?;
        self.end(at, Head { position: last, hash: before.map_or(UNKNOWN, |head| head.hash) }, commits)
    }

    /// The last plausible position. Later positions are damaged.
    fn last(&mut self) -> Result<Position, StoreFault> {
        let head = self.get(keys::HEAD)?.and_then(|head| keys::read_head(&head));
        let mut known: Vec<u64> = head.iter().map(|head| head.position.0).collect();
        let is_whole = scan(&self.source, &[keys::AUDIT], |key, _| {
            known.extend(keys::tail_u64(key));
            Ok(())
        })?;
        self.named_elsewhere(|position, _| known.push(position.0))?;
        known.sort_unstable();
        known.dedup();
        let last =
            (1..).zip(&known).filter(|(count, position)| position.saturating_sub(*count) <= MAX_LOST.max(*count));
        let last = last.last().map_or(0, |(_, position)| *position);
        self.leave_out_beyond(Position(last))?;
        // With a damaged head, the last commits may be lost without a trace. Without a head too, unless the chain can be read
        // up to its end: each commit writes its entry of the chain together with the head.
        self.has_unknown |= head.map_or(!is_whole, |head| head.position.0 > last);
        Ok(Position(last))
    }

    /// Leaves out the turns of records whose positions are damaged.
    fn leave_out_beyond(&mut self, last: Position) -> Result<(), StoreFault> {
        let (mut turns, mut others) = (BTreeSet::new(), Vec::new());
        self.named_elsewhere(|position, source| match source {
            _ if position <= last => {}
            Source::Turn { turn, .. } => drop(turns.insert(turn)),
            source => others.push(chain::key_of(position, source)),
        })?;
        self.found.turns.extend(turns);
        others.iter().for_each(|key| self.count_lost(key));
        Ok(())
    }

    /// The records whose entries of the chain are lost.
    fn strays(&self, last: Position) -> Result<BTreeMap<Position, Source>, StoreFault> {
        let mut missing = BTreeSet::new();
        for position in (1..=last.0).map(Position) {
            if self.get(&keys::at(&[keys::AUDIT], position))?.is_none() {
                missing.insert(position);
            }
        }
        let mut strays = BTreeMap::new();
        if !missing.is_empty() {
            self.named_elsewhere(|position, source| {
                if missing.contains(&position) {
                    strays.insert(position, source);
                }
            })?;
        }
        Ok(strays)
    }

    /// Calls `each` for every commit that an index other than the chain names, with the source of its record.
    fn named_elsewhere(&self, mut each: impl FnMut(Position, Source)) -> Result<(), StoreFault> {
        for index in RECORDS {
            scan(&self.source, &[index], |key, value| {
                if let Some((position, source)) = super::super::verify::place(index, key, value) {
                    each(position, source);
                }
                Ok(())
            })?;
        }
        // A feed names the commits of turns, also those whose records are lost.
        scan(&self.source, &[keys::FEED], |key, value| {
            let source = keys::read_pointer(value).map(|(turn, number)| Source::Turn { turn, number });
            if let Some((position, source)) = keys::tail_u64(key).map(Position).zip(source) {
                each(position, source);
            }
            Ok(())
        })?;
        scan(&self.source, &[keys::REMOVED], |key, value| {
            if let Some(((turn, first), (_, remains))) = remains::read_key(key).zip(Remains::read(value)) {
                for (number, (position, _)) in (first..).zip(remains.records()) {
                    each(position, Source::Turn { turn, number });
                }
            }
            Ok(())
        })
        .map(drop)
    }

    /// The record of a commit of a removed turn.
    fn removed(&self, position: Position, source: Source) -> Result<Found, StoreFault> {
        let Source::Turn { turn, number } = source else { return Ok(Found::Lost(None)) };
        let record = remains::record_of(turn, number, |key| self.get(key))?;
        Ok(match record {
            Some((at, digest)) if at == position => Found::Whole(tombstone_of(position, digest), digest),
            _ => Found::Lost(None),
        })
    }

    /// Copies one commit. Returns the head after it, if its hash is known.
    fn commit(
        &mut self,
        position: Position,
        before: Option<Head>,
        (stored, source): (Option<Digest>, Option<Source>),
        end: Position,
    ) -> Result<Option<Head>, StoreFault> {
        // Nothing is known of it. Its entry has to have some source.
        let (found, source) = match source {
            Some(source) => (self.record(position, source)?, source),
            None => {
                self.has_unknown = true;
                (Found::Lost(None), Source::Plugin)
            }
        };
        let digest = match &found {
            Found::Whole(_, digest) => Some(*digest),
            Found::Lost(digest) => *digest,
        };
        let computed = before.zip(digest).map(|(before, digest)| before.then(source, digest).hash);
        let fits = computed.is_none() || stored.is_none() || computed == stored;
        let hash = stored.or(computed);
        let key = chain::key_of(position, source);
        match (found, hash) {
            (Found::Whole(value, _), Some(_)) if fits => {
                self.found.commits += 1;
                self.out.put(key, value)?;
            }
            // A record that does not fit its hash is not the one that was committed.
            _ => {
                let digest = digest.filter(|_| fits && hash.is_some()).unwrap_or(UNKNOWN);
                match source {
                    Source::Turn { turn, .. } => {
                        self.found.turns.insert(turn);
                        self.out.put(key, tombstone_of(position, digest))?;
                    }
                    Source::Plugin | Source::Started | Source::Revoked | Source::Removal => {
                        self.found.lost.push(position.0);
                        self.out.put(key, lost_record(digest, end))?;
                    }
                }
            }
        }
        self.out.put(keys::at(&[keys::AUDIT], position), keys::link(hash.unwrap_or(UNKNOWN), source))?;
        Ok(hash.map(|hash| Head { position, hash }))
    }

    fn record(&self, position: Position, source: Source) -> Result<Found, StoreFault> {
        let key = chain::key_of(position, source);
        let Some(value) = self.get(&key)? else { return self.removed(position, source) };
        let stamped = keys::stamped(&value).filter(|(stamp, _)| *stamp == position);
        let record = match source {
            Source::Turn { .. } => stamped.map(|(_, record)| record),
            Source::Plugin | Source::Started | Source::Revoked | Source::Removal => Some(&*value),
        };
        let Some(record) = record else { return Ok(Found::Lost(None)) };
        if let Some(digest) = tombstone(record).or_else(|| lost(record).map(|(digest, _)| digest)) {
            return Ok(Found::Whole(value.to_vec(), digest));
        }
        let digest = blobs::digest(record);
        match self.whole(record)? {
            Some(whole) if chain::decodes(source, &whole) => Ok(Found::Whole(value.to_vec(), digest)),
            // The digest of a large record is in its reference. That of another damaged record may be wrong.
            Some(_) => Ok(Found::Lost(None)),
            None => Ok(Found::Lost(Some(digest))),
        }
    }

    /// Leaves out the turns of lost records: their records become tombstones. Returns how many commits each has.
    fn leave_out(&mut self) -> Result<BTreeMap<TurnId, u32>, StoreFault> {
        if self.has_unknown {
            self.leave_out_unfinished()?;
        }
        self.leave_out_removed()?;
        self.leave_out_unknown()?;
        let mut commits: BTreeMap<TurnId, u32> = self.found.turns.iter().map(|turn| (*turn, 0)).collect();
        if commits.is_empty() {
            return Ok(commits);
        }
        for entry in self.out.tree.scan_prefix([keys::LOG]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let Some((turn, number)) = key.get(1..).and_then(keys::read_pointer) else { continue };
            let Some(commits) = commits.get_mut(&turn) else { continue };
            *commits = (*commits).max(number.saturating_add(1));
            let Some((position, record)) = keys::stamped(&value) else { continue };
            if tombstone(record).is_none() {
                self.found.commits -= 1;
                self.out.put(key.to_vec(), tombstone_of(position, blobs::digest(record)))?;
            }
        }
        Ok(commits)
    }

    /// The removal of some turns is lost. The last entry is about these turns too.
    fn leave_out_removed(&mut self) -> Result<(), StoreFault> {
        let tree = self.out.tree.clone();
        for entry in tree.scan_prefix([keys::LOG]) {
            let (key, value) = entry.map_err(fault(SALVAGE))?;
            let turn = key.get(1..).and_then(keys::read_pointer).map(|(turn, _)| turn);
            let is_removed = keys::stamped(&value).is_some_and(|(_, record)| tombstone(record).is_some());
            let Some(turn) = turn.filter(|_| is_removed) else { continue };
            let entry = tree.get(keys::removed_before(turn)).map_err(fault(SALVAGE))?;
            let at = entry.as_ref().and_then(|entry| keys::stamped(entry)).map(|(position, _)| position);
            let removal = at.map(|at| tree.get(keys::at(&[keys::REMOVAL], at))).transpose().map_err(fault(SALVAGE))?;
            if removal.flatten().is_none_or(|removal| lost(&removal).is_some()) {
                self.found.turns.insert(turn);
            }
        }
        Ok(())
    }

    /// Leaves out the turns that only indexes still name, because all their commits are lost.
    fn leave_out_unknown(&mut self) -> Result<(), StoreFault> {
        let tree = self.out.tree.clone();
        let mut named = BTreeSet::new();
        for index in [keys::CALL, keys::UNFINISHED, keys::DUE, keys::ENDED] {
            for entry in tree.scan_prefix([index]) {
                let (key, value) = entry.map_err(fault(SALVAGE))?;
                named.extend(keys::tail_u128(if index == keys::CALL { &value } else { &key }).map(TurnId::from_bits));
            }
        }
        for turn in named {
            if tree.scan_prefix(keys::log_of(turn)).next().transpose().map_err(fault(SALVAGE))?.is_none() {
                self.found.turns.insert(turn);
            }
        }
        Ok(())
    }

    /// A commit of an unknown turn is lost. It can belong to any turn that looks open. Continuing such a turn could run a call
    /// twice, so all of them are left out.
    fn leave_out_unfinished(&mut self) -> Result<(), StoreFault> {
        let tree = self.out.tree.clone();
        let mut log: (Option<TurnId>, Vec<Event>) = (None, Vec::new());
        for entry in tree.scan_prefix([keys::LOG]).map(Some).chain([None]) {
            let entry = entry.transpose().map_err(fault(SALVAGE))?;
            let turn =
                entry.as_ref().and_then(|(key, _)| key.get(1..).and_then(keys::read_pointer)).map(|(turn, _)| turn);
            if turn != log.0 {
                let (before, events) = std::mem::replace(&mut log, (turn, Vec::new()));
                let has_ended = Turn::replay(&events).is_some_and(|turn| turn.is_ended());
                self.found.turns.extend(before.filter(|_| !has_ended));
            }
            let record = entry.as_ref().and_then(|(_, value)| keys::stamped(value)).map(|(_, record)| record);
            let removed = record.filter(|record| tombstone(record).is_some());
            if removed.is_some() && !turn.is_some_and(|turn| self.found.turns.contains(&turn)) {
                // It was removed before, so it has ended.
                log.0 = None;
                continue;
            }
            let whole = record.map(|record| self.whole(record)).transpose()?.flatten();
            log.1.extend(whole.and_then(|record| record::read_events(&record).ok()).unwrap_or_default());
        }
        Ok(())
    }

    /// Writes the last entry.
    fn end(&mut self, at: Timestamp, last: Head, commits: BTreeMap<TurnId, u32>) -> Result<(), StoreFault> {
        let turns = commits.into_iter().map(|(turn, commits)| RemovedTurn { turn, commits }).collect();
        let lost = self.found.lost.clone();
        let removal = Removal { at, rule: RemovalRule::Salvage, bytes: 0, turns, lost };
        let mut record = Vec::new();
        removal.write(&mut record).map_err(fault(SALVAGE))?;
        let digest = Digest::of(&record);
        let end = last.then(Source::Removal, digest);
        if record.len() > blobs::MAX_INLINE {
            self.blobs.write_one(digest, &record).map_err(fault(SALVAGE))?;
            record = blobs::reference(digest).to_vec();
        }
        self.out.put(keys::at(&[keys::REMOVAL], end.position), record)?;
        self.out.put(keys::at(&[keys::AUDIT], end.position), keys::link(end.hash, Source::Removal))?;
        self.out.put(keys::HEAD.to_vec(), keys::head_value(end))?;
        self.found.head = end;
        self.out.write()
    }
}
