//! The heap of the host's process.
//!
//! glibc keeps freed blocks for later ones. It gives a large block pages of its own, and returns them when the block is freed.
//! But each freed block of this kind raises the size at which a block counts as large, up to 32 MiB. Then freed records, answers
//! and events stay between others in the heaps of all threads. In the case `principal/unread-streams` of the hostile suite, the
//! host then grows by 150 MiB instead of 50.

/// From this size on, a block has its own pages. Most requests and results are smaller.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 512 << 10;

/// Makes the C library return each large block to the system as soon as it is free. Other systems keep their own rules.
pub fn return_large_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the standard library does not offer it")]
    // SAFETY: Both calls take numbers only, and lock the heap that they change. If one fails, the rule stays as it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        // The free end of a heap beyond which it shrinks: twice as large, as in glibc's own rule.
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE);
    }
}
