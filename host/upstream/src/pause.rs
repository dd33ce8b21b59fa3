//! The pause that a server at a URL has asked for (`Retry-After`). It outlasts the connection that got it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::Clock;
use domain::{Span, Timestamp};

/// The longest pause that a server can ask for.
const MAX: Span = Span::from_secs(60);

pub(crate) struct Pause {
    clock: Arc<dyn Clock>,
    /// Its end, in milliseconds.
    ends: AtomicU64,
}

impl Pause {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, ends: AtomicU64::default() }
    }

    /// Begins a pause of this many seconds, or of the longest time. Returns its seconds.
    pub(crate) fn begin(&self, seconds: u64) -> u64 {
        let span = Span::from_secs(seconds).min(MAX);
        self.ends.store((self.clock.now() + span).millis(), Ordering::Release);
        span.millis() / 1_000
    }

    pub(crate) fn left(&self) -> Span {
        Timestamp::from_millis(self.ends.load(Ordering::Acquire)) - self.clock.now()
    }

    /// # Errors
    /// The time that is left. The text continues a sentence about the server.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.left().millis() {
            0 => Ok(()),
            left => Err(format!("has asked for a pause, which ends in {} seconds", left.div_ceil(1_000))),
        }
    }
}
