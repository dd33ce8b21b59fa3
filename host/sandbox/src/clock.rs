//! The clocks of guests, and the time of a call. Only this file of the crate reads a clock.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use capabilities::Stop;
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

/// Measures a run against its limits. The part that a durable call repeats is measured apart, by the time that its guest computes.
#[derive(Debug, Clone)]
pub(crate) struct Stopwatch(Arc<Measured>);

#[derive(Debug)]
struct Measured {
    made: Instant,
    /// Nanoseconds from then to the start of the run.
    started: AtomicU64,
    bounds: Bounds,
    /// Nanoseconds that the guest has computed.
    computed: AtomicU64,
    /// Nanoseconds from the start to the end of the repeated part, or [`REPEATING`].
    repeated: AtomicU64,
}

/// The repeated part of a run may take this many times its processor time, because other guests compute meanwhile.
const MAX_SLOWNESS: u32 = 10;

/// The run still repeats an earlier one.
const REPEATING: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct Bounds {
    time: Duration,
    replay: Duration,
}

impl Stopwatch {
    /// `replay`: the bound of the part that a run repeats.
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    pub(crate) fn start(time: Span, replay: Span) -> Self {
        let [time, replay] = [time, replay].map(|span| Duration::from_millis(span.millis()));
        let [started, computed, repeated] = [0; 3].map(AtomicU64::new);
        Self(Arc::new(Measured { made: Instant::now(), started, bounds: Bounds { time, replay }, computed, repeated }))
    }

    /// Starts again, for a run that repeats nothing.
    pub(crate) fn restart(&self) {
        self.0.started.store(nanos(self.0.made.elapsed()), Ordering::Relaxed);
        self.0.computed.store(0, Ordering::Relaxed);
        self.0.repeated.store(0, Ordering::Relaxed);
    }

    /// Whether the run repeats an earlier one.
    pub(crate) fn repeats(&self, repeats: bool) {
        let (before, after) = if repeats { (0, REPEATING) } else { (REPEATING, nanos(self.spent())) };
        // Otherwise it repeats nothing any more.
        let _ = self.0.repeated.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Drives a guest, and counts the time in which it computes.
    #[expect(clippy::disallowed_methods, reason = "this file owns the clock")]
    pub(crate) async fn count<T>(&self, mut guest: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|context| {
            let begun = Instant::now();
            let polled = guest.as_mut().poll(context);
            self.0.computed.fetch_add(nanos(begun.elapsed()), Ordering::Relaxed);
            polled
        })
        .await
    }

    /// The reason to end the run, if its time is over.
    pub(crate) fn over(&self) -> Option<Stop> {
        if !self.left().is_zero() {
            return None;
        }
        if self.repeated() != REPEATING {
            return Some(Stop::OutOfTime);
        }
        let (max, in_all) = (self.0.bounds.replay.as_millis(), self.0.bounds.longest_replay().as_millis());
        let what = format!(
            "took more than {max} ms of processor time, or {in_all} ms in all, to repeat the code before its last wait: each run \
             of a durable call repeats it, so it must compute less between its waits"
        );
        Some(Stop::Limit { what, key: "replay_ms" })
    }

    /// The time that is left. Of the repeated part, it is time of the processor.
    pub(crate) fn left(&self) -> Duration {
        let computed = Duration::from_nanos(self.0.computed.load(Ordering::Relaxed));
        self.0.bounds.left(self.spent(), computed, self.repeated())
    }

    pub(crate) fn spent(&self) -> Duration {
        let started = Duration::from_nanos(self.0.started.load(Ordering::Relaxed));
        self.0.made.elapsed().saturating_sub(started)
    }

    fn repeated(&self) -> u64 {
        self.0.repeated.load(Ordering::Relaxed)
    }
}

impl Bounds {
    fn longest_replay(self) -> Duration {
        self.replay.saturating_mul(MAX_SLOWNESS)
    }

    fn left(self, spent: Duration, computed: Duration, repeated: u64) -> Duration {
        match repeated {
            REPEATING => self.replay.saturating_sub(computed).min(self.longest_replay().saturating_sub(spent)),
            repeated => self.time.saturating_add(Duration::from_nanos(repeated)).saturating_sub(spent),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(REPEATING - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_part_of_a_run_is_measured_apart() {
        let of = Duration::from_millis;
        let bounds = Bounds { time: of(30), replay: of(100) };
        let left = |spent, computed, repeated| bounds.left(of(spent), of(computed), repeated).as_millis();
        assert_eq!(left(10, 10, 0), 20);
        assert_eq!(left(31, 1, 0), 0);
        assert_eq!(left(500, 40, REPEATING), 60, "waiting for other guests does not count");
        assert_eq!(left(500, 101, REPEATING), 0);
        assert_eq!((left(990, 1, REPEATING), left(1_000, 1, REPEATING)), (10, 0), "no guest waits forever");
        let ended_at = nanos(of(500));
        assert_eq!(left(500, 99, ended_at), 30, "the new code has all of its time");
        assert_eq!(left(531, 99, ended_at), 0);
    }

    #[test]
    fn repeated_part_ends_once() {
        let watch = Stopwatch::start(Span::from_secs(30), Span::from_secs(60));
        assert!(watch.left() <= Duration::from_secs(30));
        watch.repeats(false);
        assert_eq!(watch.repeated(), 0, "it repeats nothing");
        watch.repeats(true);
        assert_eq!(watch.left(), Duration::from_secs(60));
        watch.repeats(false);
        let ended_at = watch.repeated();
        assert_ne!(ended_at, REPEATING);
        watch.repeats(false);
        assert_eq!(watch.repeated(), ended_at);
    }

    #[test]
    fn restarted_watch_measures_one_more_run() {
        let watch = Stopwatch::start(Span::ZERO, Span::ZERO);
        assert!(watch.over().is_some());
        let watch = Stopwatch::start(Span::from_secs(3_600), Span::ZERO);
        watch.repeats(true);
        assert!(watch.over().is_some(), "nothing may be repeated");
        let before = watch.0.made.elapsed();
        watch.restart();
        assert!(watch.over().is_none());
        assert!(watch.spent() <= watch.0.made.elapsed() - before);
        watch.repeats(false);
        assert_eq!(watch.repeated(), 0);
    }
}
