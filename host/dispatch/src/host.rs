//! A running host: its parts and its background tasks.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::alarm::Alarm;
use crate::expiry::Expiry;
use crate::feed::Feeds;
use crate::forget;
use crate::handle::Handle;
use crate::parts::Parts;
use crate::pipeline::{Observers, Pipeline};
use crate::presence::Presence;
use crate::recheck::Recheck;
use crate::runner::Runner;
use crate::tracker::QuotaTracker;

/// A running host. Dropping it stops its background tasks. The next host recovers the calls that were running.
pub struct Host {
    handle: Handle,
    watching: [JoinHandle<()>; 2],
}

impl Host {
    /// Starts a host: recovers the calls of a killed host, then handles turns that are due.
    ///
    /// Must be called in a tokio runtime, which it uses for everything except the guests.
    pub fn start(mut parts: Parts) -> Self {
        let tracker = Arc::new(QuotaTracker::new(std::mem::take(&mut parts.quotas)));
        let (parts, feeds) = (Arc::new(parts), Arc::<Feeds>::default());
        let observers = Observers {
            subscribers: parts.subscribers.clone(),
            standings: Arc::default(),
            tracker,
            inbox: Arc::default(),
            feeds: feeds.clone(),
            timeout_approvals: Arc::default(),
            alarm: Arc::<Alarm>::default(),
        };
        let recheck = Recheck { tools: parts.tools.clone(), policy: parts.policy.clone() };
        let runner = Runner { recheck, feeds };
        let pipeline = Arc::new(Pipeline { parts: parts.clone(), turns: Arc::default(), observers, runner });
        let (presence, open_since) = (Arc::<Presence>::default(), parts.clock.now());
        let expiry = Expiry { pipeline: pipeline.clone(), presence: presence.clone(), open_since };
        let watching = [tokio::spawn(Arc::new(expiry).watch()), tokio::spawn(forget::watch(parts))];
        Self { handle: Handle::new(pipeline, presence), watching }
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.watching.iter().for_each(JoinHandle::abort);
    }
}
