//! The committing thread, the only thread that writes commits. It takes the queued commits and checks each one against
//! the tree and against the commits before it. It writes all of them in one batch, makes the batch durable, and then
//! replies.
//!
//! No compare-and-swap is needed: there is no other writer, so a check stays true until the write.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dispatch::ports::{AppendError, FaultKind, Head, Position, Source, StoreFault};
use domain::TurnId;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::{Batch, Disk};
use super::durable::Durable;
use super::plan::{Change, Plan, Staged};
use super::{blobs, keys};

#[cfg(test)]
mod tests;

/// The largest number of commits in one flush. A larger batch is not faster, and readers wait while it is written.
pub(super) const MAX_AT_ONCE: usize = 256;

/// The largest number of log lengths in the cache.
const MAX_LENGTHS: usize = 1 << 16;

/// The length of the log of a removed turn: no commit can continue it.
const REMOVED: u32 = u32::MAX;

/// The maximum number of cleanings in a row without a write between them.
const MAX_CLEANINGS: u32 = 1_000;

/// The time between two attempts to recover from a full disk.
const PAUSE: Duration = Duration::from_millis(100);

/// A request to the committing thread.
pub(super) enum Work {
    Commit(Box<Plan>, oneshot::Sender<Result<Position, AppendError>>),
    /// The thread replies when all earlier commits are on disk.
    Sync(oneshot::Sender<Result<(), StoreFault>>),
    /// A large record of a commit was not written. The store fails as if the thread itself had not written it.
    Failed(StoreFault, oneshot::Sender<Result<(), StoreFault>>),
    /// As `Sync`. Then the thread waits until the other end of the receiver is dropped.
    Pause(oneshot::Sender<Result<(), StoreFault>>, oneshot::Receiver<()>),
}

pub(super) struct Committer<D> {
    disk: D,
    last: Head,
    /// The newest head that is on disk.
    synced: Head,
    durable: watch::Sender<Durable>,
    failed: Option<StoreFault>,
    /// Whether the thread can recover from `failed` without a restart of the host.
    recovers: bool,
    /// How often it has failed.
    failures: Arc<AtomicU64>,
    /// The lengths of recently extended logs, with the commits of the current batch.
    lengths: HashMap<TurnId, u32>,
    /// The new values, without stamps, of the checked entries in this batch. `None` removes the entry.
    staged: HashMap<Vec<u8>, Option<Vec<u8>>>,
    /// The bytes that were written since the last cleaning.
    unclean: usize,
    /// Whether there is more to clean.
    cleans: bool,
    /// The cleanings since the last write.
    cleanings: u32,
}

impl<D: Disk> Committer<D> {
    /// The first commit continues the audit chain after `last`.
    pub(super) fn new(disk: D, last: Head, durable: watch::Sender<Durable>) -> Self {
        let (lengths, staged) = (HashMap::new(), HashMap::new());
        let (failed, recovers, failures) = (None, false, Arc::default());
        let (unclean, cleans, cleanings) = (0, false, 0);
        let synced = last;
        Self { disk, last, synced, durable, failed, recovers, failures, lengths, staged, unclean, cleans, cleanings }
    }

    pub(super) fn failures(&self) -> Arc<AtomicU64> {
        self.failures.clone()
    }

    /// Returns when all senders of `queue` are dropped and the queue is empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Work>) {
        let mut drained = Vec::with_capacity(MAX_AT_ONCE);
        loop {
            if self.recovers {
                match queue.try_recv() {
                    Ok(work) => drained.push(work),
                    Err(TryRecvError::Empty) => {
                        thread::sleep(PAUSE);
                        self.recover();
                    }
                    Err(TryRecvError::Disconnected) => return,
                }
            } else if self.cleans {
                while drained.len() < MAX_AT_ONCE {
                    match queue.try_recv() {
                        Ok(work) => drained.push(work),
                        Err(TryRecvError::Disconnected) if drained.is_empty() => return,
                        Err(_) => break,
                    }
                }
            } else if queue.blocking_recv_many(&mut drained, MAX_AT_ONCE) == 0 {
                return;
            }
            self.work(drained.drain(..));
            self.clean();
        }
    }

    /// Lets the database use space again that was freed.
    fn clean(&mut self) {
        self.cleans = false;
        if self.failed.is_some() {
            return;
        }
        match self.disk.clean(self.unclean) {
            Ok(None) => {}
            Ok(Some(is_clean)) => {
                self.unclean = 0;
                self.cleanings += 1;
                self.cleans = !is_clean && self.cleanings < MAX_CLEANINGS;
            }
            Err(fault) => {
                let recovers = fault.kind == FaultKind::NoSpace;
                self.fail(fault, recovers);
            }
        }
    }

    /// Accepts commits again if the disk has space and the database still has the head that was on disk.
    fn recover(&mut self) {
        match self.disk.reopen(self.synced) {
            Ok(None) => {}
            // The disk has commits whose callers got an error, and no reader has seen them. They become visible only
            // after a restart, to all readers at once.
            Ok(Some(head)) if head != self.synced => {
                let reason = "the disk has commits that were answered with an error".to_owned();
                self.fail(StoreFault { kind: FaultKind::Disk, attempted: "go on after a full disk", reason }, false);
            }
            Ok(Some(head)) => {
                tracing::warn!("there is space again, and the store takes commits again");
                (self.last, self.failed, self.recovers) = (head, None, false);
                self.lengths.clear();
                self.durable.send_replace(Durable::Until(head.position));
            }
            Err(fault) => self.fail(fault, false),
        }
    }

    fn fail(&mut self, StoreFault { kind, attempted, reason }: StoreFault, recovers: bool) {
        tracing::error!(attempted, reason, recovers, "the store failed and takes no more commits");
        self.failures.fetch_add(1, Ordering::Relaxed);
        let until = if recovers { "there is space again" } else { "the host is started again" };
        let kind = if recovers { kind } else { FaultKind::Disk };
        let reason = format!("{reason}; the store takes no more commits until {until}");
        let fault = StoreFault { kind, attempted, reason };
        self.durable.send_replace(Durable::Failed(self.synced.position, fault.clone()));
        (self.failed, self.recovers) = (Some(fault), recovers);
    }

    fn work(&mut self, drained: impl Iterator<Item = Work>) {
        let mut batch = Batch::default();
        let (mut commits, mut syncs, mut written, mut bytes) = (Vec::new(), Vec::new(), false, 0);
        let (mut holds, mut pauses) = (Vec::new(), Vec::new());
        for work in drained {
            match work {
                Work::Commit(mut plan, reply) => {
                    holds.append(&mut plan.holds);
                    bytes += plan.size();
                    let staged = self.stage(*plan, &mut batch);
                    written |= staged.is_ok();
                    commits.push((reply, staged));
                }
                Work::Sync(reply) => syncs.push(reply),
                Work::Failed(fault, reply) => {
                    let recovers = fault.kind == FaultKind::NoSpace;
                    // A full disk refuses many records and is one failure.
                    if self.failed.is_none() || (self.recovers && !recovers) {
                        self.fail(fault, recovers);
                    }
                    syncs.push(reply);
                }
                Work::Pause(reply, until) => {
                    syncs.push(reply);
                    pauses.push(until);
                }
            }
        }
        if self.failed.is_none() && (written || !syncs.is_empty()) {
            self.make_durable(batch, written.then_some(bytes));
        }
        // Before the replies: a caller whose commit was refused may free the space of its large record.
        drop(holds);
        self.staged.clear();
        if self.lengths.len() > MAX_LENGTHS {
            self.lengths.clear();
        }
        // A refusal may depend on a commit of this batch. So it also waits for the disk, and fails if the disk fails.
        // A send fails if the caller no longer waits; its commit is still valid.
        for (reply, staged) in commits {
            let _ = reply.send(self.failed.clone().map_or(staged, |fault| Err(fault.into())));
        }
        for reply in syncs {
            let _ = reply.send(self.failed.clone().map_or(Ok(()), Err));
        }
        for until in pauses {
            // Nothing is ever sent. A caller that does not wait any more has dropped its end.
            let _ = until.blocking_recv();
        }
    }

    /// Writes the batch, if it has something, and makes it durable.
    fn make_durable(&mut self, mut batch: Batch, bytes: Option<usize>) {
        let applied = (|| {
            if let Some(bytes) = bytes {
                self.unclean = self.unclean.saturating_add(bytes);
                self.cleanings = 0;
                batch.commits.insert(keys::HEAD, keys::head_value(self.last));
                self.disk.write(batch, bytes)?;
            }
            self.disk.flush()
        })();
        // The thread never retries a failed sync: the kernel may have dropped the pages, and the next sync would then
        // report success. Only opening the store again shows which commits are on disk.
        let done = match applied {
            Ok(()) => self.disk.sync().map_err(|fault| (fault, false)),
            Err(fault) => Err((fault.clone(), fault.kind == FaultKind::NoSpace)),
        };
        match done {
            Ok(()) => {
                self.synced = self.last;
                self.durable.send_replace(Durable::Until(self.last.position));
            }
            Err((fault, recovers)) => self.fail(fault, recovers),
        }
    }

    /// Checks a commit and adds it to the batch, completely or not at all. Returns its position.
    fn stage(&mut self, plan: Plan, Batch { commits: batch, values }: &mut Batch) -> Result<Position, AppendError> {
        if let Some(fault) = &self.failed {
            return Err(fault.clone().into());
        }
        let log = plan.facts.as_ref().and_then(|facts| match facts.source {
            Source::Turn { turn, number } => Some((turn, number)),
            Source::Plugin | Source::Started | Source::Revoked | Source::Removal => None,
        });
        for &(turn, expected) in log.iter().chain(&plan.lengths) {
            if self.length_differs(turn, expected)? {
                return Err(AppendError::Conflict);
            }
        }
        for &(turn, commits) in &plan.turns_to_remove {
            if self.length_differs(turn, commits)? {
                return Err(AppendError::Changed);
            }
        }
        let (mut changes, mut unreferred) = (HashMap::with_capacity(plan.checked.len()), Vec::new());
        let mut late = 0;
        for (key, change) in plan.checked {
            if let Change::Log(turn, _) = &change
                && self.is_removed(*turn)?
            {
                continue;
            }
            let held = match changes.get(&key).or_else(|| self.staged.get(&key)) {
                Some(staged) => staged.clone(),
                None => self.held(&key)?,
            };
            let value = match change.check(held.as_deref(), &mut late)? {
                Staged::Unchanged => continue,
                Staged::Written(value) => Some(value),
                Staged::Removed => None,
            };
            unreferred.extend(held.and_then(|held| reference(&key, &held)));
            changes.insert(key, value);
        }
        let of_calls = self.of_calls(&plan.turns_to_remove)?;
        // No later step can refuse the commit.
        values.extend(plan.values);
        if let Some(facts) = plan.facts {
            self.last = self.last.then(facts.source, facts.record);
            let Head { position, hash } = self.last;
            batch.insert(keys::at(&[keys::AUDIT], position), keys::link(hash, facts.source));
            for (feed, value) in facts.feeds {
                insert(batch, keys::at(&feed, position), value);
            }
        }
        self.lengths.extend(plan.turns_to_remove.into_iter().map(|(turn, _)| (turn, REMOVED)));
        if let Some((turn, expected)) = log {
            self.lengths.insert(turn, expected + 1);
        }
        let stamp = self.last.position.0.to_be_bytes();
        for key in plan.removed.into_iter().chain(unreferred).chain(of_calls) {
            batch.remove(key);
        }
        for (key, value) in plan.plain {
            batch.insert(key, value);
        }
        for (key, mut value) in plan.stamped {
            value.iter_mut().zip(stamp).for_each(|(room, byte)| *room = byte);
            insert(batch, key, value);
        }
        for (key, value) in &changes {
            match value {
                Some(value) => insert(batch, key.clone(), [stamp.as_slice(), value].concat()),
                None => batch.remove(key.as_slice()),
            }
        }
        self.staged.extend(changes);
        Ok(self.last.position)
    }

    /// Reads the value of an entry from the tree, without its stamp.
    fn held(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreFault> {
        let Some(value) = self.disk.get(key)? else { return Ok(None) };
        match keys::stamped(&value) {
            Some((_, held)) => Ok(Some(held.to_vec())),
            None => Err(StoreFault::damaged("check a commit", format!("{} is damaged", keys::in_words(key)))),
        }
    }

    /// The keys of the logs and journals of these turns' calls, and of the entries that say that they refer to blobs.
    fn of_calls(&self, turns: &[(TurnId, u32)]) -> Result<Vec<Vec<u8>>, StoreFault> {
        let mut found = Vec::new();
        for prefix in turns.iter().flat_map(|(turn, _)| keys::OF_CALLS.map(|kind| keys::of_calls(kind, *turn))) {
            for key in self.disk.keys(&prefix)? {
                found.extend(self.held(&key)?.and_then(|value| reference(&key, &value)));
                found.push(key);
            }
            for (key, value) in self.staged.iter().filter(|(key, _)| key.starts_with(&prefix)) {
                found.extend(value.as_ref().and_then(|value| reference(key, value)));
                found.push(key.clone());
            }
        }
        Ok(found)
    }

    fn is_removed(&self, turn: TurnId) -> Result<bool, StoreFault> {
        Ok(self.lengths.get(&turn) == Some(&REMOVED) || self.disk.get(&keys::removed(turn))?.is_some())
    }

    fn length_differs(&self, turn: TurnId, expected: u32) -> Result<bool, StoreFault> {
        if let Some(length) = self.lengths.get(&turn) {
            return Ok(*length != expected);
        }
        if self.disk.get(&keys::log(turn, expected))?.is_some() {
            return Ok(true);
        }
        match expected.checked_sub(1) {
            // A removed turn has no log any more, and never begins again.
            None => Ok(self.disk.get(&keys::removed(turn))?.is_some()),
            Some(last) => Ok(self.disk.get(&keys::log(turn, last))?.is_none()),
        }
    }
}

/// The entry that says that a value, which has no stamp, refers to a blob.
fn reference(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    keys::unstamped_record(key, value).and_then(blobs::referred).map(|blob| keys::reference(blob, key))
}

/// Inserts a value. If it refers to a blob, an entry beside it says so.
pub(super) fn insert(batch: &mut sled::Batch, key: Vec<u8>, value: Vec<u8>) {
    if let Some(blob) = keys::record(&key, &value).and_then(blobs::referred) {
        batch.insert(keys::reference(blob, &key), Vec::new());
    }
    batch.insert(key, value);
}
