//! The removal of ended turns, and why it happened.

use std::fmt;

use crate::{Span, Timestamp, TurnId};

/// The rule of the operator that removed a turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemovalRule {
    /// Ended turns are kept for this long.
    Age { kept: Span },
    /// Ended turns with a call of this tool are kept for this long.
    Tool { tool: String, kept: Span },
    /// The ended turns may have this many bytes together. The oldest are removed first.
    Bytes { kept: u64 },
    /// No rule: records of the turn were damaged, and `toolgate store salvage` left the turn out.
    Salvage,
}

impl fmt::Display for RemovalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age { kept } => write!(f, "ended turns are kept for {}", InDays(*kept)),
            Self::Tool { tool, kept } => write!(f, "ended turns with a call of {tool} are kept for {}", InDays(*kept)),
            Self::Salvage => f.write_str("records of the turn were damaged when the store was salvaged"),
            Self::Bytes { kept } => write!(f, "at most {kept} bytes of ended turns are kept"),
        }
    }
}

/// Whole days as days, anything else as seconds.
struct InDays(Span);

impl fmt::Display for InDays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        match self.0.millis() {
            DAY => f.write_str("1 day"),
            millis if millis > 0 && millis.is_multiple_of(DAY) => write!(f, "{} days", millis / DAY),
            millis => write!(f, "{} seconds", millis / 1000),
        }
    }
}

/// The contents of ended turns were removed. This event belongs to no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub at: Timestamp,
    pub rule: RemovalRule,
    /// The size of the removed records.
    pub bytes: u64,
    pub turns: Vec<RemovedTurn>,
    /// The positions of lost commits that belong to no turn. Only a salvage loses any.
    pub lost: Vec<u64>,
}

/// A turn whose contents were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedTurn {
    pub turn: TurnId,
    /// The number of commits in its log.
    pub commits: u32,
}
