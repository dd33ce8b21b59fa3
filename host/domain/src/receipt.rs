//! What one run of a guest spent, in the words of the limits that bound it. There is no fuel in it: the same tool costs
//! a hundred times more instructions in one language than in another, and what an operator pays for is time and memory.

/// What one run of a guest spent. Part of the record of its call; a call whose guest never ran has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Receipt {
    /// From the moment that it had a place to its end, in microseconds; waits in host functions included.
    pub micros: u64,
    /// Its linear memories at their largest, in bytes.
    pub peak_memory: u64,
    /// What the host held in its own memory on its behalf, at its largest, in bytes.
    pub peak_host_bytes: u64,
    /// Calls of host functions.
    pub host_calls: u64,
    /// What went into the guest, in bytes: its arguments, and values, bodies and contents of files that it was given.
    pub bytes_in: u64,
    /// What came out of it, in bytes: its result, progress and log, and what it stored, wrote and sent.
    pub bytes_out: u64,
}
