//! A clock that only the test moves.

use async_trait::async_trait;
use dispatch::ports::Clock;
use domain::{Span, Timestamp};
use tokio::sync::watch;

/// Simulated time.
pub struct SimClock(watch::Sender<Timestamp>);

impl Default for SimClock {
    fn default() -> Self {
        Self(watch::Sender::new(Timestamp::from_millis(1_000_000)))
    }
}

impl SimClock {
    /// Lets time pass.
    pub fn advance(&self, span: Span) {
        self.0.send_modify(|now| *now = *now + span);
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    async fn sleep_until(&self, at: Timestamp) {
        // The sender lives as long as the clock, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|now| *now >= at).await;
    }
}
