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

/// The clock of the database, which all hosts on it share.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone)]
pub(crate) struct DatabaseClock {
    /// As it was read last.
    pub(crate) time: tokio::sync::watch::Receiver<store::DatabaseTime>,
}

#[cfg(feature = "postgres")]
#[async_trait]
impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.time.borrow().now())
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
