//! Reading, from threads that may block ([`Reads`](super::reads::Reads)). Data that could still be lost is
//! returned only once it is on disk: nobody sees a decision that a loss of power could undo.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::{
    Denial, Facts, FaultKind, FoundSubmission, Loaded, Position, StoreFault, SuspensionRow, TurnLog,
};
use domain::{
    CallId, ConversationId, Digest, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId, effect::Due,
    standing::StandingRow,
};
use tokio::sync::watch;

use super::blobs::{self, Blobs};
use super::durable::Durable;
use super::keys::{self, StandingUsage};
use super::set_aside::SetAside;
use super::tree::Tree;
use crate::fault::fault;
use crate::record::{self, Record, Unreadable};

#[cfg(test)]
mod tests;

#[derive(Clone)]
pub(super) struct Reader {
    pub(super) tree: Tree,
    pub(super) blobs: Blobs,
    pub(super) durable: watch::Receiver<Durable>,
    /// How often the database was opened again after a full disk.
    pub(super) recoveries: Arc<AtomicU64>,
    pub(super) set_aside: SetAside,
}

/// For `map_err` and `ok_or_else`: a key or a value is not what this store writes.
pub(super) fn damaged(what: impl Display) -> StoreFault {
    StoreFault::damaged("read what is stored", format!("{what} is damaged"))
}

impl Reader {
    pub(super) async fn load(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        if self.set_aside.is_closed(turn) {
            return Err(damaged(format!("the log of {turn}")));
        }
        let loaded = self.read_log(turn, commits).await;
        if let Err(fault) = &loaded {
            // The fault goes to the caller in any case.
            let _ = self.set_aside.take_log(turn, fault.clone());
        }
        loaded
    }

    async fn read_log(&self, turn: TurnId, commits: u32) -> Result<Loaded<TurnLog>, StoreFault> {
        let seen = self.recoveries();
        let (mut newest, mut version, mut events) = (Position::default(), 0, Vec::new());
        for entry in self.tree.scan_prefix(keys::log_of(turn)).take(commits as usize) {
            let (key, value) = entry.map_err(fault("read a log"))?;
            let what = || format!("commit {version} of {turn}");
            if keys::tail_u32(&key) != Some(version) {
                // The turn may have been removed since the scan began.
                if self.is_removed(turn)? {
                    break;
                }
                return Err(damaged(format!("{}: it is missing, so the log", what())));
            }
            let (position, value) = keys::stamped(&value).ok_or_else(|| damaged(what()))?;
            if self.failed_before(position) {
                break;
            }
            newest = newest.max(position);
            match self.decode(value, record::read_events, &what).await {
                Ok(mut decoded) => events.append(&mut decoded),
                // Its large record was removed with it.
                Err(_) if self.is_removed(turn)? => break,
                Err(fault) => return Err(fault),
            }
            version += 1;
        }
        // A removal may have taken the end of the log during the scan.
        if self.is_removed(turn)? {
            return self.removed(turn).await.map(Loaded::Removed);
        }
        self.on_disk(newest, seen).await?;
        Ok(if version > 0 { Loaded::Found(TurnLog { version, events }) } else { Loaded::Absent })
    }

    pub(super) fn is_removed(&self, turn: TurnId) -> Result<bool, StoreFault> {
        self.tree.contains_key(keys::removed(turn)).map_err(fault("read what is stored"))
    }

    /// Whether a turn was removed. Returns once the removal is on disk.
    pub(super) async fn removal_on_disk(&self, turn: TurnId) -> Result<bool, StoreFault> {
        Ok(self.stamped(&keys::removed(turn)).await?.is_some())
    }

    pub(super) async fn owner(&self, conversation: &ConversationId) -> Result<Option<PrincipalId>, StoreFault> {
        let key = keys::owner(conversation);
        let Some(name) = self.stamped(&key).await? else { return Ok(None) };
        let owner = std::str::from_utf8(&name).ok().and_then(|name| PrincipalId::new(name).ok());
        self.noted(&key, owner.map(Some).ok_or_else(|| damaged(format!("the owner of {conversation}"))))
    }

    pub(super) async fn conversations(
        &self,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> Result<Vec<(ConversationId, PrincipalId)>, StoreFault> {
        let from = after.map_or_else(|| vec![keys::OWNER], |after| following(keys::owner(after)));
        let entries = self.tree.range(from..vec![keys::OWNER + 1]);
        let seen = self.recoveries();
        let (mut newest, mut conversations) = (Position::default(), Vec::new());
        for entry in entries {
            if conversations.len() == limit {
                break;
            }
            let (key, value) = entry.map_err(fault("read conversations"))?;
            let text = |bytes| std::str::from_utf8(bytes).ok();
            let stamped = keys::stamped(&value);
            let conversation = key.get(1..).and_then(text).and_then(|id| ConversationId::new(id).ok());
            let owner = stamped.and_then(|(_, name)| text(name)).and_then(|name| PrincipalId::new(name).ok());
            let (Some((position, _)), Some(conversation), Some(owner)) = (stamped, conversation, owner) else {
                self.set_aside.take(&key, damaged("it"))?;
                continue;
            };
            newest = newest.max(position);
            conversations.push((conversation, owner));
        }
        self.on_disk(newest, seen).await?;
        Ok(conversations)
    }

    pub(super) async fn find_call(
        &self,
        conversation: &ConversationId,
        call: &CallId,
    ) -> Result<Option<TurnId>, StoreFault> {
        let key = keys::call(conversation, call);
        let Some(turn) = self.stamped(&key).await? else { return Ok(None) };
        let turn = keys::tail_u128(&turn).map(TurnId::from_bits);
        self.noted(&key, turn.map(Some).ok_or_else(|| damaged(format!("the entry of call {call} of {conversation}"))))
    }

    pub(super) async fn find_submission(
        &self,
        conversation: &ConversationId,
        calls: Vec<CallId>,
        keeper: Option<&PrincipalId>,
    ) -> Result<FoundSubmission, StoreFault> {
        let mut found = FoundSubmission { owner: self.owner(conversation).await?, ..FoundSubmission::default() };
        for call in calls.into_iter().filter(|_| found.owner.is_some()) {
            if let Some(turn) = self.find_call(conversation, &call).await? {
                return Ok(FoundSubmission { call: Some((call, turn)), ..found });
            }
        }
        if let Some(keeper) = keeper {
            found.kept_bytes = Some(self.kept_bytes(keeper).await?);
        }
        Ok(found)
    }

    /// Does not wait for the disk: everybody who acts on a turn loads it first, and loading waits.
    pub(super) async fn due(
        &self,
        after: Option<(Timestamp, TurnId)>,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let from = after.map_or_else(|| vec![keys::DUE], |(at, turn)| following(keys::due(at, turn)));
        let last = keys::due(until, TurnId::from_bits(u128::MAX));
        if from > last {
            return Ok(Vec::new());
        }
        let entries = self.tree.range(from..=last);
        entries
            .filter_map(|entry| {
                let (key, running) = match entry.map_err(fault("read what is due")) {
                    Ok(entry) => entry,
                    Err(fault) => return Some(Err(fault)),
                };
                let at = key.get(1..9).and_then(keys::tail_u64).map(Timestamp::from_millis);
                match at.zip(keys::tail_u128(&key).map(TurnId::from_bits)) {
                    Some((at, turn)) => Some(Ok((turn, Due { at, running: running.first() == Some(&1) }))),
                    None => self.set_aside.take(&key, damaged("it")).err().map(Err),
                }
            })
            .take(limit)
            .collect()
    }

    /// Does not wait either, for the same reason.
    pub(super) async fn unfinished(
        &self,
        after: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<(TurnId, Due)>, StoreFault> {
        let from = after.map_or_else(|| vec![keys::UNFINISHED], |turn| following(keys::unfinished(turn)));
        let entries = self.tree.range(from..vec![keys::UNFINISHED + 1]);
        entries
            .filter_map(|entry| {
                let (key, value) = match entry.map_err(fault("read the unfinished turns")) {
                    Ok(entry) => entry,
                    Err(fault) => return Some(Err(fault)),
                };
                match keys::tail_u128(&key).map(TurnId::from_bits).zip(keys::read_due(&value)) {
                    Some(entry) => Some(Ok(entry)),
                    None => self.set_aside.take(&key, damaged("it")).err().map(Err),
                }
            })
            .take(limit)
            .collect()
    }

    /// The facts of a commit whose record cannot be read. Sets the record aside. Passes on faults that are not damage.
    pub(super) fn unreadable(
        &self,
        turn: Option<TurnId>,
        position: Position,
        fault: StoreFault,
    ) -> Result<Facts, StoreFault> {
        match turn {
            Some(turn) => self.set_aside.take_log(turn, fault)?,
            None => self.set_aside.take(&keys::at(&[keys::AUDIT], position), fault)?,
        }
        Ok(Facts::Unreadable { turn })
    }

    pub(super) async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
        let key = keys::suspension(id);
        let Some(row) = self.stamped(&key).await? else { return Ok(None) };
        match self.decode(&row, SuspensionRow::read, &|| format!("the row of {id}")).await {
            // It was removed meanwhile, with its large record.
            Err(_) if !self.tree.contains_key(&key).map_err(fault("read what is stored"))? => Ok(None),
            row => self.noted(&key, row.map(Some)),
        }
    }

    /// A standing approval as it was given, with its usage.
    pub(super) async fn standing(&self, id: StandingId) -> Result<Option<StandingRow>, StoreFault> {
        let what = || format!("the standing approval {id}");
        let key = keys::standing(keys::STANDING, id);
        let Some(row) = self.stamped(&key).await? else { return Ok(None) };
        let row = self.decode(&row, StandingRow::read, &what).await;
        let state = self.stamped(&keys::standing(keys::STANDING_STATE, id)).await?;
        let (Ok(row), Some(state)) = (&row, state) else {
            // It was removed between the reads, together with its row; or the row is still there, and the store is
            // damaged.
            let is_removed = self.stamped(&key).await?.is_none();
            let read = Err(row.err().unwrap_or_else(|| damaged(what())));
            return if is_removed { Ok(None) } else { self.noted(&key, read) };
        };
        let usage = StandingUsage::from_bytes(&state).and_then(|StandingUsage { used, revoked, .. }| match revoked {
            None => Some((used, None)),
            Some((at, by)) => Some((used, Some((PrincipalId::new(&by).ok()?, at)))),
        });
        let (used, revoked) = self.noted(&key, usage.ok_or_else(|| damaged(what())))?;
        Ok(Some(StandingRow { used, revoked, ..row.clone() }))
    }

    pub(super) async fn standings(
        &self,
        after: Option<StandingId>,
        limit: usize,
    ) -> Result<Vec<StandingRow>, StoreFault> {
        let mut from = match after {
            None => vec![keys::STANDING],
            Some(id) => following(keys::standing(keys::STANDING, id)),
        };
        let mut rows = Vec::new();
        while rows.len() < limit {
            let wanted = limit - rows.len();
            let keys: Vec<_> = self.tree.range(from..vec![keys::STANDING + 1]).keys().take(wanted).collect();
            let is_last = keys.len() < wanted;
            from = Vec::new();
            for key in keys {
                from = key.map_err(fault("read standing approvals"))?.to_vec();
                let id = keys::tail_u128(&from).map(StandingId::from_bits).ok_or_else(|| damaged("an index"))?;
                // A row may have been removed since its key was read. Another takes its place, because a page that is
                // not full is the last.
                match self.standing(id).await {
                    Ok(row) => rows.extend(row),
                    Err(fault) => self.set_aside.take(&from, fault)?,
                }
            }
            if is_last {
                break;
            }
            from = following(from);
        }
        Ok(rows)
    }

    pub(super) async fn denied(
        &self,
        conversation: &ConversationId,
        alike: Digest,
    ) -> Result<Option<Timestamp>, StoreFault> {
        let key = keys::denied(conversation, alike);
        let Some(at) = self.stamped(&key).await? else { return Ok(None) };
        let at = self.noted(&key, keys::tail_u64(&at).ok_or_else(|| damaged("when a call was denied")))?;
        Ok(Some(Timestamp::from_millis(at)))
    }

    pub(super) async fn denials(&self, after: Option<&Denial>, limit: usize) -> Result<Vec<Denial>, StoreFault> {
        let from =
            after.map_or_else(|| vec![keys::DENIED], |after| following(keys::denied(&after.conversation, after.alike)));
        let entries = self.tree.range(from..vec![keys::DENIED + 1]);
        let seen = self.recoveries();
        let (mut newest, mut denials) = (Position::default(), Vec::new());
        for entry in entries {
            if denials.len() == limit {
                break;
            }
            let (key, value) = entry.map_err(fault("read denials"))?;
            let read = keys::stamped(&value).and_then(|(at, time)| Some((at, keys::read_denial(&key, time)?)));
            let Some((position, denial)) = read else {
                self.set_aside.take(&key, damaged("it"))?;
                continue;
            };
            newest = newest.max(position);
            denials.push(denial);
        }
        self.on_disk(newest, seen).await?;
        Ok(denials)
    }

    /// The values under keys that are a prefix and a position, after a position and on disk.
    pub(super) fn positions(
        &self,
        prefix: &[u8],
        after: Position,
        limit: usize,
    ) -> Result<Vec<(Position, sled::IVec)>, StoreFault> {
        let until = self.durable.borrow().until();
        self.positions_until(prefix, after, until, limit)
    }

    /// As [`Reader::positions`], up to a position that is on disk.
    pub(super) fn positions_until(
        &self,
        prefix: &[u8],
        after: Position,
        until: Position,
        limit: usize,
    ) -> Result<Vec<(Position, sled::IVec)>, StoreFault> {
        if after >= until {
            return Ok(Vec::new());
        }
        let range = keys::at(prefix, Position(after.0 + 1))..=keys::at(prefix, until);
        let entries = self.tree.range(range).take(limit);
        entries
            .map(|entry| {
                let (key, value) = entry.map_err(fault("read a feed"))?;
                let position = keys::tail_u64(&key).map(Position).ok_or_else(|| damaged("a feed"))?;
                Ok((position, value))
            })
            .collect()
    }

    /// The value under a key without its stamp, once the commit that wrote it is on disk.
    pub(super) async fn stamped(&self, key: &[u8]) -> Result<Option<sled::IVec>, StoreFault> {
        let seen = self.recoveries();
        let Some(value) = self.tree.get(key).map_err(fault("read what is stored"))? else { return Ok(None) };
        let (position, _) = self.noted(key, keys::stamped(&value).ok_or_else(|| damaged("a value")))?;
        self.on_disk(position, seen).await?;
        Ok(Some(value.subslice(keys::STAMP, value.len() - keys::STAMP)))
    }

    /// Counts the record under a key if it is damaged. The fault goes to the caller in any case.
    pub(super) fn noted<T>(&self, key: &[u8], read: Result<T, StoreFault>) -> Result<T, StoreFault> {
        read.inspect_err(|fault| drop(self.set_aside.take(key, fault.clone())))
    }

    /// Whether the value under a key was written by a commit that did not reach the disk.
    pub(super) fn has_failed(&self, key: &[u8]) -> Result<bool, StoreFault> {
        let value = self.tree.get(key).map_err(fault("read what is stored"))?;
        let position = value.as_deref().and_then(keys::stamped).map(|(position, _)| position);
        Ok(position.is_some_and(|position| self.failed_before(position)))
    }

    /// Whether the commit at a position is one that the disk did not take.
    fn failed_before(&self, position: Position) -> bool {
        matches!(&*self.durable.borrow(), Durable::Failed(until, _) if position > *until)
    }

    /// How often the database was opened again after a full disk.
    pub(super) fn recoveries(&self) -> u64 {
        self.recoveries.load(Ordering::Acquire)
    }

    /// Waits until the commit at a position is on disk. `seen` is the number of recoveries before it was read: a recovery
    /// gives the position of a lost commit to another one.
    pub(super) async fn on_disk(&self, position: Position, seen: u64) -> Result<(), StoreFault> {
        let reached = |durable: &Durable| match durable {
            Durable::Until(until) => *until >= position,
            Durable::Failed(..) => true,
        };
        if self.durable.borrow().until() < position {
            match &*self.durable.clone().wait_for(reached).await.map_err(fault("wait for the disk"))? {
                Durable::Failed(until, fault) if position > *until => return Err(fault.clone()),
                Durable::Until(_) | Durable::Failed(..) => {}
            }
        }
        if self.recoveries() == seen {
            return Ok(());
        }
        let reason = "the disk was full meanwhile; read again".to_owned();
        Err(StoreFault { kind: FaultKind::NoSpace, attempted: "read what is stored", reason })
    }

    pub(super) async fn decode<T>(
        &self,
        value: &[u8],
        read: fn(&[u8]) -> Result<T, Unreadable>,
        what: &(dyn Fn() -> String + Sync),
    ) -> Result<T, StoreFault> {
        let decoded = match blobs::referred(value) {
            None => read(value),
            Some(digest) => read(&self.blobs.read_now(digest)?),
        };
        decoded.map_err(|unreadable| StoreFault::damaged("read what is stored", format!("{}: {unreadable}", what())))
    }
}

/// The smallest key after this one.
pub(super) fn following(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
