//! The table `[quota]`: every limit of [`dispatch::Quota`], for all principals and for single ones.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use dispatch::{Quota, Quotas};
use domain::PrincipalId;
use domain::rate::Rate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Parsed;

/// Limits on every principal, and other limits on single ones.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasTable {
    /// The number of open turns. Beyond it, submissions are refused as `busy`. Default: 10000.
    pub open_turns: Option<NonZeroUsize>,
    /// The size of the open turns in bytes: arguments, names of tools, contexts, origins, results. Parsed and checked
    /// requests may take as much memory again; others wait. Default: 268435456, 256 MiB.
    pub open_bytes: Option<NonZeroUsize>,
    /// The number of calls that run at once. Others wait in order. Default: 64.
    pub running_calls: Option<NonZeroUsize>,
    /// The number of waiting calls. Beyond it, submissions are refused as `busy`. Default: 1024.
    pub waiting_calls: Option<usize>,
    /// The number of new turns per second, after the burst is used. Beyond it, submissions are refused as `busy`. Ephemeral
    /// turns do not count. Default: 1000.
    pub turns_per_second: Option<NonZeroU64>,
    /// The number of new turns at once after a pause. Default: 60000.
    pub turns_burst: Option<NonZeroU64>,
    /// The size of new turns per second in bytes, after the burst is used. Results of their calls count when they arrive.
    /// Default: 8388608, 8 MiB.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The size of new turns at once after a pause, in bytes. Default: 268435456, 256 MiB.
    pub bytes_burst: Option<NonZeroU64>,
    /// The size of the stored records of all turns in bytes, also of those that have ended, until `[retention]` removes
    /// them. Beyond it, submissions are refused as `busy`. Default: 68719476736, 64 GiB.
    pub kept_bytes: Option<NonZeroU64>,
    /// The number of open event streams. Default: 64.
    pub event_streams: Option<NonZeroUsize>,
    /// The number of in-flight HTTP requests, without event streams. Default: 256.
    pub requests: Option<NonZeroUsize>,
    /// Other limits on single principals, by name.
    #[schemars(with = "BTreeMap<String, QuotaTable>")]
    pub principal: BTreeMap<Parsed<PrincipalId>, QuotaTable>,
}

/// Limits on one principal. Missing keys are as for all principals.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaTable {
    /// The number of open turns.
    pub open_turns: Option<NonZeroUsize>,
    /// The size of the open turns in bytes.
    pub open_bytes: Option<NonZeroUsize>,
    /// The number of calls that run at once.
    pub running_calls: Option<NonZeroUsize>,
    /// The number of waiting calls.
    pub waiting_calls: Option<usize>,
    /// The number of new turns per second.
    pub turns_per_second: Option<NonZeroU64>,
    /// The number of new turns at once after a pause.
    pub turns_burst: Option<NonZeroU64>,
    /// The size of new turns per second in bytes.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The size of new turns at once after a pause, in bytes.
    pub bytes_burst: Option<NonZeroU64>,
    /// The size of the stored records of all turns in bytes.
    pub kept_bytes: Option<NonZeroU64>,
    /// The number of open event streams.
    pub event_streams: Option<NonZeroUsize>,
    /// The number of in-flight HTTP requests, without event streams.
    pub requests: Option<NonZeroUsize>,
}

impl QuotasTable {
    /// The quotas of this table.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        let each = QuotaTable {
            open_turns: self.open_turns,
            open_bytes: self.open_bytes,
            running_calls: self.running_calls,
            waiting_calls: self.waiting_calls,
            turns_per_second: self.turns_per_second,
            turns_burst: self.turns_burst,
            bytes_per_second: self.bytes_per_second,
            bytes_burst: self.bytes_burst,
            kept_bytes: self.kept_bytes,
            event_streams: self.event_streams,
            requests: self.requests,
        };
        let each = each.over(Quota::default());
        let named = self.principal.iter().map(|(name, table)| (name.0.clone(), table.over(each))).collect();
        Quotas { each, named }
    }
}

impl QuotaTable {
    fn over(&self, others: Quota) -> Quota {
        let size = |own: Option<NonZeroUsize>, other| own.map_or(other, NonZeroUsize::get);
        let rate = |per_second: Option<NonZeroU64>, burst: Option<NonZeroU64>, other: Rate| Rate {
            per_second: per_second.map_or(other.per_second, NonZeroU64::get),
            burst: burst.map_or(other.burst, NonZeroU64::get),
        };
        Quota {
            open_turns: size(self.open_turns, others.open_turns),
            open_bytes: size(self.open_bytes, others.open_bytes),
            running_calls: size(self.running_calls, others.running_calls),
            waiting_calls: self.waiting_calls.unwrap_or(others.waiting_calls),
            turn_rate: rate(self.turns_per_second, self.turns_burst, others.turn_rate),
            byte_rate: rate(self.bytes_per_second, self.bytes_burst, others.byte_rate),
            kept_bytes: self.kept_bytes.map_or(others.kept_bytes, NonZeroU64::get),
            event_streams: size(self.event_streams, others.event_streams),
            requests: size(self.requests, others.requests),
        }
    }
}
