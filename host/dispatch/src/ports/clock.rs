//! Time, as a port, so that a test can make a week pass.

use async_trait::async_trait;
use domain::{Span, Timestamp};

/// The time, and waiting for it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The time. It may jump either way; nothing relies on its being monotonic.
    fn now(&self) -> Timestamp;

    /// Returns at this time or soon after it, or at once if it has passed.
    async fn sleep_until(&self, at: Timestamp);

    /// Returns after this time or soon after it, even if the clock is set meanwhile. For pauses: a clock that was ahead and
    /// is set right must not make them longer.
    async fn sleep(&self, span: Span);
}
