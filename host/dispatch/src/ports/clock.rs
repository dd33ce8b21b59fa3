//! Time, as a port, so that a test can make a week pass.

use async_trait::async_trait;
use domain::Timestamp;

/// The time, and waiting for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time. It may jump either way; nothing relies on its being monotonic.
    fn now(&self) -> Timestamp;

    /// Returns at this time or soon after it, or at once if it has passed.
    async fn sleep_until(&self, at: Timestamp);
}
