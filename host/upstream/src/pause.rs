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

    /// Begins a pause of this many seconds, or of the longest time. Does not shorten another. Returns its seconds.
    pub(crate) fn begin(&self, seconds: u64) -> u64 {
        let span = Span::from_secs(seconds).min(MAX);
        let (now, end) = (self.clock.now(), (self.clock.now() + span).millis());
        let later = |ends: u64| is_possible(Timestamp::from_millis(ends) - now).then_some(ends.max(end)).or(Some(end));
        let _ = self.ends.fetch_update(Ordering::AcqRel, Ordering::Acquire, later);
        span.millis() / 1_000
    }

    pub(crate) fn left(&self) -> Span {
        let left = Timestamp::from_millis(self.ends.load(Ordering::Acquire)) - self.clock.now();
        if is_possible(left) { left } else { Span::default() }
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

/// Whether a pause can have this time left. It cannot if the clock was set back.
fn is_possible(left: Span) -> bool {
    left <= MAX
}

#[cfg(test)]
mod tests {
    use toolgate_tests::clock::SimClock;

    use super::*;

    #[test]
    fn pause_is_not_shortened_and_ends_if_the_clock_is_set_back() {
        let clock = Arc::new(SimClock::at(Timestamp::from_millis(1_000_000_000)));
        let pause = Pause::new(clock.clone());
        assert_eq!((pause.begin(100_000), pause.begin(0)), (60, 0));
        assert_eq!(pause.left(), MAX);
        clock.set_back(Span::from_secs(1));
        assert_eq!(pause.check(), Ok(()), "no pause is so long");
        pause.begin(5);
        assert_eq!(pause.left(), Span::from_secs(5));
        clock.advance(Span::from_secs(5));
        assert_eq!(pause.check(), Ok(()));
    }
}
