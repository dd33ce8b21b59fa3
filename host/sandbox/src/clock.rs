//! The clocks of guests, and the time of a call. Only this file of the crate reads a clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use domain::Span;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// The time between two epoch ticks while guests run.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// The time between two epoch ticks while no guest runs: long enough for a processor to sleep, short enough not to delay
/// the first guest's interruption.
pub(crate) const IDLE_TICK: Duration = Duration::from_millis(10);

/// The clocks that guests read. A caller can choose them, for example to replay a call.
pub trait GuestClock: Send + Sync {
    /// Time since 1970-01-01T00:00:00Z.
    fn wall(&self) -> Duration;
    /// Time since some point before the first call. It never goes back.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn default() -> Self {
        Self { origin: Instant::now() }
    }
}

impl GuestClock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn wall(&self) -> Duration {
        // A clock before 1970 reads as 1970, because a guest cannot get a negative time.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock in the form that the WASI library needs.
pub(crate) struct Guests(pub(crate) Arc<dyn GuestClock>);

impl HostWallClock for Guests {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn now(&self) -> Duration {
        self.0.wall()
    }
}

impl HostMonotonicClock for Guests {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.monotonic().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Waits in real time, for a short timer of a guest whose other time is virtual.
#[expect(clippy::disallowed_methods, reason = "the guest sleeps, and nothing happens that would end its wait")]
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Measures a call against its time limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
    budget: Duration,
}

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    pub(crate) fn start(budget: Span) -> Self {
        Self { started: Instant::now(), budget: Duration::from_millis(budget.millis()) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.started.elapsed() >= self.budget
    }

    pub(crate) fn left(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    pub(crate) fn spent(&self) -> Duration {
        self.started.elapsed()
    }
}
