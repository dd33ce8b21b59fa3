//! The parts of a host that most tests do not choose: a store in memory, simulated time and ids in order. They survive
//! the host, so a test can start the next host on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::{AsDeclared, Tools};
use dispatch::{Bounds, LogBounds, Parts, Quotas, RetentionRules};
use domain::{OwnerId, Timestamp, turn::TurnSettings};
use store::MemoryStore;

use crate::clock::SimClock;
use crate::disk::SimDisk;

/// The surroundings of a host, which survive it.
#[derive(Default)]
pub struct World {
    /// The host's commits.
    pub store: Arc<MemoryStore>,
    /// The time.
    pub clock: Arc<SimClock>,
    /// The disk.
    pub disk: Arc<SimDisk>,
    /// The last id.
    minted: Arc<AtomicU64>,
}

impl World {
    /// A world that begins at this time.
    #[must_use]
    pub fn at(begin: Timestamp) -> Self {
        Self { clock: Arc::new(SimClock::at(begin)), ..Self::default() }
    }

    /// The parts of a host with these tools. Its guests run on the current runtime. A test replaces the parts that it
    /// is about.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[must_use]
    pub fn parts(&self, tools: Arc<dyn Tools>) -> Parts {
        let minted = self.minted.clone();
        let mint = Arc::new(move || u128::from(minted.fetch_add(1, Ordering::Relaxed)) + 1);
        Parts {
            store: self.store.clone(),
            tools,
            policy: Arc::new(AsDeclared),
            principals: Arc::new(()),
            clock: self.clock.clone(),
            disk: self.disk.clone(),
            guests: tokio::runtime::Handle::current(),
            owner: OwnerId::from_bits(mint()),
            mint,
            settings: TurnSettings::default(),
            bounds: Bounds::default(),
            quotas: Quotas::default(),
            retention: RetentionRules::default(),
            logs: LogBounds::default(),
            subscribers: Arc::new(()),
        }
    }
}

/// Runs all other tasks of this thread that do not wait for the clock.
pub async fn settle() {
    rounds(1_000).await;
}

/// Lets all other tasks of this thread continue this many times.
pub async fn rounds(count: usize) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}
