//! The turns that a nested turn is in. It begins and continues only while a call of each of them waits for the next one. They
//! are locked meanwhile, so none of them ends at the same time.

use std::sync::Arc;

use domain::{CallIndex, Turn, TurnId, nested::Parent};
use tokio::sync::MutexGuard;

use super::Pipeline;
use crate::ports::{Log, RowChange, StoreFault};
use crate::turns::{Entered, Slot};

/// The turns that a turn is nested in, the outermost first. None if a caller submitted it.
pub(crate) struct Ancestors {
    turns: Vec<Entered>,
    log: Arc<dyn Log>,
}

impl Pipeline {
    pub(crate) async fn ancestors(&self, parent: Option<&Parent>) -> Result<Ancestors, StoreFault> {
        let depth = parent.map_or(0, |parent| parent.depth);
        let (mut turns, mut next) = (Vec::new(), parent.map(|parent| parent.turn));
        for _ in 0..depth {
            let Some(id) = next else { break };
            let entered = self.turns.enter(id);
            let slot = entered.renewed(self.log.as_ref()).await?;
            next = slot.turn.as_ref().and_then(|(turn, _)| turn.parent.as_ref()).map(|parent| parent.turn);
            drop(slot);
            turns.push(entered);
        }
        // Always locked in this order, so two nested turns never wait for each other.
        turns.reverse();
        Ok(Ancestors { turns, log: self.log.clone() })
    }
}

impl Ancestors {
    /// Locks them. `None`: one of them has ended or does not wait for the next one, so nothing of `turn` starts any more.
    pub(crate) async fn awaiting(&self, turn: TurnId) -> Result<Option<Vec<MutexGuard<'_, Slot>>>, StoreFault> {
        let next = self.turns.iter().skip(1).map(Entered::id).chain([turn]);
        let mut slots = Vec::with_capacity(self.turns.len());
        for (ancestor, next) in self.turns.iter().zip(next) {
            let slot = ancestor.renewed(self.log.as_ref()).await?;
            if !slot.turn.as_ref().is_some_and(|(turn, _)| turn.awaited().any(|nested| nested.turn == next)) {
                return Ok(None);
            }
            slots.push(slot);
        }
        Ok(Some(slots))
    }

    /// Rows that refuse a commit if another host has committed to one of the locked turns meanwhile.
    pub(crate) fn unchanged(locked: &[MutexGuard<'_, Slot>]) -> Vec<RowChange> {
        let known = locked.iter().filter_map(|slot| slot.turn.as_ref());
        known.map(|(turn, commits)| RowChange::Length { turn: turn.id, commits: *commits }).collect()
    }

    /// The outermost turn among the locked ones, and its call that waits for the next one, which may be `turn`.
    pub(crate) fn outermost<'a>(
        &self,
        locked: &'a [MutexGuard<'_, Slot>],
        turn: TurnId,
    ) -> Option<(&'a Turn, CallIndex)> {
        let (outermost, _) = locked.first()?.turn.as_ref()?;
        let next = self.turns.get(1).map_or(turn, Entered::id);
        let (call, ..) = outermost.pending().find(|(.., open)| open.nested().is_some_and(|it| it.turn == next))?;
        Some((outermost, call))
    }
}
