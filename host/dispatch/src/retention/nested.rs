//! Nested turns are kept until the turns around them have ended.

use domain::Turn;

use super::TurnRemover;
use crate::ports::{FaultKind, Loaded, StoreFault};

impl TurnRemover {
    /// Whether a turn is nested in one that has not ended. A damaged one counts as such.
    pub(super) async fn is_in_open(&self, turn: &Turn) -> Result<bool, StoreFault> {
        let mut next = turn.parent.as_ref().map(|parent| parent.turn);
        for _ in 0..turn.depth() {
            let Some(id) = next else { break };
            let loaded = match self.log.load(id).await {
                Ok(Loaded::Found(loaded)) => loaded,
                Ok(Loaded::Removed(_) | Loaded::Absent) => break,
                Err(fault) if fault.kind == FaultKind::Damaged => return Ok(true),
                Err(fault) => return Err(fault),
            };
            let Some(ancestor) = Turn::replay(&loaded.events).filter(Turn::is_ended) else { return Ok(true) };
            next = ancestor.parent.as_ref().map(|parent| parent.turn);
        }
        Ok(false)
    }
}
