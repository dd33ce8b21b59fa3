//! What is owed to the world, derived from a turn's state.

use crate::{CallIndex, Timestamp};

/// Something that the host must be doing in this state. Performing one twice is prevented by whoever performs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The guest of this call runs.
    Run {
        /// Which call.
        call: CallIndex,
        /// Which attempt at it.
        attempt: u32,
    },
}

/// When a turn next needs attention by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// At this time: an expiry, the end of a grace, the end of a lease.
    pub at: Timestamp,
    /// Whether a call of it is running, so that a restarted host must look at it at once.
    pub running: bool,
}
