//! What each part of the host adds to a commit before it is appended. All of it is derived from the turn, and is
//! written together with the events: a kill loses none of it.

use domain::{Event, Turn};

use super::Pipeline;
use crate::ports::Index;
use crate::{index, outbox};

impl Pipeline {
    /// The list of contributors. Each is a pure function of the turn without the events, if there was one, the events,
    /// and the turn with them.
    pub(super) fn contributions(&self, before: Option<&Turn>, events: &[Event], after: &Turn) -> Vec<Index> {
        let mut changes = index::changes(before, events, after);
        changes.extend(outbox::deliveries(&changes, self.parts.subscribers.as_ref(), before, after));
        changes
    }
}
