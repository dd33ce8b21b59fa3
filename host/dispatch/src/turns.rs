//! The turns that this process is busy with. A turn is here while a guest of it runs, while somebody waits for it, or
//! while an input is decided; a turn that only waits for the outside is in the store alone and costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{CallIndex, Turn, TurnId};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::AbortHandle;

/// The turns in memory.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<TurnId, Arc<Entry>>>);

/// One turn in memory.
pub(crate) struct Entry {
    /// Inputs to one turn are decided one after the other; the store settles what another process decides.
    pub(crate) slot: AsyncMutex<Slot>,
    /// Counts the commits that this process made, for those who wait for one.
    pub(crate) changed: watch::Sender<u64>,
}

/// What is known of a turn.
#[derive(Default)]
pub(crate) struct Slot {
    /// The turn and the number of commits that made it; `None` until it is loaded, and after a conflict.
    pub(crate) turn: Option<(Turn, u32)>,
    /// The guests that this process runs for it, by call and attempt.
    pub(crate) running: HashMap<(CallIndex, u32), AbortHandle>,
}

/// Keeps a turn in memory while it is held.
pub(crate) struct Entered {
    turns: Arc<Turns>,
    id: TurnId,
    entry: Arc<Entry>,
}

impl Turns {
    /// Brings a turn into memory, empty if it was not there.
    pub(crate) fn enter(self: &Arc<Self>, id: TurnId) -> Entered {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = turns.entry(id).or_insert_with(|| {
            Arc::new(Entry { slot: AsyncMutex::new(Slot::default()), changed: watch::Sender::new(0) })
        });
        Entered { turns: self.clone(), id, entry: entry.clone() }
    }

    /// How many turns are in memory.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl std::ops::Deref for Entered {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entry
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut turns = self.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two owners: the map and this. Nobody else can become one while the map is locked.
        if Arc::strong_count(&self.entry) == 2 {
            turns.remove(&self.id);
        }
    }
}
