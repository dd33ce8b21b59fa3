//! A clock that only the test moves.

use std::sync::Arc;

use async_trait::async_trait;
use dispatch::ports::Clock;
use domain::{Span, Timestamp};
use tokio::sync::watch;

/// Simulated time.
pub struct SimClock(watch::Sender<Now>);

struct Now {
    time: Timestamp,
    /// The time that has passed, which no operator can set back.
    passed: Span,
}

impl Default for SimClock {
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_000_000))
    }
}

impl SimClock {
    /// A clock that begins at this time.
    #[must_use]
    pub fn at(begin: Timestamp) -> Self {
        Self(watch::Sender::new(Now { time: begin, passed: Span::from_millis(0) }))
    }

    /// Lets time pass.
    pub fn advance(&self, span: Span) {
        self.0.send_modify(|now| {
            now.time = now.time + span;
            now.passed = Span::from_millis(now.passed.millis() + span.millis());
        });
    }

    /// Sets the clock back, as an operator may do.
    pub fn set_back(&self, span: Span) {
        self.0.send_modify(|now| now.time = Timestamp::from_millis(now.time.millis() - span.millis()));
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        self.0.borrow().time
    }

    // The sender lives as long as the clock, so waiting cannot fail.
    async fn sleep_until(&self, at: Timestamp) {
        let _ = self.0.subscribe().wait_for(|now| now.time >= at).await;
    }

    async fn sleep(&self, span: Span) {
        let end = self.0.borrow().passed.millis() + span.millis();
        let _ = self.0.subscribe().wait_for(|now| now.passed.millis() >= end).await;
    }
}

/// The clock of one of several hosts, ahead of simulated time or behind it.
pub struct SkewedClock {
    clock: Arc<SimClock>,
    /// In milliseconds.
    ahead: watch::Sender<i64>,
}

impl SkewedClock {
    /// A clock with the right time.
    #[must_use]
    pub fn of(clock: Arc<SimClock>) -> Self {
        Self { clock, ahead: watch::Sender::new(0) }
    }

    /// Sets it to this many milliseconds after the right time, or before it.
    pub fn set_ahead(&self, millis: i64) {
        self.ahead.send_replace(millis);
    }
}

#[async_trait]
impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.now().millis().saturating_add_signed(*self.ahead.borrow()))
    }

    async fn sleep_until(&self, at: Timestamp) {
        let (mut jumps, mut now) = (self.ahead.subscribe(), self.clock.0.subscribe());
        // Neither sender can be dropped meanwhile.
        while self.now() < at {
            tokio::select! {
                _ = jumps.changed() => {}
                _ = now.changed() => {}
            }
        }
    }

    async fn sleep(&self, span: Span) {
        self.clock.sleep(span).await;
    }
}
