//! The virtual clock and the random numbers of a durable call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::{Digest, Timestamp};

use crate::clock::GuestClock;
use crate::random::Random;

/// A clock that does not advance while the guest computes. Each time that the guest reads it, it advances by [`TICK`], so that a
/// guest that waits in a loop comes to an end.
///
/// Both clocks of a guest are this one: time since 1970. The monotonic clock must not start at zero, because the runtime of Go
/// takes that for an error.
pub(crate) struct VirtualClock(AtomicU64);

/// Nanoseconds for each read.
const TICK: u64 = 1_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

impl VirtualClock {
    pub(crate) fn at(start: Timestamp) -> Self {
        Self(AtomicU64::new(start.millis().saturating_mul(NANOS_PER_MILLI)))
    }

    /// The time, in nanoseconds. It does not advance the clock.
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The time, in nanoseconds, for the guest.
    pub(crate) fn read(&self) -> u64 {
        let now = self.now();
        self.0.store(now.saturating_add(TICK), Ordering::Relaxed);
        now
    }

    /// Advances the clock to this time, if it is earlier.
    pub(crate) fn reach(&self, time: Timestamp) {
        self.reach_nanos(time.millis().saturating_mul(NANOS_PER_MILLI));
    }

    /// The same with nanoseconds.
    pub(crate) fn reach_nanos(&self, nanos: u64) {
        self.0.fetch_max(nanos, Ordering::Relaxed);
    }
}

impl GuestClock for VirtualClock {
    fn wall(&self) -> Duration {
        Duration::from_nanos(self.read())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.read())
    }
}

/// Random numbers that follow from a key: SHA-256 of the key and a counter.
pub(crate) struct Seeded {
    key: Arc<str>,
    next: AtomicU64,
}

impl Seeded {
    pub(crate) fn with(key: Arc<str>) -> Self {
        Self { key, next: AtomicU64::new(0) }
    }
}

impl Random for Seeded {
    fn fill(&self, buffer: &mut [u8]) -> std::io::Result<()> {
        for part in buffer.chunks_mut(32) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let block = Digest::of_parts(&[b"random", self.key.as_bytes(), &number.to_be_bytes()]);
            part.copy_from_slice(&block.as_bytes()[..part.len()]);
        }
        Ok(())
    }
}
