//! The table `[approvals]`: what approvers may allow beforehand, and how long a no is remembered.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use domain::{Rules, Span, StandingBounds};
use schemars::JsonSchema;
use serde::Deserialize;

/// What goes with the answers of people.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsTable {
    /// Whether an approver may allow later calls beforehand together with an approval: of the same caller, tool and
    /// component, with pinned arguments. Default: true.
    pub standing: Option<bool>,
    /// For how long at most, in milliseconds. Default: 86400000, a day.
    pub standing_max_ms: Option<NonZeroU64>,
    /// How often at most. Default: 100.
    pub standing_max_uses: Option<NonZeroU32>,
    /// How many of those that can still be used one caller's calls have at once, at most. Default: 1000.
    pub standing_max_active: Option<NonZeroU32>,
    /// How many bytes of arguments those have, at most. Default: 16777216, 16 MiB.
    pub standing_max_bytes: Option<NonZeroUsize>,
    /// How long after a person denied a call an identical one of the same conversation ends denied without anybody being asked
    /// again, in milliseconds. 0: people are asked again at once, unless both are of one turn. Default: 600000, ten minutes.
    pub denied_again_ms: Option<u64>,
}

impl ApprovalsTable {
    /// What an approver may allow beforehand; `None`: nothing.
    #[must_use]
    pub fn standing(&self) -> Option<StandingBounds> {
        let others = Rules::default().standing?;
        let time = self.standing_max_ms.map_or(others.time, |most| Span::from_millis(most.get()));
        let uses = self.standing_max_uses.map_or(others.uses, NonZeroU32::get);
        self.standing.unwrap_or(true).then_some(StandingBounds { time, uses })
    }

    /// How many one caller's calls have at once.
    #[must_use]
    pub fn standing_active(&self) -> u32 {
        self.standing_max_active.map_or(Rules::default().standing_active, NonZeroU32::get)
    }

    /// How many bytes of arguments those have.
    #[must_use]
    pub fn standing_bytes(&self) -> usize {
        self.standing_max_bytes.map_or(Rules::default().standing_bytes, NonZeroUsize::get)
    }

    /// How long a no is remembered.
    #[must_use]
    pub fn denied_again(&self) -> Span {
        self.denied_again_ms.map_or(Rules::default().denied_again, Span::from_millis)
    }
}
