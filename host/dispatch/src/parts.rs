//! What a host is made of: the ports and the operator's settings.

use std::sync::Arc;

use domain::{OwnerId, turn::Rules};
use tokio::runtime;

use crate::ports::{Clock, Policy, Store, Subscribers, Tools};
use crate::quota::Quotas;
use crate::request::Bounds;

/// The ports and settings of a host.
pub struct Parts {
    /// Each part of the host gets only the ports of it that it uses.
    pub store: Arc<dyn Store>,
    pub tools: Arc<dyn Tools>,
    /// Decides whether a call may run, and whether a person is asked.
    pub policy: Arc<dyn Policy>,
    pub clock: Arc<dyn Clock>,
    /// Where guests run: threads of their own, so that a spinning guest delays only other guests.
    pub guests: runtime::Handle,
    /// This run of the host. Calls that it starts name it as their owner.
    pub owner: OwnerId,
    /// Makes a new id of 128 bits at each call. Ids sort by time.
    pub mint: Arc<dyn Fn() -> u128 + Send + Sync>,
    pub rules: Rules,
    /// Limits on requests.
    pub bounds: Bounds,
    pub quotas: Quotas,
    /// The webhooks that receive suspensions; `()` for none.
    pub subscribers: Arc<dyn Subscribers>,
}
