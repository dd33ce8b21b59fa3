//! What a call makes its host hold, and what passes between the two. Both are counted where it happens, on whatever thread
//! that is, so the counters are shared and cheap to clone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::ending::{Stop, size};

/// What the host holds in its own memory on behalf of one call: handles and what is behind them, buffers, bodies. Whoever
/// keeps something of a guest's making beyond one host call, or builds an answer whose size the guest chooses, charges it
/// here before it allocates.
#[derive(Clone)]
pub(crate) struct Held(Arc<Holding>);

struct Holding {
    now: AtomicUsize,
    peak: AtomicUsize,
    most: usize,
}

impl Held {
    /// Nothing held yet, of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Holding { now: AtomicUsize::new(0), peak: AtomicUsize::new(0), most }))
    }

    /// Charges so many bytes until the charge is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> Result<Charge, Stop> {
        let mut charge = self.nothing();
        charge.grow(bytes)?;
        Ok(charge)
    }

    /// A charge of nothing, which can grow.
    pub(crate) fn nothing(&self) -> Charge {
        Charge { held: self.clone(), bytes: 0 }
    }

    /// What is held now.
    #[cfg(test)]
    pub(crate) fn now(&self) -> usize {
        self.0.now.load(Ordering::Relaxed)
    }

    /// The most that was held at once.
    pub(crate) fn peak(&self) -> usize {
        self.0.peak.load(Ordering::Relaxed)
    }
}

/// Bytes that the host holds for a guest until this is dropped. Keep it beside what it pays for.
pub(crate) struct Charge {
    held: Held,
    bytes: usize,
}

impl Charge {
    /// Charges more of the same.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Stop> {
        let Holding { now, peak, most } = &*self.held.0;
        let more = |held: usize| held.checked_add(bytes).filter(|held| held <= most);
        match now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(before) => {
                peak.fetch_max(before + bytes, Ordering::Relaxed);
                self.bytes += bytes;
                Ok(())
            }
            Err(_) => {
                let most = size(*most);
                Err(Stop::Limit(format!("made the host hold more than {most} on its behalf (limit `host_bytes`)")))
            }
        }
    }
}

impl Charge {
    /// Charges so many bytes in all, or what is charged already if that is more.
    pub(crate) fn reach(&mut self, bytes: usize) -> Result<(), Stop> {
        self.grow(bytes.saturating_sub(self.bytes))
    }

    /// Charges so many bytes in all. What is refused leaves it as it was.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), Stop> {
        if let Some(less) = self.bytes.checked_sub(bytes) {
            self.held.0.now.fetch_sub(less, Ordering::Relaxed);
            self.bytes = bytes;
            return Ok(());
        }
        self.reach(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.held.0.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What passed between a guest and the world outside of it, in bytes.
#[derive(Clone, Default)]
pub(crate) struct Traffic(Arc<Passed>);

#[derive(Default)]
struct Passed {
    into: AtomicU64,
    out: AtomicU64,
}

impl Traffic {
    /// So many bytes went into the guest.
    #[expect(clippy::wrong_self_convention, reason = "nothing is converted: it says where the bytes went")]
    pub(crate) fn into_guest(&self, bytes: usize) {
        self.0.into.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many bytes came out of the guest.
    pub(crate) fn out_of_guest(&self, bytes: usize) {
        self.0.out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// What went in.
    pub(crate) fn bytes_in(&self) -> u64 {
        self.0.into.load(Ordering::Relaxed)
    }

    /// What came out.
    pub(crate) fn bytes_out(&self) -> u64 {
        self.0.out.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_lasts_as_long_as_it_is_kept_and_the_peak_is_remembered() {
        let held = Held::new(100);
        let first = held.charge(60).expect("there is room");
        assert!(held.charge(41).is_err());
        let mut second = held.charge(40).expect("exactly what is left");
        assert!(second.grow(1).is_err());
        drop(first);
        second.grow(59).expect("the other one is gone");
        drop(second);
        assert!(held.charge(usize::MAX).is_err());
        assert_eq!(held.peak(), 100);
        assert!(held.charge(100).is_ok(), "a charge that was refused costs nothing");
        let mut third = held.nothing();
        for (set, now) in [(70, 70), (20, 20), (101, 20), (100, 100)] {
            assert_eq!((third.set(set).is_ok(), held.now()), (set == now, now));
        }
        third.reach(50).expect("that much is charged");
        assert_eq!(held.now(), 100);
    }
}
