//! Time: what guests are told, and what a call has spent. The only file of this crate that reads a clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use domain::Span;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// How often the epoch advances while guests run.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// How often it advances while none does: rarely enough not to keep a processor awake, often enough for the first guest
/// that comes.
pub(crate) const IDLE_TICK: Duration = Duration::from_millis(10);

/// The clocks that guests read. A type of our own, so that a call can be given journaled ones.
pub trait Clock: Send + Sync {
    /// Time since 1970-01-01T00:00:00Z.
    fn wall(&self) -> Duration;
    /// Time since some point before the first call; never goes back.
    fn monotonic(&self) -> Duration;
}

/// The host's clocks.
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

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    fn wall(&self) -> Duration {
        // A clock that is set before 1970 reads as 1970: a guest cannot be told a negative time.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock in the form in which the WASI implementation wants it.
pub(crate) struct Guests(pub(crate) Arc<dyn Clock>);

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

/// Measures a call against its budget of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Instant,
    budget: Duration,
}

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    pub(crate) fn start(budget: Span) -> Self {
        Self { started: Instant::now(), budget: Duration::from_millis(budget.millis()) }
    }

    /// Whether the budget is spent.
    pub(crate) fn is_over(&self) -> bool {
        self.started.elapsed() >= self.budget
    }

    /// What is left of the budget.
    pub(crate) fn left(&self) -> Duration {
        self.budget.saturating_sub(self.started.elapsed())
    }

    /// What was spent.
    pub(crate) fn spent(&self) -> Duration {
        self.started.elapsed()
    }
}
