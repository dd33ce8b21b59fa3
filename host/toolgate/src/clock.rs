//! The host's clock and ids. Only this file of the crate reads the time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use dispatch::ports::Clock;
use domain::{Span, Timestamp};

/// The maximum single sleep. The wall clock may be set during a sleep, and the next check notices that.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// The wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

#[async_trait]
impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn now(&self) -> Timestamp {
        // A clock before 1970 is not set. It counts as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    async fn sleep(&self, span: Span) {
        tokio::time::sleep(Duration::from_millis(span.millis())).await;
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_until(self, at).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
async fn sleep_until(clock: &impl Clock, at: Timestamp) {
    loop {
        let left = (at - clock.now()).millis();
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left).min(MAX_SLEEP)).await;
    }
}

/// The clock of the database, which all hosts on it share: the clock of this machine and the measured difference.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone)]
pub(crate) struct DatabaseClock {
    /// Milliseconds to add.
    pub(crate) offset: tokio::sync::watch::Receiver<i64>,
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(WallClock.now().millis().saturating_add_signed(*self.offset.borrow()))
    }

    async fn sleep_until(&self, at: Timestamp) {
        sleep_until(self, at).await;
    }

    async fn sleep(&self, span: Span) {
        WallClock.sleep(span).await;
    }
}

/// A new id that sorts by time: a version 7 UUID (RFC 9562).
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this file owns the making of ids")]
pub fn mint() -> u128 {
    uuid::Uuid::now_v7().as_u128()
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clock_of_the_database_follows_the_measured_offset() {
        let (measured, offset) = tokio::sync::watch::channel(0);
        let clock = DatabaseClock { offset };
        let hour = Span::from_secs(60 * 60);
        let is_about = |expected: Timestamp| {
            let far = (clock.now() - expected).millis() + (expected - clock.now()).millis();
            assert!(far < 10 * 60 * 1_000, "{far} ms from the expected time");
        };
        is_about(WallClock.now());
        measured.send_replace(i64::try_from(hour.millis()).unwrap());
        is_about(WallClock.now() + hour);
        // It has passed for the database, and not for this machine.
        clock.sleep_until(WallClock.now() + Span::from_secs(30 * 60)).await;
        measured.send_replace(-i64::try_from(hour.millis()).unwrap());
        is_about(Timestamp::from_millis(WallClock.now().millis() - hour.millis()));
        measured.send_replace(i64::MIN);
        assert_eq!(clock.now(), Timestamp::from_millis(0));
    }
}
