//! The ports and settings that make up a host.

use std::sync::Arc;

use domain::{OwnerId, turn::TurnSettings};
use tokio::runtime;

use crate::ports::{Clock, Disk, Policy, Principals, Store, Subscribers, Tools};
use crate::quota::Quotas;
use crate::request::Bounds;
use crate::retention::RetentionRules;
use crate::run_logs::LogBounds;

/// The ports and settings of a host.
pub struct Parts {
    /// Each part of the host gets only the store's ports that it uses.
    pub store: Arc<dyn Store>,
    pub tools: Arc<dyn Tools>,
    /// Decides whether a call may run and whether a person must approve it.
    pub policy: Arc<dyn Policy>,
    /// Knows who was revoked; `()` if nobody ever is.
    pub principals: Arc<dyn Principals>,
    pub clock: Arc<dyn Clock>,
    /// The disk that the store writes to; `()` for none.
    pub disk: Arc<dyn Disk>,
    /// The runtime for guests. It has its own threads, so that a busy guest delays only other guests.
    pub guests: runtime::Handle,
    /// The id of this run of the host. It is the owner of the calls that it starts.
    pub owner: OwnerId,
    /// Returns a new 128-bit id at each call. Ids sort by creation time.
    pub mint: Arc<dyn Fn() -> u128 + Send + Sync>,
    pub settings: TurnSettings,
    pub bounds: Bounds,
    pub quotas: Quotas,
    pub retention: RetentionRules,
    /// How much of the log of each run of a call is kept.
    pub logs: LogBounds,
    /// The webhooks that receive suspensions; `()` for none.
    pub subscribers: Arc<dyn Subscribers>,
}
