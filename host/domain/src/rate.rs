//! Rates with a burst.

use crate::{Span, Timestamp};

/// So much per second, and so much at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_second: u64,
    /// One larger amount is allowed when nothing is spent, so that no amount waits forever.
    pub burst: u64,
}

/// The part of a burst that is spent. It shrinks with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// In thousandths, so that each millisecond counts.
    thousandths: u64,
    at: Timestamp,
}

impl Default for Spent {
    /// Nothing is spent.
    fn default() -> Self {
        Self { thousandths: 0, at: Timestamp::MAX }
    }
}

impl Spent {
    /// Spends an amount.
    ///
    /// # Errors
    /// The rate does not allow it yet, and nothing is spent. The same amount is allowed after this time.
    pub fn spend(&mut self, amount: u64, rate: Rate, now: Timestamp) -> Result<(), Span> {
        self.shrink(rate, now);
        let after = self.thousandths.saturating_add(amount.saturating_mul(1_000));
        let over = after.saturating_sub(rate.burst.saturating_mul(1_000)).min(self.thousandths);
        if over > 0 {
            return Err(Span::from_millis(over.div_ceil(rate.per_second.max(1))));
        }
        self.thousandths = after;
        Ok(())
    }

    /// Spends an amount that cannot be refused any more. The part above the burst delays later amounts.
    pub fn charge(&mut self, amount: u64, rate: Rate, now: Timestamp) {
        self.shrink(rate, now);
        self.thousandths = self.thousandths.saturating_add(amount.saturating_mul(1_000));
    }

    /// Takes back an amount that was spent and not used.
    pub fn refund(&mut self, amount: u64) {
        self.thousandths = self.thousandths.saturating_sub(amount.saturating_mul(1_000));
    }

    /// Whether nothing is spent any more.
    #[must_use]
    pub fn is_nothing(mut self, rate: Rate, now: Timestamp) -> bool {
        self.shrink(rate, now);
        self.thousandths == 0
    }

    /// If the clock was set back, the time until then counts once only.
    fn shrink(&mut self, rate: Rate, now: Timestamp) {
        let less = (now - self.at).millis().saturating_mul(rate.per_second);
        *self = Self { thousandths: self.thousandths.saturating_sub(less), at: now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_allows_a_burst_and_then_so_much_per_second() {
        let rate = Rate { per_second: 10, burst: 100 };
        let at = Timestamp::from_millis;
        let mut spent = Spent::default();
        assert_eq!(spent.spend(60, rate, at(5_000)), Ok(()));
        assert_eq!(spent.spend(40, rate, at(5_000)), Ok(()));
        assert_eq!(spent.spend(1, rate, at(5_000)), Err(Span::from_millis(100)));
        assert_eq!(spent.spend(1, rate, at(5_099)), Err(Span::from_millis(1)));
        assert_eq!(spent.spend(1, rate, at(5_100)), Ok(()));
        assert_eq!(spent.spend(20, rate, at(5_100)), Err(Span::from_millis(2_000)));
        // The clock was set back.
        assert_eq!(spent.spend(1, rate, at(1_000)), Err(Span::from_millis(100)));
        assert_eq!(spent.spend(1, rate, at(1_100)), Ok(()));
        spent.refund(1);
        assert_eq!(spent.spend(1, rate, at(1_100)), Ok(()));
        assert!(!spent.is_nothing(rate, at(11_099)) && spent.is_nothing(rate, at(11_100)));
    }

    #[test]
    fn an_amount_above_the_burst_waits_until_nothing_is_spent() {
        let (rate, at) = (Rate { per_second: 10, burst: 100 }, Timestamp::from_millis);
        let mut spent = Spent::default();
        assert_eq!(spent.spend(1, rate, at(0)), Ok(()));
        assert_eq!(spent.spend(500, rate, at(0)), Err(Span::from_millis(100)));
        assert_eq!(spent.spend(500, rate, at(100)), Ok(()));
        assert_eq!(spent.spend(1, rate, at(100)), Err(Span::from_millis(40_100)));
        spent.charge(1_000, rate, at(100_100));
        assert_eq!(spent.spend(1, rate, at(100_100)), Err(Span::from_millis(90_100)), "a charge is never refused");
        let unlimited = Rate { per_second: u64::MAX, burst: u64::MAX };
        let mut spent = Spent::default();
        assert_eq!(spent.spend(u64::MAX, unlimited, at(100)), Ok(()));
        assert_eq!(spent.spend(u64::MAX, unlimited, at(101)), Ok(()));
    }
}
