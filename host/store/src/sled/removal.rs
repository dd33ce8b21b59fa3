//! Removes ended turns. The commit with the fact [`Removal`] removes the records of its turns, and writes an entry for
//! each turn with their positions and digests (`remains.rs`). So the chain of the audit stays as it is. The stamp of the
//! entry is the position of the fact. The committing thread also removes the logs of the turn's calls, because new ones
//! may be written until then.

use async_trait::async_trait;
use dispatch::ports::{
    AppendError, CallRecords, EndedTurn, EndedTurns, FaultKind, Head, Log as _, Position, Recorded, StoreFault,
    Subject, Tombstone, TurnsToRemove,
};
use domain::{
    ConversationId, Digest, Timestamp, TurnId,
    retention::{Removal, RemovalRule},
};

use super::blobs;
use super::inbox;
use super::keys;
use super::plan::Plan;
use super::reader::{Reader, damaged, following};
use super::remains::{self, Remains};
use super::{SledStore, blocking};
use crate::fault::fault;
use crate::record::Record;

impl Reader {
    /// Adds to the plan what else the removal of these turns changes: their records, and everything that points to them.
    pub(super) async fn remove(&self, removal: &TurnsToRemove, plan: &mut Plan) -> Result<(), AppendError> {
        for turn in &removal.turns {
            let (id, conversation) = (turn.ended.turn, &turn.ended.conversation);
            let mut records = Vec::new();
            for entry in self.tree.scan_prefix(keys::log_of(id)) {
                let (key, value) = entry.map_err(fault("read a log"))?;
                let (position, record) = keys::stamped(&value).ok_or_else(|| damaged("a log"))?;
                plan.removed.push(keys::at(&keys::feed(conversation), position));
                let ending = keys::at(&[keys::ENDS], position);
                if self.tree.contains_key(&ending).map_err(fault("read a feed"))? {
                    plan.removed.extend([ending, keys::at(&keys::ends_of(&turn.ended.caller), position)]);
                }
                plan.removed.extend(blobs::referred(record).map(|blob| keys::reference(blob, &key)));
                plan.removed.push(key.to_vec());
                records.push((position, blobs::digest(record)));
            }
            if records.len() != turn.commits as usize {
                return Err(AppendError::Changed);
            }
            let name = conversation.as_str().as_bytes();
            plan.stamped.extend(remains::entries(id, Position::default(), name, &records));
            self.remove_deliveries(id.into(), plan).await?;
            for suspension in &turn.suspensions {
                self.remove_deliveries((*suspension).into(), plan).await?;
                match self.suspension(*suspension).await {
                    Ok(row) => {
                        plan.removed.extend(row.iter().flat_map(|row| inbox::entries(row, false)));
                        plan.removed.extend(row.iter().flat_map(inbox::ends));
                    }
                    Err(fault) if fault.kind == FaultKind::Damaged => {
                        plan.removed.extend(inbox::possible_entries(&turn.ended, *suspension));
                        plan.removed.extend(self.possible_ends(&turn.ended, *suspension)?);
                    }
                    Err(fault) => return Err(fault.into()),
                }
                plan.removed.push(keys::suspension(*suspension));
            }
        }
        Ok(())
    }

    /// Removes the deliveries about a subject, none of which may be pending.
    async fn remove_deliveries(&self, of: Subject, plan: &mut Plan) -> Result<(), AppendError> {
        for row in self.deliveries(of).await? {
            if row.next().is_some() {
                return Err(AppendError::Changed);
            }
            plan.removed.push(keys::delivery(of, row.report.number(), &row.webhook));
        }
        Ok(())
    }

    /// The size of the records in the log of a turn.
    pub(super) async fn size(&self, turn: TurnId) -> Result<u64, StoreFault> {
        let mut size = 0_usize;
        for entry in self.tree.scan_prefix(keys::log_of(turn)) {
            let (_, value) = entry.map_err(fault("read a log"))?;
            let (_, record) = keys::stamped(&value).ok_or_else(|| damaged("a log"))?;
            size = self.blobs.size(record).saturating_add(size);
        }
        Ok(size as u64)
    }

    pub(super) async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        let from = after.map_or_else(|| vec![keys::ENDED], |after| following(keys::ended(after)));
        let seen = self.recoveries();
        let (mut newest, mut turns) = (Position::default(), Vec::new());
        for entry in self.tree.range(from..vec![keys::ENDED + 1]) {
            if turns.len() == limit {
                break;
            }
            let (key, value) = entry.map_err(fault("read the ended turns"))?;
            let what = || "the index of ended turns".to_owned();
            let sized = keys::stamped(&value).and_then(|(at, rest)| Some((at, rest.split_first_chunk::<8>()?)));
            let Some((position, (bytes, record))) = sized else {
                self.set_aside.take(&key, damaged(what()))?;
                continue;
            };
            newest = newest.max(position);
            match self.decode(record, EndedTurn::read, &what).await {
                Ok(turn) => turns.push((turn, u64::from_be_bytes(*bytes))),
                // It was removed meanwhile, with its large record.
                Err(_) if !self.tree.contains_key(&key).map_err(fault("read the ended turns"))? => {}
                Err(fault) => self.set_aside.take(&key, fault)?,
            }
        }
        self.on_disk(newest, seen).await?;
        Ok(turns)
    }

    pub(super) async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        let Some(value) = self.stamped(keys::RETENTION_TIME).await? else { return Ok(None) };
        let at = keys::tail_u64(&value).ok_or_else(|| damaged("the time of retention"))?;
        Ok(Some(Timestamp::from_millis(at)))
    }

    /// The remains of a removed turn.
    pub(super) async fn removed(&self, turn: TurnId) -> Result<Tombstone, StoreFault> {
        let what = || format!("the removal of {turn}");
        let seen = self.recoveries();
        let value = self.tree.get(keys::removed(turn)).map_err(fault("read what is stored"))?;
        let value = value.ok_or_else(|| damaged(what()))?;
        let (position, remains) = Remains::read(&value).ok_or_else(|| damaged(what()))?;
        self.on_disk(position, seen).await?;
        let conversation = ConversationId::new(remains.conversation).map_err(|_| damaged(what()))?;
        let fact = self.tree.get(keys::at(&[keys::REMOVAL], position)).map_err(fault("read what is stored"))?;
        let fact = fact.ok_or_else(|| damaged(what()))?;
        let Removal { at, rule, .. } = self.decode(&fact, Removal::read, &what).await?;
        Ok(Tombstone { conversation, at, rule })
    }

    /// The record that the commit of a removed turn had at a position.
    pub(super) fn remaining_record(&self, at: Position, turn: TurnId, number: u32) -> Result<Recorded, StoreFault> {
        let get = |key: &[u8]| self.tree.get(key).map_err(fault("read what is stored"));
        match remains::record_of(turn, number, get)? {
            Some((position, digest)) if position == at => self.removed_record(digest, turn, number),
            _ => Ok(Recorded::Missing),
        }
    }

    /// A removed record with its digest, and with the later entry of the chain that says that it was removed.
    pub(super) fn removed_record(&self, digest: Digest, turn: TurnId, number: u32) -> Result<Recorded, StoreFault> {
        let mut value = self.tree.get(keys::removed(turn)).map_err(fault("read what is stored"))?;
        if value.is_none() {
            value = self.tree.get(keys::removed_before(turn)).map_err(fault("read what is stored"))?;
        }
        let position = value.and_then(|value| keys::stamped(&value).map(|(position, _)| position));
        // Only a salvage removes a record without knowing its digest.
        let is_allowed = |removal: &Removal| digest != Head::START.hash || removal.rule == RemovalRule::Salvage;
        let covers =
            |removal: &Removal| removal.turns.iter().any(|removed| removed.turn == turn && removed.commits > number);
        let by = match position {
            None => None,
            Some(position) => {
                let fact = self.removal(position)?;
                fact.is_some_and(|removal| covers(&removal) && is_allowed(&removal)).then_some(position)
            }
        };
        Ok(Recorded::Removed { digest, by })
    }

    /// A lost record that belongs to no turn, with the later entry of the chain that says so.
    pub(super) fn lost_record(&self, (digest, by): (Digest, Position), at: Position) -> Result<Recorded, StoreFault> {
        let covers = |removal: Removal| removal.rule == RemovalRule::Salvage && removal.lost.contains(&at.0);
        let by = self.removal(by)?.is_some_and(covers).then_some(by);
        Ok(Recorded::Removed { digest, by })
    }

    /// The removal at a position, if it can be read.
    fn removal(&self, position: Position) -> Result<Option<Removal>, StoreFault> {
        let fact = self.tree.get(keys::at(&[keys::REMOVAL], position)).map_err(fault("read what is stored"))?;
        Ok(match fact.as_deref().map(|fact| (fact, blobs::referred(fact))) {
            None => None,
            Some((fact, None)) => Removal::read(fact).ok(),
            Some((_, Some(blob))) => self.blobs.read_now(blob).ok().and_then(|fact| Removal::read(&fact).ok()),
        })
    }

    /// The blobs that no record refers to.
    pub(super) fn unreferred(&self) -> Result<Vec<Digest>, StoreFault> {
        let mut blobs = self.blobs.list()?;
        let mut failed = Ok(());
        blobs.retain(|blob| match self.is_referred(*blob) {
            Ok(is_referred) => !is_referred,
            Err(fault) => {
                failed = Err(fault);
                false
            }
        });
        failed.map(|()| blobs)
    }

    /// Removes those of the blobs that still nothing refers to. Returns how many.
    pub(super) fn remove_blobs(&self, unreferred: Vec<Digest>) -> Result<u64, StoreFault> {
        let mut removed = 0;
        for blob in unreferred {
            removed += u64::from(self.blobs.remove(blob, || self.is_referred(blob))?);
        }
        Ok(removed)
    }

    /// Whether a record refers to a blob. Entries of earlier records under a key do not count.
    fn is_referred(&self, blob: Digest) -> Result<bool, StoreFault> {
        let prefix = keys::references(blob);
        for entry in self.tree.scan_prefix(&prefix).keys() {
            let entry = entry.map_err(fault("read the references to a large record"))?;
            let key = entry.get(prefix.len()..).unwrap_or_default();
            let value = self.tree.get(key).map_err(fault("read what is stored"))?;
            if value.is_some_and(|value| keys::record(key, &value).and_then(blobs::referred) == Some(blob)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[async_trait]
impl EndedTurns for SledStore {
    async fn ended(
        &self,
        after: Option<(Timestamp, TurnId)>,
        limit: usize,
    ) -> Result<Vec<(EndedTurn, u64)>, StoreFault> {
        self.reads.run(move |reader| async move { reader.ended(after, limit).await }).await
    }

    async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        self.reads.run(move |reader| async move { reader.size_of_calls(turn, records) }).await
    }

    async fn retention_time(&self) -> Result<Option<Timestamp>, StoreFault> {
        self.reads.run(|reader| async move { reader.retention_time().await }).await
    }

    async fn reclaim(&self) -> Result<u64, StoreFault> {
        let _only = self.reclaiming.lock().await;
        let _removing = self.reader.blobs.begin_removing();
        let reader = self.reader.clone();
        let unreferred = blocking(move || reader.unreferred()).await?;
        if unreferred.is_empty() {
            return Ok(0);
        }
        // The commits that removed the references are on disk before the records go.
        self.sync().await?;
        let reader = self.reader.clone();
        blocking(move || reader.remove_blobs(unreferred)).await
    }
}
