//! The result of a removal.

use std::collections::{BTreeMap, BTreeSet};

use domain::{TurnId, retention::RemovalRule};

/// The result of a removal, or of a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The removed turns, by rule.
    pub removed: BTreeMap<RemovalRule, Amount>,
    /// The turns that stay without the logs of their calls, and the size of these logs.
    pub logs: Amount,
    /// The turns that stay without the journals of their calls, and the size of these journals.
    pub journals: Amount,
    /// Turns that a rule would remove, and that a hold keeps.
    pub held: Amount,
    /// Turns that a rule would remove, and that wait for a delivery to a webhook.
    pub undelivered: Amount,
    /// The bytes above [`RetentionRules::bytes`](super::RetentionRules::bytes) that stay, because the turns are too young, wait for a delivery or are nested
    /// in an open turn.
    pub above: u64,
    /// The turns that a dry run counted in `removed`, while it runs.
    pub(super) counted: BTreeSet<TurnId>,
}

/// Turns, and the size of their records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub turns: u64,
    pub bytes: u64,
}

impl Amount {
    pub(super) fn add(&mut self, bytes: u64) {
        self.turns += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}
