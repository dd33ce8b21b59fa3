//! The table `[approvals]`: limits on standing approvals, and how long a denial is remembered.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};

use domain::{Span, standing::StandingBounds, turn::TurnSettings};
use schemars::JsonSchema;
use serde::Deserialize;

/// Limits on standing approvals, and how long a denial is remembered.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsTable {
    /// Whether an approver can also approve later calls of the same caller, tool and component with pinned arguments: a
    /// standing approval. Default: true.
    pub standing: Option<bool>,
    /// How long a standing approval can last, in milliseconds. Default: 86400000, a day.
    pub standing_max_ms: Option<NonZeroU64>,
    /// How often a standing approval can be used. Default: 100.
    pub standing_max_uses: Option<NonZeroU32>,
    /// The maximal number of usable standing approvals for one caller. Default: 1000.
    pub standing_max_active: Option<NonZeroU32>,
    /// The maximal size of their arguments together, in bytes. Default: 16777216, 16 MiB.
    pub standing_max_bytes: Option<NonZeroUsize>,
    /// How long a denial also denies identical calls of the same conversation, in milliseconds. With 0 it denies only identical
    /// calls of the same turn. Default: 600000, ten minutes.
    pub denied_again_ms: Option<u64>,
    /// The maximal size of all denials that are remembered for this, in bytes. Each counts as the id of its conversation and 64
    /// bytes. Beyond it, the host forgets the oldest ones, once an hour, and asks about identical calls again. Default:
    /// 16777216, 16 MiB.
    pub denied_again_bytes: Option<NonZeroUsize>,
}

impl ApprovalsTable {
    /// The limits on a standing approval. `None` if they are switched off.
    #[must_use]
    pub fn standing(&self) -> Option<StandingBounds> {
        let default = TurnSettings::default().standing?;
        let time = self.standing_max_ms.map_or(default.time, |time| Span::from_millis(time.get()));
        let uses = self.standing_max_uses.map_or(default.uses, NonZeroU32::get);
        self.standing.unwrap_or(true).then_some(StandingBounds { time, uses })
    }

    /// The maximal number of standing approvals for one caller.
    #[must_use]
    pub fn standing_active(&self) -> u32 {
        self.standing_max_active.map_or(TurnSettings::default().standing_active, NonZeroU32::get)
    }

    /// The maximal size of their arguments together, in bytes.
    #[must_use]
    pub fn standing_bytes(&self) -> usize {
        self.standing_max_bytes.map_or(TurnSettings::default().standing_bytes, NonZeroUsize::get)
    }

    /// How long a denial is remembered.
    #[must_use]
    pub fn denied_again(&self) -> Span {
        self.denied_again_ms.map_or(TurnSettings::default().denied_again, Span::from_millis)
    }

    /// The maximal size of remembered denials, in bytes.
    #[must_use]
    pub fn denied_bytes(&self) -> usize {
        self.denied_again_bytes.map_or(TurnSettings::default().denied_bytes, NonZeroUsize::get)
    }
}
