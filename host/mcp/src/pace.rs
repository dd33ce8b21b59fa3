//! How often a request gets notifications.

use domain::{Span, Timestamp};

/// How many notifications a request gets at once, and the time between two after those.
const AT_ONCE: u64 = 10;
const GAP: Span = Span::from_millis(100);

/// Limits the notifications of one request.
pub(crate) struct Pace {
    /// The time at which all that were sent would have been sent one by one.
    due: Timestamp,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self { due: Timestamp::from_millis(0) }
    }

    /// How long to wait before the next one.
    pub(crate) fn until_next(&self, now: Timestamp) -> Span {
        self.due - (now + Span::from_millis(GAP.millis() * (AT_ONCE - 1)))
    }

    /// Whether notifications come faster than the pace.
    pub(crate) fn is_slow(&self, now: Timestamp) -> bool {
        self.due > now + Span::from_millis(GAP.millis() * (AT_ONCE - 2))
    }

    pub(crate) fn sent(&mut self, now: Timestamp) {
        self.due = self.due.max(now) + GAP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_of_a_request_have_a_pace() {
        let (mut pace, now) = (Pace::new(), Timestamp::from_millis(1_000_000));
        for _ in 0..AT_ONCE {
            assert_eq!(pace.until_next(now), Span::ZERO);
            pace.sent(now);
        }
        assert_eq!(pace.until_next(now), GAP);
        assert_eq!(pace.until_next(now + GAP), Span::ZERO);
    }
}
