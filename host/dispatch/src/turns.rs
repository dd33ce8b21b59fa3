//! The turns in memory. A turn is here while a guest of it runs or an input is decided, and from its end until those
//! who waited have read it. A turn whose calls all wait is only in the store, also while somebody waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard as SyncMutexGuard, PoisonError};

use domain::{CallIndex, Turn, TurnId};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, watch};

use crate::committer::{Observer, TurnChange};
use crate::ports::{Commit, Loaded, Log, StoreFault};
use crate::request::Until;
use crate::stop::RunningCall;

/// The turns in memory.
#[derive(Default)]
pub(crate) struct Turns {
    entries: Mutex<HashMap<TurnId, Arc<Entry>>>,
    /// Whether other hosts may commit to these turns. Then each read loads the turn.
    is_shared: bool,
}

#[derive(Default)]
pub(crate) struct Entry {
    /// Inputs to one turn are decided one after the other. Of two processes, the one that appends first wins.
    slot: AsyncMutex<Slot>,
    /// The status after each commit, for tasks that wait for one. `None`: there was no commit since the turn is in memory.
    changed: watch::Sender<Option<TurnStatus>>,
}

/// The part of a turn's state that a task waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnStatus {
    is_ended: bool,
    is_running: bool,
}

impl TurnStatus {
    pub(crate) fn of(turn: &Turn) -> Self {
        Self { is_ended: turn.is_ended(), is_running: turn.is_running() }
    }

    pub(crate) fn has_reached(self, until: Until) -> bool {
        self.is_ended || (until == Until::Quiet && !self.is_running)
    }
}

/// The state of a turn in memory.
#[derive(Default)]
pub(crate) struct Slot {
    /// The turn and the number of commits that made it; `None` until it is loaded, and after a conflict.
    pub(crate) turn: Option<(Turn, u32)>,
    /// The guests that this process runs for it, by call and attempt.
    pub(crate) running: HashMap<(CallIndex, u32), RunningCall>,
    /// The run whose end is being decided. It is no longer running when its end is committed.
    pub(crate) ending: Option<(CallIndex, u32)>,
}

/// Keeps a turn in memory while it is held.
pub(crate) struct Entered {
    turns: Arc<Turns>,
    id: TurnId,
    /// Taken only by `drop`.
    entry: Option<Arc<Entry>>,
}

impl Turns {
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { entries: Mutex::default(), is_shared }
    }

    /// A turn that is in memory.
    pub(crate) fn known(self: &Arc<Self>, id: TurnId) -> Option<Entered> {
        let entry = self.lock().get(&id).cloned()?;
        Some(Entered { turns: self.clone(), id, entry: Some(entry) })
    }

    /// All turns that are in memory.
    pub(crate) fn all(self: &Arc<Self>) -> Vec<Entered> {
        let entered =
            |(id, entry): (&TurnId, &Arc<Entry>)| Entered { turns: self.clone(), id: *id, entry: Some(entry.clone()) };
        self.lock().iter().map(entered).collect()
    }

    fn lock(&self) -> SyncMutexGuard<'_, HashMap<TurnId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings a turn into memory, empty if it was not there.
    pub(crate) fn enter(self: &Arc<Self>, id: TurnId) -> Entered {
        let entry = self.lock().entry(id).or_default().clone();
        Entered { turns: self.clone(), id, entry: Some(entry) }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

impl Observer for Turns {
    /// Wakes the tasks that wait for a commit.
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        let Some(change) = change else { return };
        if let Some(entry) = self.lock().get(&change.after.id) {
            entry.changed.send_replace(Some(TurnStatus::of(change.after)));
        }
    }
}

impl Entered {
    pub(crate) fn id(&self) -> TurnId {
        self.id
    }

    /// The state of the turn, locked while the guard is held.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, Slot> {
        self.entry().slot.lock().await
    }

    /// As [`Entered::lock`], with the turn loaded. It is absent if the store never had it or has removed it.
    pub(crate) async fn loaded(&self, log: &dyn Log) -> Result<MutexGuard<'_, Slot>, StoreFault> {
        let mut slot = self.lock().await;
        slot.load(self.id, log).await?;
        Ok(slot)
    }

    /// As [`Entered::loaded`], with all commits of other hosts.
    pub(crate) async fn renewed(&self, log: &dyn Log) -> Result<MutexGuard<'_, Slot>, StoreFault> {
        let mut slot = self.lock().await;
        self.renew(&mut slot, log).await?;
        Ok(slot)
    }

    /// Loads a locked turn, with all commits of other hosts.
    pub(crate) async fn renew(&self, slot: &mut Slot, log: &dyn Log) -> Result<Loaded<()>, StoreFault> {
        self.outdated(slot);
        slot.load(self.id, log).await
    }

    /// Makes the next use of a locked turn load it again, if another host may have committed to it. Nobody commits to a turn that has
    /// ended.
    pub(crate) fn outdated(&self, slot: &mut Slot) {
        if self.turns.is_shared {
            slot.turn.take_if(|(turn, _)| !turn.is_ended());
        }
    }

    /// Wakes the tasks that wait for a commit of this turn, with its state after a commit of another host.
    pub(crate) fn changed(&self, turn: &Turn) {
        self.entry().changed.send_replace(Some(TurnStatus::of(turn)));
    }

    /// The turn as it is now.
    pub(crate) async fn read(&self, log: &dyn Log) -> Result<Loaded<Turn>, StoreFault> {
        let mut slot = self.lock().await;
        let loaded = self.renew(&mut slot, log).await?;
        Ok(match (loaded, &slot.turn) {
            (Loaded::Removed(tombstone), _) => Loaded::Removed(tombstone),
            (Loaded::Found(()), Some((turn, _))) => Loaded::Found(turn.clone()),
            (Loaded::Found(()) | Loaded::Absent, _) => Loaded::Absent,
        })
    }

    /// Follows the commits.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<TurnStatus>> {
        self.entry().changed.subscribe()
    }

    fn entry(&self) -> &Entry {
        #[expect(clippy::expect_used, reason = "only `drop` takes it")]
        self.entry.as_ref().expect("held until it is dropped")
    }
}

impl Entry {
    /// Takes the turn out of memory, if no guest of it runs and nothing is decided. A turn that has ended stays for the tasks
    /// that have waited for it.
    fn unload(&self) -> Option<(Turn, u32)> {
        let mut slot = self.slot.try_lock().ok()?;
        let waits = |turn: &Turn| slot.running.is_empty() && !turn.is_ended();
        if slot.turn.as_ref().is_some_and(|(turn, _)| waits(turn)) { slot.turn.take() } else { None }
    }
}

impl Slot {
    /// Loads the turn from the store, unless it is in memory.
    pub(crate) async fn load(&mut self, id: TurnId, log: &dyn Log) -> Result<Loaded<()>, StoreFault> {
        if self.turn.is_some() {
            return Ok(Loaded::Found(()));
        }
        let loaded = match log.load(id).await? {
            Loaded::Found(loaded) => loaded,
            Loaded::Removed(tombstone) => return Ok(Loaded::Removed(tombstone)),
            Loaded::Absent => return Ok(Loaded::Absent),
        };
        let turn = Turn::replay(&loaded.events).ok_or_else(|| {
            StoreFault::damaged("load a turn", format!("the log of {id} does not begin with the start of a turn"))
        })?;
        self.turn = Some((turn, loaded.version));
        Ok(Loaded::Found(()))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut turns = self.turns.lock();
        let unloaded = self.entry.as_ref().and_then(|entry| entry.unload());
        // Dropped while the map is locked. Otherwise two that are dropped at the same time could each see the other, and
        // nobody would remove the entry.
        self.entry = None;
        if turns.get(&self.id).is_some_and(|entry| Arc::strong_count(entry) == 1) {
            turns.remove(&self.id);
        }
        drop(turns);
        drop(unloaded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_leaves_memory_with_its_last_holder() {
        let turns = Arc::new(Turns::default());
        for round in 0..2_000 {
            let id = TurnId::from_bits(round);
            let holders = [turns.enter(id), turns.enter(id)];
            std::thread::scope(|scope| {
                for holder in holders {
                    scope.spawn(move || drop(holder));
                }
            });
        }
        assert_eq!(turns.len(), 0);
    }
}
