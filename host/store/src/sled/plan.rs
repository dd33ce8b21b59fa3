//! The entries that one commit will write, encoded on its caller's thread: the committing thread only checks, stamps
//! and writes.

use std::collections::BTreeMap;

use dispatch::ports::{
    AppendError, AudienceChange, Commit, DeliveryRow, Denial, EndedTurn, JournalRow, NewFacts, RowChange, Source,
    StoreFault, SuspensionRow, TurnEnding, TurnsToRemove,
};
use domain::{CallIndex, Digest, StandingId, Timestamp, TurnId, effect::Due, journal::ValueChange};

use super::blobs::{self, Hold};
use super::feeds;
use super::inbox;
use super::journals::{self, JournalHead, JournalSize};
use super::keys::{self, Entry, STAMP, StandingUsage, read_count};
use crate::fault::fault;
use crate::record::{self, Record};

/// One commit, ready to be checked and written.
#[derive(Default)]
pub(super) struct Plan {
    /// `None`: the commit has no facts, and gets no position.
    pub(super) facts: Option<Facts>,
    /// Entries whose present value decides whether the commit may happen. In order: a check sees the changes before it.
    pub(super) checked: Vec<(Vec<u8>, Change)>,
    /// Entries with a stamp, for which each value has room in front.
    pub(super) stamped: Vec<Entry>,
    /// Entries without a stamp.
    pub(super) plain: Vec<Entry>,
    pub(super) removed: Vec<Vec<u8>>,
    /// Changes of the plugins' data.
    pub(super) values: Vec<ValueChange>,
    /// Records that are too large for the tree. They must be on disk before the commit.
    pub(super) blobs: Vec<(Digest, Vec<u8>)>,
    /// Keeps these records on disk until the batch of the commit is written.
    pub(super) holds: Vec<Hold>,
    /// The turns to remove, each with the length that its log must have.
    pub(super) turns_to_remove: Vec<(TurnId, u32)>,
    /// The lengths that the logs of other turns must have.
    pub(super) lengths: Vec<(TurnId, u32)>,
    /// The size of the records of the turn, with the one of this commit. If the commit ends the turn, with logs and journals.
    bytes: u64,
    /// The bytes that no earlier commit counted for the principal of the turn: of a record, of entries of journals, and of logs.
    pub(super) added: u64,
    /// The sizes of the turn that the commit ends.
    earlier: Earlier,
}

/// The stored sizes of a turn before the commit that ends it.
#[derive(Default)]
pub(super) struct Earlier {
    /// The size of its records.
    pub(super) bytes: u64,
    /// The sizes of the logs of its calls by their keys.
    logs: BTreeMap<Vec<u8>, u64>,
    /// The sizes of the journals of its calls by the keys of their heads.
    journals: BTreeMap<Vec<u8>, JournalSize>,
}

impl Earlier {
    /// Adds an entry under one of [`keys::OF_CALLS`]. `size` is of a record in it.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8], size: impl FnOnce(&[u8]) -> u64) {
        // An entry that cannot be read does not count, and does not keep the turn from ending.
        let size = || keys::record(key, value).map_or(0, size);
        match key.first() {
            Some(&keys::JOURNAL) => {
                let head = keys::stamped(value).and_then(|(_, head)| JournalHead::read(head)).unwrap_or_default();
                self.journals.entry(key.to_vec()).or_default().counted = head.counted;
            }
            Some(&keys::JOURNAL_ENTRY) => {
                let Some(head) = journals::head_of(key) else { return };
                let stored = &mut self.journals.entry(head).or_default().stored;
                *stored = stored.saturating_add(size());
            }
            _ => drop(self.logs.insert(key.to_vec(), size())),
        }
    }

    /// The part of the journals that was counted as it was appended.
    pub(super) fn counted(&self) -> u64 {
        sum(self.journals.values().map(|journal| journal.counted))
    }
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// The entry in the chain, and those in feeds.
pub(super) struct Facts {
    /// Where their record will be. For a turn, this also says how many commits its log must have.
    pub(super) source: Source,
    /// The digest of their record, computed here so that the committing thread hashes only a few bytes.
    pub(super) record: Digest,
    /// The key of each feed up to the position, and the value there.
    pub(super) feeds: Vec<Entry>,
}

/// A change of an entry that is checked. Values are without stamps.
pub(super) enum Change {
    /// Writes the value. A present value is replaced.
    Put(Vec<u8>),
    /// Writes the value, unless another one is there.
    Claim(Claimed, Vec<u8>),
    /// Removes the entry, if it still has this value.
    Remove(Vec<u8>),
    /// Counts a use of a standing approval.
    Use(StandingId),
    /// Marks a standing approval as revoked.
    Revoke(StandingId, Timestamp, String),
    /// Adds to a count, which is in front of the record. A count of zero has no entry.
    Count(i64, Vec<u8>),
    /// Names the run that may append to a journal, of which the plan knows this size.
    Run { run: u32, known: u64 },
    /// Counts an entry of this number and size, which this run appends to a journal.
    Append { run: u32, number: u32, size: u64 },
    /// Writes the row of an ended turn, which begins with this size of the turn.
    Ended(u64, Vec<u8>),
    /// Writes the log of a run of this turn, behind the number of its lines. A log with as many lines stays.
    Log(TurnId, Vec<u8>),
}

pub(super) enum Claimed {
    /// A principal claims a conversation.
    Conversation,
    /// A turn claims a call id.
    CallId,
}

/// The effect of a check on its entry.
pub(super) enum Staged {
    Unchanged,
    Written(Vec<u8>),
    Removed,
}

impl Change {
    /// The effect on an entry that has this value. `late` is the size of the entries that were appended to journals of the
    /// turn after the plan of its end was made.
    pub(super) fn check(self, held: Option<&[u8]>, late: &mut u64) -> Result<Staged, AppendError> {
        let usage = || {
            held.map(|held| StandingUsage::from_bytes(held).ok_or_else(|| damaged("a standing approval"))).transpose()
        };
        let journal = |held: Option<&[u8]>| {
            let head = held.map(|held| JournalHead::read(held).ok_or_else(|| damaged("a journal"))).transpose();
            head.map(Option::unwrap_or_default)
        };
        match self {
            Self::Put(value) => Ok(Staged::Written(value)),
            Self::Claim(of, value) => match held {
                None => Ok(Staged::Written(value)),
                Some(held) if held == value => Ok(Staged::Unchanged),
                Some(held) => Err(of.taken(held)),
            },
            Self::Remove(value) if held == Some(value.as_slice()) => Ok(Staged::Removed),
            Self::Remove(_) => Err(AppendError::Changed),
            Self::Use(id) => match usage()? {
                Some(usage) if usage.revoked.is_none() && usage.used < usage.uses => {
                    Ok(Staged::Written(StandingUsage { used: usage.used + 1, ..usage }.to_bytes()))
                }
                _ => Err(AppendError::StandingSpent(id)),
            },
            Self::Revoke(id, at, by) => match usage()? {
                Some(usage) if usage.revoked.is_none() => {
                    Ok(Staged::Written(StandingUsage { revoked: Some((at, by)), ..usage }.to_bytes()))
                }
                _ => Err(AppendError::NotRevocable(id)),
            },
            Self::Count(by, record) => {
                let count = match held.map(read_count) {
                    None => 0,
                    Some(Some((count, _))) => count,
                    // It follows from the turns, so it must not keep them from going on. Reads set it aside.
                    Some(None) => return Ok(Staged::Unchanged),
                };
                if count.checked_add_signed(by).is_none() {
                    tracing::error!(count, by, "a count of the store is wrong");
                }
                let count = count.saturating_add_signed(by);
                let value = || [count.to_be_bytes().as_slice(), &record].concat();
                Ok(if count == 0 { Staged::Removed } else { Staged::Written(value()) })
            }
            Self::Run { run, known } => {
                let head = journal(held)?;
                *late = late.saturating_add(head.counted.saturating_sub(known));
                Ok(Staged::Written(JournalHead { run, ..head }.value()))
            }
            Self::Append { run, number, size } => {
                let head = journal(held)?;
                if run == 0 || (head.run, head.length) != (run, number) {
                    return Err(AppendError::Superseded);
                }
                let counted = head.counted.saturating_add(size);
                Ok(Staged::Written(JournalHead { run, length: number.saturating_add(1), counted }.value()))
            }
            Self::Ended(bytes, mut row) => {
                let bytes = bytes.saturating_add(*late).to_be_bytes();
                row.iter_mut().zip(bytes).for_each(|(old, new)| *old = new);
                Ok(Staged::Written(row))
            }
            Self::Log(_, value) => {
                let written = |log: &[u8]| read_count(log).map(|(written, _)| written);
                let is_longer = held.is_none_or(|held| written(held) < written(&value));
                Ok(if is_longer { Staged::Written(value) } else { Staged::Unchanged })
            }
        }
    }
}

impl Plan {
    /// About as many bytes as the commit adds to the batch.
    pub(super) fn size(&self) -> usize {
        let entries = self.stamped.iter().chain(&self.plain).map(|(key, value)| key.len() + value.len());
        let checked = self.checked.iter().map(|(key, change)| match change {
            Change::Put(value) | Change::Claim(_, value) | Change::Log(_, value) | Change::Ended(_, value) => {
                key.len() + value.len()
            }
            Change::Count(_, record) => key.len() + keys::COUNT + record.len(),
            Change::Run { .. } | Change::Append { .. } | Change::Remove(_) | Change::Use(_) | Change::Revoke(..) => {
                key.len()
            }
        });
        let values =
            self.values.iter().map(|ValueChange { key, value, .. }| key.len() + value.as_ref().map_or(0, Vec::len));
        entries.chain(checked).chain(values).chain(self.removed.iter().map(Vec::len)).sum()
    }
}

impl Claimed {
    /// The refusal of a claim to what somebody else holds.
    fn taken(&self, held: &[u8]) -> AppendError {
        match self {
            Self::Conversation => AppendError::NotOwner,
            Self::CallId => match keys::tail_u128(held) {
                Some(turn) => AppendError::CallExists(TurnId::from_bits(turn)),
                None => damaged("a call id").into(),
            },
        }
    }
}

pub(super) fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn damaged(what: &str) -> StoreFault {
    StoreFault::damaged("check a commit", format!("the entry of {what} is damaged"))
}

impl Plan {
    /// The writes of a commit. `earlier` is of the turn that the commit ends.
    pub(super) fn of(commit: &Commit, earlier: Earlier) -> Result<Self, StoreFault> {
        let mut plan = Self { bytes: earlier.bytes, earlier, ..Self::default() };
        if let Some(facts) = &commit.facts {
            plan.facts = Some(plan.facts(facts)?);
        }
        let (logs, mut others): (Vec<_>, Vec<_>) =
            commit.rows.iter().partition(|change| matches!(change, RowChange::RunLog(_)));
        for change in logs {
            plan.row(change)?;
        }
        let ends = |change: &&RowChange| matches!(change, RowChange::Ended(..));
        if others.iter().any(ends) {
            // After the changes of journals, because the committing thread adds their late entries to it.
            others.sort_by_key(ends);
            let journals = plan.earlier.journals.values().map(|journal| journal.uncounted());
            let added = sum(plan.earlier.logs.values().copied().chain(journals));
            plan.added = plan.added.saturating_add(added);
            plan.bytes = plan.bytes.saturating_add(added).saturating_add(plan.earlier.counted());
        }
        for change in others {
            plan.row(change)?;
        }
        Ok(plan)
    }

    /// The size of a record in a value of this plan.
    fn size_of(&self, record: &[u8]) -> u64 {
        let blob = blobs::referred(record).and_then(|digest| self.blobs.iter().find(|(of, _)| *of == digest));
        blob.map_or(record.len(), |(_, bytes)| bytes.len()) as u64
    }

    fn facts(&mut self, facts: &NewFacts) -> Result<Facts, StoreFault> {
        match facts {
            NewFacts::Turn { turn, conversation, expected, events } => {
                let value = self.value(STAMP, |out| record::write_events(events, out))?;
                let record = blobs::digest(&value[STAMP..]);
                let size = self.size_of(&value[STAMP..]);
                (self.bytes, self.added) = (self.bytes.saturating_add(size), size);
                self.stamped.push((keys::log(*turn, *expected), value));
                let feed = (keys::feed(conversation), keys::pointer(*turn, *expected));
                Ok(Facts { source: Source::Turn { turn: *turn, number: *expected }, record, feeds: vec![feed] })
            }
            NewFacts::Plugin(event) => self.of_host(Source::Plugin, keys::HOST_FEED, event),
            NewFacts::Started(start) => self.of_host(Source::Started, keys::STARTED, start),
            NewFacts::Revoked(revoked) => {
                let change = Change::Revoke(revoked.id, revoked.at, revoked.by.to_string());
                self.checked.push((keys::standing(keys::STANDING_STATE, revoked.id), change));
                self.of_host(Source::Revoked, keys::REVOKED, revoked)
            }
            NewFacts::Removal(removal) => self.removal(removal),
        }
    }

    /// The rest is in [`Reader::remove`](super::reader::Reader::remove), which reads what is to be removed.
    fn removal(&mut self, removal: &TurnsToRemove) -> Result<Facts, StoreFault> {
        for turn in &removal.turns {
            let row = self.ended(&turn.ended, turn.bytes)?;
            self.checked.push((keys::ended(turn.ended.key()), Change::Remove(row)));
            let less = Change::Count(-signed(turn.bytes), Vec::new());
            self.checked.push((keys::kept(&turn.ended.caller), less));
            self.turns_to_remove.push((turn.ended.turn, turn.commits));
        }
        self.of_host(Source::Removal, keys::REMOVAL, &removal.fact())
    }

    /// The value of an ended turn, without its stamp. The row can hold a long name of a tool, which makes it a blob.
    pub(super) fn ended(&mut self, row: &EndedTurn, bytes: u64) -> Result<Vec<u8>, StoreFault> {
        self.counted(bytes, |out| row.write(out))
    }

    /// A record behind a number.
    fn counted(
        &mut self,
        number: u64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<u8>, StoreFault> {
        let mut value = self.value(number.to_be_bytes().len(), write)?;
        value.iter_mut().zip(number.to_be_bytes()).for_each(|(room, byte)| *room = byte);
        Ok(value)
    }

    fn of_host(&mut self, source: Source, index: u8, fact: &impl Record) -> Result<Facts, StoreFault> {
        let value = self.value(0, |out| fact.write(out))?;
        Ok(Facts { source, record: blobs::digest(&value), feeds: vec![(vec![index], value)] })
    }

    fn run(&mut self, turn: TurnId, call: CallIndex, run: u32) {
        let key = journals::head(turn, call);
        let known = self.earlier.journals.get(&key).map_or(0, |journal| journal.counted);
        self.checked.push((key, Change::Run { run, known }));
    }

    fn row(&mut self, change: &RowChange) -> Result<(), StoreFault> {
        let state = |id: StandingId| keys::standing(keys::STANDING_STATE, id);
        let denial = |denial: &Denial| keys::denied(&denial.conversation, denial.alike);
        let time = |denial: &Denial| denial.at.millis().to_be_bytes().to_vec();
        match change {
            RowChange::Owner { conversation, owner } => {
                let owner = Change::Claim(Claimed::Conversation, owner.as_str().as_bytes().to_vec());
                self.checked.push((keys::owner(conversation), owner));
            }
            RowChange::Call { conversation, id, turn } => {
                let turn = Change::Claim(Claimed::CallId, turn.bits().to_be_bytes().to_vec());
                self.checked.push((keys::call(conversation, id), turn));
            }
            RowChange::Due { turn, before, after } => self.due(*turn, *before, *after),
            RowChange::Ended(row, end) => {
                if let Some(facts) = &mut self.facts {
                    facts.feeds.extend(feeds::entries(&TurnEnding::of(row, *end)));
                }
                let value = self.ended(row, self.bytes)?;
                self.checked.push((keys::ended(row.key()), Change::Ended(self.bytes, value)));
            }
            RowChange::Suspension(row) => self.suspension(row)?,
            RowChange::Audience(change) => self.audience(change)?,
            RowChange::RetentionTime(at) => {
                let value = [&[0; STAMP], at.millis().to_be_bytes().as_slice()].concat();
                self.stamped.push((keys::RETENTION_TIME.to_vec(), value));
            }
            RowChange::Length { turn, commits } => self.lengths.push((*turn, *commits)),
            RowChange::Kept(principal) => {
                self.checked.push((keys::kept(principal), Change::Count(signed(self.added), Vec::new())));
            }
            RowChange::Delivery(row) => self.delivery(row)?,
            RowChange::RunLog(log) => {
                let value = self.counted(log.written, |out| log.write(out))?;
                let key = keys::run_log(log.turn, log.call, log.run);
                let size = read_count(&value).map_or(0, |(_, record)| self.size_of(record));
                self.earlier.logs.insert(key.clone(), size);
                self.checked.push((key, Change::Log(log.turn, value)));
            }
            // `Reader::forget` reads what there is to remove. Open turns are counted in memory, by the only host.
            RowChange::Forget(..) | RowChange::Open { .. } => {}
            RowChange::JournalRun { turn, call, run } => self.run(*turn, *call, run.unwrap_or_default()),
            RowChange::JournalEntry(JournalRow { turn, call, run, entry }) => {
                let value = self.value(STAMP, |out| entry.write(out))?;
                let size = self.size_of(&value[STAMP..]);
                self.added = self.added.saturating_add(size);
                self.stamped.push((journals::entry(*turn, *call, entry.number), value));
                let append = Change::Append { run: *run, number: entry.number, size };
                self.checked.push((journals::head(*turn, *call), append));
            }
            RowChange::Value(change) => self.values.push(change.clone()),
            RowChange::Standing(row) => {
                let value = self.value(STAMP, |out| row.write(out))?;
                self.stamped.push((keys::standing(keys::STANDING, row.standing.id), value));
                self.checked.push((state(row.standing.id), Change::Put(StandingUsage::of(row).to_bytes())));
            }
            RowChange::StandingUse(id) => self.checked.push((state(*id), Change::Use(*id))),
            RowChange::ForgetStanding(row) => {
                let key = keys::standing(keys::STANDING, row.standing.id);
                let mut record = Vec::new();
                row.write(&mut record).map_err(fault("encode a commit"))?;
                self.removed.push(keys::reference(Digest::of(&record), &key));
                self.removed.push(key);
                self.checked.push((state(row.standing.id), Change::Remove(StandingUsage::of(row).to_bytes())));
            }
            RowChange::Denied(row) => self.checked.push((denial(row), Change::Put(time(row)))),
            RowChange::ForgetDenial(row) => self.checked.push((denial(row), Change::Remove(time(row)))),
        }
        Ok(())
    }

    fn due(&mut self, turn: TurnId, before: Option<Due>, after: Option<Due>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.removed.push(keys::due(before.at, turn));
        }
        match after {
            Some(after) => {
                // The same key may be in `removed`; these entries are written after that.
                self.plain.push((keys::due(after.at, turn), vec![u8::from(after.running)]));
                self.plain.push((keys::unfinished(turn), keys::due_value(after).to_vec()));
            }
            None => self.removed.push(keys::unfinished(turn)),
        }
    }

    fn suspension(&mut self, row: &SuspensionRow) -> Result<(), StoreFault> {
        let value = self.value(STAMP, |out| row.write(out))?;
        self.stamped.push((keys::suspension(row.id), value));
        self.plain.extend(inbox::entries(row, row.is_open()).into_iter().map(|key| (key, Vec::new())));
        self.removed.extend(inbox::entries(row, !row.is_open()));
        self.plain.extend(inbox::ends(row).into_iter().map(|key| (key, Vec::new())));
        Ok(())
    }

    fn audience(&mut self, change: &AudienceChange) -> Result<(), StoreFault> {
        for (audience, by) in [(&change.before, -1), (&change.after, 1)] {
            let Some(audience) = audience else { continue };
            let record = self.value(0, |out| audience.write(out))?;
            let keys = inbox::counts((&change.conversation, &change.caller, &change.tool), &record);
            let ids = keys.each_ref().map(|key| inbox::waiting(key, change.suspension));
            match by {
                // The same key may be in `removed`; these entries are written after that.
                1 => self.plain.extend(ids.map(|key| (key, Vec::new()))),
                _ => self.removed.extend(ids),
            }
            self.checked.extend(keys.into_iter().map(|key| (key, Change::Count(by, record.clone()))));
        }
        Ok(())
    }

    /// A delivery is small: nothing in it is from outside and unbounded.
    fn delivery(&mut self, row: &DeliveryRow) -> Result<(), StoreFault> {
        let mut value = vec![0; STAMP];
        row.write(&mut value).map_err(fault("encode a delivery"))?;
        self.stamped.push((keys::delivery(row.report.subject(), row.report.number(), &row.webhook), value));
        self.plain.extend(keys::next_delivery(row).map(|key| (key, Vec::new())));
        Ok(())
    }

    /// A record after `room` bytes for a stamp. If it is too large for the tree, a reference to a blob with it.
    pub(super) fn value(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<u8>, StoreFault> {
        let mut value = Vec::with_capacity(512);
        value.resize(room, 0);
        write(&mut value).map_err(fault("encode a commit"))?;
        if value.len() > blobs::MAX_INLINE {
            let record = value.split_off(room);
            let digest = Digest::of(&record);
            value.extend_from_slice(&blobs::reference(digest));
            self.blobs.push((digest, record));
        }
        Ok(value)
    }
}
