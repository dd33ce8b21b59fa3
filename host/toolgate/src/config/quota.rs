//! The table `[quota]`: every bound of [`dispatch::Quota`], each with its unit in its name, for everybody and for single
//! principals.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use dispatch::{Quota, Quotas};
use domain::PrincipalId;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Parsed;

/// What every principal may have at the host at once, and what differs for single ones.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotasTable {
    /// Turns that have not ended. Beyond it a submission is refused as `busy`. Default: 10000.
    pub open_turns: Option<NonZeroUsize>,
    /// What those turns were submitted with: arguments, names of tools, contexts. Default: 268435456, 256 MiB.
    pub open_bytes: Option<NonZeroUsize>,
    /// Calls that run at once; more wait, first come, first served. Default: 64.
    pub running_calls: Option<NonZeroUsize>,
    /// Calls that wait for those to end. Beyond it a submission is refused as `busy`. Default: 1024.
    pub waiting_calls: Option<usize>,
    /// Event streams that are open. Default: 64.
    pub event_streams: Option<NonZeroUsize>,
    /// HTTP requests that are being answered, event streams aside. Default: 256.
    pub requests: Option<NonZeroUsize>,
    /// What differs for single principals, by name.
    #[schemars(with = "BTreeMap<String, QuotaTable>")]
    pub principal: BTreeMap<Parsed<PrincipalId>, QuotaTable>,
}

/// What one principal may have at the host at once. What is not said is as for everybody.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QuotaTable {
    /// Turns that have not ended.
    pub open_turns: Option<NonZeroUsize>,
    /// What those turns were submitted with, in bytes.
    pub open_bytes: Option<NonZeroUsize>,
    /// Calls that run at once.
    pub running_calls: Option<NonZeroUsize>,
    /// Calls that wait for those to end.
    pub waiting_calls: Option<usize>,
    /// Event streams that are open.
    pub event_streams: Option<NonZeroUsize>,
    /// HTTP requests that are being answered, event streams aside.
    pub requests: Option<NonZeroUsize>,
}

impl QuotasTable {
    /// The quotas that it makes.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        let Self { open_turns, open_bytes, running_calls, waiting_calls, event_streams, requests, principal } = self;
        let (open_turns, open_bytes, running_calls) = (*open_turns, *open_bytes, *running_calls);
        let (waiting_calls, event_streams, requests) = (*waiting_calls, *event_streams, *requests);
        let each = QuotaTable { open_turns, open_bytes, running_calls, waiting_calls, event_streams, requests };
        let each = each.over(Quota::default());
        let named = principal.iter().map(|(name, table)| (name.0.clone(), table.over(each))).collect();
        Quotas { each, named }
    }
}

impl QuotaTable {
    fn over(&self, others: Quota) -> Quota {
        let size = |own: Option<NonZeroUsize>, other| own.map_or(other, NonZeroUsize::get);
        Quota {
            open_turns: size(self.open_turns, others.open_turns),
            open_bytes: size(self.open_bytes, others.open_bytes),
            running_calls: size(self.running_calls, others.running_calls),
            waiting_calls: self.waiting_calls.unwrap_or(others.waiting_calls),
            event_streams: size(self.event_streams, others.event_streams),
            requests: size(self.requests, others.requests),
        }
    }
}
