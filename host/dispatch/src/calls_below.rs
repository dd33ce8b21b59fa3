//! How many calls are below a call of a caller: those of its nested turns, of their nested turns, and so on.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::{Call, CallIndex, Turn, TurnId};

use crate::committer::{Observer, TurnChange};
use crate::ports::{Commit, Log, StoreFault};
use crate::turns::Slot;

/// The numbers of calls below the calls of turns that have not ended. They are counted in the store once, then in memory, unless other
/// hosts may add to them.
pub(crate) struct CallsBelow {
    known: Mutex<HashMap<TurnId, HashMap<CallIndex, usize>>>,
    is_shared: bool,
}

impl CallsBelow {
    pub(crate) fn new(is_shared: bool) -> Self {
        Self { known: Mutex::default(), is_shared }
    }

    /// The number below a call of a locked turn that a caller submitted.
    pub(crate) async fn count(&self, outermost: &Turn, call: CallIndex, log: &dyn Log) -> Result<usize, StoreFault> {
        if let Some(known) = self.lock().get(&outermost.id).and_then(|calls| calls.get(&call)) {
            return Ok(*known);
        }
        let counted = counted(outermost, call, log).await?;
        self.set(outermost.id, call, counted);
        Ok(counted)
    }

    pub(crate) fn set(&self, outermost: TurnId, call: CallIndex, count: usize) {
        if !self.is_shared {
            self.lock().entry(outermost).or_default().insert(call, count);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, HashMap<CallIndex, usize>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for CallsBelow {
    fn committed(&self, _: &Commit, change: Option<&TurnChange<'_>>) {
        if let Some(ended) = change.map(|change| change.after).filter(|turn| turn.is_ended()) {
            self.lock().remove(&ended.id);
        }
    }
}

async fn counted(outermost: &Turn, call: CallIndex, log: &dyn Log) -> Result<usize, StoreFault> {
    let (mut count, mut next) = (0, nested(outermost.calls.get(call.get())));
    while let Some(id) = next.pop() {
        let mut slot = Slot::default();
        slot.load(id, log).await?;
        // A nested turn that was refused, or is not submitted yet, has no log.
        let Some((turn, _)) = slot.turn else { continue };
        count += turn.calls.len();
        next.extend(nested(&turn.calls));
    }
    Ok(count)
}

fn nested<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Vec<TurnId> {
    calls.into_iter().flat_map(Call::nested).map(|nested| nested.turn).collect()
}
