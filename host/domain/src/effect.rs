//! Effects: actions that a turn's state requires.

use crate::{CallIndex, Timestamp};

/// An action that this state requires. The host that performs it makes sure that it does so once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The guest of this call runs.
    Run { call: CallIndex, attempt: u32 },
}

/// When a turn next needs attention without an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The time of an expiry, the end of a grace period, or the end of a lease.
    pub at: Timestamp,
    /// Whether a call of it is running. A restarted host handles such a turn at once.
    pub running: bool,
}
