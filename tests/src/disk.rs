//! A disk that a test fills.

use std::sync::atomic::{AtomicU64, Ordering};

use dispatch::ports::Disk;

/// A simulated disk.
pub struct SimDisk(AtomicU64);

impl Default for SimDisk {
    /// A disk with much space.
    fn default() -> Self {
        Self(AtomicU64::new(1 << 40))
    }
}

impl SimDisk {
    /// Leaves this many bytes free.
    pub fn leave(&self, free: u64) {
        self.0.store(free, Ordering::Relaxed);
    }
}

impl Disk for SimDisk {
    fn free(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed))
    }
}
