//! A clock that only the test moves.

use async_trait::async_trait;
use dispatch::ports::Clock;
use domain::{Span, Timestamp};
use tokio::sync::watch;

/// Simulated time.
pub struct SimClock(watch::Sender<Timestamp>);

impl Default for SimClock {
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_000_000))
    }
}

impl SimClock {
    /// A clock that begins at this time.
    #[must_use]
    pub fn at(begin: Timestamp) -> Self {
        Self(watch::Sender::new(begin))
    }

    /// Lets time pass.
    pub fn advance(&self, span: Span) {
        self.0.send_modify(|now| *now = *now + span);
    }

    /// Sets the clock back, as an operator may do.
    pub fn set_back(&self, span: Span) {
        self.0.send_modify(|now| *now = Timestamp::from_millis(now.millis() - span.millis()));
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
