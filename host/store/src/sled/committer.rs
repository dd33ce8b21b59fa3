//! The only thread that writes commits. It takes what is queued, checks each commit against the tree and against the
//! commits before it, writes all of them in one batch, makes the batch durable, and only then replies.
//!
//! Because it is the only writer, no compare-and-swap is needed: a check stays true until the write.

use std::collections::HashMap;

use dispatch::ports::{AppendError, Head, Position, StoreFault};
use domain::{StandingId, TurnId};
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::Disk;
use super::keys::{self, Usage};
use super::plan::{Claim, Claimed, Entries, Entry, Plan, StandingChange};
use crate::fault::fault;

#[cfg(test)]
mod tests;

/// The most commits that share one flush. More would gain nothing, and readers wait while they are written.
pub(super) const MOST_AT_ONCE: usize = 256;

/// The most lengths of logs that are cached.
const MOST_LENGTHS: usize = 1 << 16;

/// What the thread is asked for.
pub(super) enum Work {
    /// A commit.
    Commit(Box<Plan>, oneshot::Sender<Result<Position, AppendError>>),
    /// How far a delivery has come, and the key that it had among what is still to be delivered. It is no link of the chain.
    Delivery(Entries, Option<Vec<u8>>, oneshot::Sender<Result<(), StoreFault>>),
    /// To remove rows, each of one entry or several, that are still as they were read.
    Forget(Vec<Vec<Entry>>, oneshot::Sender<Result<usize, StoreFault>>),
    /// That everything before it is on disk.
    Sync(oneshot::Sender<Result<(), StoreFault>>),
}

/// The position up to which commits are on disk. Readers wait for it before they return data that could still be lost.
#[derive(Debug, Clone)]
pub(super) enum Durable {
    /// Everything up to here is on disk.
    Until(Position),
    /// A write failed. The state of later commits is unknown.
    Failed(StoreFault),
}

/// The state of the committing thread.
pub(super) struct Committer<D> {
    disk: D,
    last: Head,
    durable: watch::Sender<Durable>,
    failed: Option<StoreFault>,
    /// The lengths of logs that were appended to recently, those of this batch included.
    lengths: HashMap<TurnId, u32>,
    /// Claims and uses of standing approvals by commits of this batch.
    claimed: HashMap<Vec<u8>, Vec<u8>>,
}

impl<D: Disk> Committer<D> {
    /// Continues the chain after its head.
    pub(super) fn new(disk: D, last: Head) -> (Self, watch::Receiver<Durable>) {
        let (durable, receiver) = watch::channel(Durable::Until(last.position));
        (Self { disk, last, durable, failed: None, lengths: HashMap::new(), claimed: HashMap::new() }, receiver)
    }

    /// Works until no more work can arrive.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let mut drained = Vec::with_capacity(MOST_AT_ONCE);
        while queue.blocking_recv_many(&mut drained, MOST_AT_ONCE) > 0 {
            self.work(drained.drain(..));
        }
    }

    fn work(&mut self, drained: impl Iterator<Item = Work>) {
        let mut batch = sled::Batch::default();
        let (mut commits, mut syncs, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        let (before, mut delivered) = (self.last.position, false);
        for work in drained {
            match work {
                Work::Commit(plan, reply) => commits.push((reply, self.stage(*plan, &mut batch))),
                Work::Delivery(entries, before, reply) => {
                    self.stage_delivery(entries, before, &mut batch);
                    delivered = true;
                    syncs.push(reply);
                }
                Work::Forget(rows, reply) => forgotten.push((rows, reply)),
                Work::Sync(reply) => syncs.push(reply),
            }
        }
        let written = delivered || self.last.position > before;
        if self.failed.is_none() && (written || !syncs.is_empty()) {
            self.make_durable(batch, written);
        }
        self.claimed.clear();
        if self.lengths.len() > MOST_LENGTHS {
            self.lengths.clear();
        }
        // A refusal, too, may rest on a commit of this very batch, so it waits as long and fails with it. Whoever no
        // longer listens has given up waiting; the commit stands.
        for (reply, staged) in commits {
            let _ = reply.send(self.failed.clone().map_or(staged, |fault| Err(fault.into())));
        }
        for reply in syncs {
            let _ = reply.send(self.failed.clone().map_or(Ok(()), Err));
        }
        // Last, so that what the commits wrote is seen.
        for (rows, reply) in forgotten {
            let _ = reply.send(self.forget(rows));
        }
    }

    /// Removes rows that are still as they were read, and returns how many.
    fn forget(&mut self, rows: Vec<Vec<Entry>>) -> Result<usize, StoreFault> {
        let (mut batch, mut removed) = (sled::Batch::default(), 0);
        for entries in rows {
            let mut unchanged = true;
            for (key, value) in &entries {
                unchanged &= self.disk.get(key)?.is_some_and(|held| held == *value);
            }
            if unchanged {
                entries.into_iter().for_each(|(key, _)| batch.remove(key));
                removed += 1;
            }
        }
        if removed > 0 && self.failed.is_none() {
            self.make_durable(batch, true);
        }
        self.failed.clone().map_or(Ok(removed), Err)
    }

    fn make_durable(&mut self, mut batch: sled::Batch, written: bool) {
        let done = (|| {
            if written {
                batch.insert(keys::HEAD, keys::head_value(self.last));
                self.disk.write(batch)?;
            }
            self.disk.flush()?;
            self.disk.sync()
        })();
        match done {
            Ok(()) => {
                self.durable.send_replace(Durable::Until(self.last.position));
            }
            Err(StoreFault { attempted, reason }) => {
                tracing::error!(attempted, reason, "the store failed and takes no more commits");
                // After a failed sync the kernel may have dropped the pages and would report success the next time, so
                // trying again proves nothing. Only opening the store again shows what is on disk.
                let reason = format!("{reason}; the store takes no more commits until the host is started again");
                let fault = StoreFault { attempted, reason };
                self.durable.send_replace(Durable::Failed(fault.clone()));
                self.failed = Some(fault);
            }
        }
    }

    /// Checks a commit and adds it to the batch, whole or not at all. The position that it got.
    fn stage(&mut self, plan: Plan, batch: &mut sled::Batch) -> Result<Position, AppendError> {
        if let Some(fault) = &self.failed {
            return Err(fault.clone().into());
        }
        if let Some((turn, expected)) = plan.expected
            && self.length_differs(turn, expected)?
        {
            return Err(AppendError::Conflict);
        }
        let mut claims = Vec::with_capacity(plan.claims.len());
        for claim in plan.claims {
            claims.extend(self.check(claim)?);
        }
        let usages = self.usages(&plan.standing)?;
        self.last = self.last.then(plan.source, plan.record);
        let Head { position, hash } = self.last;
        batch.insert(keys::at(&[keys::AUDIT], position), keys::link(hash, plan.source));
        if let Some((turn, expected)) = plan.expected {
            self.lengths.insert(turn, expected + 1);
        }
        let stamp = position.0.to_be_bytes();
        for key in plan.removed {
            batch.remove(key);
        }
        for (key, value) in plan.plain {
            batch.insert(key, value);
        }
        for (key, mut value) in plan.stamped {
            value.iter_mut().zip(stamp).for_each(|(room, byte)| *room = byte);
            batch.insert(key, value);
        }
        for (key, value) in claims {
            batch.insert(key.as_slice(), [stamp.as_slice(), &value].concat());
            self.claimed.insert(key, value);
        }
        for (key, usage) in usages {
            let value = usage.to_bytes();
            batch.insert(key.as_slice(), [stamp.as_slice(), &value].concat());
            self.claimed.insert(key, value);
        }
        let (feed, value) = plan.feed;
        batch.insert(keys::at(&feed, position), value);
        Ok(position)
    }

    fn stage_delivery(&self, Entries { stamped, due }: Entries, before: Option<Vec<u8>>, batch: &mut sled::Batch) {
        let (key, mut value) = stamped;
        if let Some(before) = before {
            batch.remove(before);
        }
        if let Some(due) = due {
            batch.insert(due, Vec::new());
        }
        value.iter_mut().zip(self.last.position.0.to_be_bytes()).for_each(|(room, byte)| *room = byte);
        batch.insert(key, value);
    }

    /// The usage of standing approvals after these changes.
    fn usages(&self, changes: &[(StandingId, StandingChange)]) -> Result<HashMap<Vec<u8>, Usage>, AppendError> {
        let mut usages: HashMap<Vec<u8>, Usage> = HashMap::new();
        for (id, change) in changes {
            let key = keys::standing(keys::STANDING_STATE, *id);
            let state = match usages.remove(&key) {
                Some(state) => Some(state),
                None => self.usage(&key)?,
            };
            let state = state.and_then(|state| change.apply(state)).ok_or(AppendError::StandingSpent(*id))?;
            usages.insert(key, state);
        }
        Ok(usages)
    }

    fn usage(&self, key: &[u8]) -> Result<Option<Usage>, StoreFault> {
        let damaged = || fault("check a standing approval")("its entry is damaged");
        if let Some(held) = self.claimed.get(key) {
            return Usage::from_bytes(held).ok_or_else(damaged).map(Some);
        }
        let Some(value) = self.disk.get(key)? else { return Ok(None) };
        let usage = keys::stamped(&value).and_then(|(_, held)| Usage::from_bytes(held));
        usage.ok_or_else(damaged).map(Some)
    }

    fn length_differs(&self, turn: TurnId, expected: u32) -> Result<bool, StoreFault> {
        if let Some(length) = self.lengths.get(&turn) {
            return Ok(*length != expected);
        }
        let exists = |number| Ok::<_, StoreFault>(self.disk.get(&keys::log(turn, number))?.is_some());
        Ok(exists(expected)? || (expected > 0 && !exists(expected - 1)?))
    }

    /// Checks a claim. Returns the entry to write; `None` if the claim exists already.
    fn check(&self, claim: Claim) -> Result<Option<Entry>, AppendError> {
        let (key, wanted) = claim.entry;
        let held = match self.claimed.get(&key) {
            Some(held) => held.clone(),
            None => match self.disk.get(&key)? {
                Some(value) => keys::stamped(&value).map(|(_, held)| held.to_vec()).unwrap_or_default(),
                None => return Ok(Some((key, wanted))),
            },
        };
        match claim.of {
            _ if held == wanted => Ok(None),
            Claimed::Conversation => Err(AppendError::NotOwner),
            Claimed::CallId => match keys::tail_u128(&held) {
                Some(turn) => Err(AppendError::CallExists(TurnId::from_bits(turn))),
                None => Err(fault("check a call id")("its entry is damaged").into()),
            },
        }
    }
}
