//! The values that every part of a running host needs: tools, policy, clock and settings. The ports of the store are not here:
//! each part has only those that it uses.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::{
    Call, OwnerId,
    turn::{Context, TurnSettings},
};
use tokio::runtime;

use crate::plan;
use crate::ports::{Clock, Disk, Policy, Principals, Tools};
use crate::request::Bounds;

pub(crate) struct Shared {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) principals: Arc<dyn Principals>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) guest_runtime: runtime::Handle,
    pub(crate) owner: OwnerId,
    pub(crate) mint: Arc<dyn Fn() -> u128 + Send + Sync>,
    pub(crate) settings: TurnSettings,
    pub(crate) bounds: Bounds,
    /// Whether the host takes no turns and answers any more.
    pub(crate) is_draining: AtomicBool,
}

impl Shared {
    /// Decides with a fresh context.
    pub(crate) fn with_context<T>(&self, decide: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let mut mint = || (self.mint)();
        let now = self.clock.now();
        let about = |call: &Call| plan::about(self.tools.as_ref(), call);
        decide(&mut Context { now, owner: self.owner, settings: &self.settings, mint: &mut mint, about: &about })
    }
}
