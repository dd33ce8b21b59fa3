//! Turns in turns: the depth of a turn, the turns that it waits for, and what its parent gets.

use super::{Turn, TurnState};
use crate::{
    Json, Outcome,
    nested::{self, NestedTurn},
};

impl Turn {
    /// How deep it is nested: 0 if a caller submitted it.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.parent.as_ref().map_or(0, |parent| parent.depth)
    }

    /// The nested turns that its calls wait for.
    pub fn awaited(&self) -> impl Iterator<Item = &NestedTurn> {
        self.pending().filter_map(|(.., open)| open.nested())
    }

    /// The results of a nested turn that has ended, in the order of its calls: a JSON array of what a model would see. A result
    /// or failure that the host does not control is marked.
    #[must_use]
    pub fn nested_results(&self) -> Option<Json> {
        let TurnState::Ended(..) = self.state else { return None };
        let results = self.calls.iter().filter_map(|call| {
            let outcome = call.outcome()?;
            let is_trusted = match outcome {
                Outcome::Ok { trusted, .. } => *trusted,
                Outcome::Failed(_) => !call.is_outside(),
                _ => true,
            };
            Some(nested::result(outcome, call.has_started(), is_trusted))
        });
        Some(Json::unchecked(format!("[{}]", results.collect::<Vec<_>>().join(","))))
    }
}
