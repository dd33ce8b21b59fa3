//! The usage of a call: memory of the host, bytes in and out, and threads that wait for a disk. Host functions count on any
//! thread, so the counters are shared and cheap to clone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::blocking::Blocking;
use crate::stop::{Stop, size};

/// The usage of one call.
#[derive(Clone)]
pub struct Usage {
    pub memory: HostMemory,
    pub bytes: BytesInOut,
    pub blocking: Blocking,
}

/// The host's own memory that it holds for one call: handles and what is behind them, buffers, bodies. A host function
/// that keeps something for longer than one host call, or builds an answer whose size the guest chooses, charges it
/// here before it allocates.
#[derive(Clone)]
pub struct HostMemory(Arc<Bytes>);

struct Bytes {
    now: AtomicUsize,
    peak: AtomicUsize,
    max: usize,
    shared: Arc<dyn SharedMemory>,
}

/// The part of one call in the memory of all guests.
pub trait SharedMemory: Send + Sync {
    /// Covers so much host memory of the call until the call ends. Returns false if there is too little.
    fn covers_host_memory(&self, bytes: usize) -> bool;
}

/// As much as the call may use.
impl SharedMemory for () {
    fn covers_host_memory(&self, _bytes: usize) -> bool {
        true
    }
}

impl HostMemory {
    #[must_use]
    pub fn new(max: usize, shared: Arc<dyn SharedMemory>) -> Self {
        Self(Arc::new(Bytes { now: AtomicUsize::new(0), peak: AtomicUsize::new(0), max, shared }))
    }

    /// Charges bytes until the charge is dropped.
    ///
    /// # Errors
    /// [`Stop::Limit`] if the call would hold too much, [`Stop::GuestMemory`] if all guests together would.
    pub fn charge(&self, bytes: usize) -> Result<Charge, Stop> {
        let mut charge = self.nothing();
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// A charge of nothing, which can grow.
    #[must_use]
    pub fn nothing(&self) -> Charge {
        Charge { memory: self.clone(), bytes: 0 }
    }

    /// The bytes that are held now.
    #[must_use]
    pub fn now(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }

    /// The maximum number of bytes that were held at once.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }
}

/// Host memory that a call pays for until this is dropped. Keep it beside what it pays for.
pub struct Charge {
    memory: HostMemory,
    bytes: usize,
}

impl Charge {
    /// Charges more.
    ///
    /// # Errors
    /// [`Stop::Limit`] if the call would hold too much, [`Stop::GuestMemory`] if all guests together would.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Stop> {
        let Bytes { now, peak, max, shared } = &*self.memory.0;
        let more = |held: usize| held.checked_add(bytes).filter(|held| held <= max);
        let Ok(before) = now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else {
            let what = format!("made the host hold more than {} on its behalf", size(*max));
            return Err(Stop::Limit { what, key: "host_bytes" });
        };
        let held = before + bytes;
        if held > peak.load(Ordering::Relaxed) {
            if !shared.covers_host_memory(held) {
                now.fetch_sub(bytes, Ordering::Relaxed);
                return Err(Stop::GuestMemory);
            }
            peak.fetch_max(held, Ordering::Relaxed);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Raises the charge to `bytes` bytes, or keeps it if it is larger.
    ///
    /// # Errors
    /// [`Stop::Limit`] if the call would hold too much, [`Stop::GuestMemory`] if all guests together would.
    pub fn reach(&mut self, bytes: usize) -> Result<(), Stop> {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Sets the charge to `bytes` bytes. An error leaves the charge as it was.
    ///
    /// # Errors
    /// [`Stop::Limit`] if the call would hold too much, [`Stop::GuestMemory`] if all guests together would.
    pub fn set(&mut self, bytes: usize) -> Result<(), Stop> {
        if let Some(less) = self.bytes.checked_sub(bytes) {
            self.memory.0.now.fetch_sub(less, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        self.reach(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.0.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes that went into a guest and came out of it.
#[derive(Clone, Default)]
pub struct BytesInOut(Arc<[AtomicU64; 2]>);

impl BytesInOut {
    /// Counts bytes that went into the guest.
    pub fn count_in(&self, bytes: usize) {
        self.0[0].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that came out of the guest.
    pub fn count_out(&self, bytes: usize) {
        self.0[1].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes in, bytes out.
    #[must_use]
    pub fn total(&self) -> [u64; 2] {
        [0, 1].map(|way: usize| self.0[way].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_lasts_until_it_is_dropped_and_the_peak_is_kept() {
        let memory = HostMemory::new(100, Arc::new(()));
        let first = memory.charge(60).expect("there is room");
        assert!(memory.charge(41).is_err());
        let mut second = memory.charge(40).expect("exactly what is left");
        assert!(second.grow(1).is_err());
        drop(first);
        second.grow(59).expect("the other one has ended");
        drop(second);
        assert!(memory.charge(usize::MAX).is_err());
        assert_eq!(memory.peak(), 100);
        assert!(memory.charge(100).is_ok(), "a refused charge costs nothing");
        let mut third = memory.nothing();
        for (set, now) in [(70, 70), (20, 20), (101, 20), (100, 100)] {
            assert_eq!((third.set(set).is_ok(), memory.now()), (set == now, now));
        }
        third.reach(50).expect("more than that is charged");
        assert_eq!(memory.now(), 100);
    }

    #[test]
    fn host_memory_is_part_of_the_memory_of_all_guests() {
        struct AtMost(usize);
        impl SharedMemory for AtMost {
            fn covers_host_memory(&self, bytes: usize) -> bool {
                bytes <= self.0
            }
        }
        let memory = HostMemory::new(100, Arc::new(AtMost(50)));
        let mut charge = memory.charge(30).expect("there is room");
        assert!(matches!(charge.grow(21), Err(Stop::GuestMemory)));
        assert_eq!((memory.now(), memory.peak()), (30, 30), "a refused charge costs nothing");
        charge.grow(20).expect("exactly what is left");
        assert!(matches!(memory.charge(51), Err(Stop::Limit { key: "host_bytes", .. })));
    }
}
