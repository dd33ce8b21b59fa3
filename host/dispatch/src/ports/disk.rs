//! The disk that the host writes to, as a port, so that a test can fill it.

/// The disk of the host.
pub trait Disk: Send + Sync {
    /// The number of free bytes. `None`: unknown. Must not block.
    fn free(&self) -> Option<u64>;
}

/// A host that writes to no disk.
impl Disk for () {
    fn free(&self) -> Option<u64> {
        None
    }
}
