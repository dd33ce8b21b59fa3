//! The peak memory of a process on Linux: `VmHWM` of `/proc/PID/status` (proc(5)).

use std::fs;

use anyhow::{Context as _, Result};

/// The memory of a process since the watch began, and of those that follow it.
pub(super) struct Resident {
    process: u32,
    before: u64,
    peak: u64,
}

impl Resident {
    /// Resets the process's peak to its current value.
    pub(super) fn watch(process: u32) -> Result<Self> {
        // 5 resets the peak to the current size.
        fs::write(format!("/proc/{process}/clear_refs"), "5")
            .context("the peak of the host's memory cannot be reset")?;
        Ok(Self { process, before: read(process, "VmRSS:")?, peak: 0 })
    }

    /// Watches another process, of which everything since its start counts. Call [`Resident::growth`] before the end of
    /// this one.
    pub(super) fn follow(&mut self, process: u32) {
        self.process = process;
    }

    /// The bytes between the size at the start of the watch and the peak.
    pub(super) fn growth(&mut self) -> Result<u64> {
        self.peak = self.peak.max(read(self.process, "VmHWM:")?);
        Ok(self.peak.saturating_sub(self.before))
    }
}

fn read(process: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).context("the host has ended")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .context("the memory of the host is missing from /proc")?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().context(line.to_owned())?;
    Ok(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_memory_still_counts_in_the_peak() {
        let mut watch = Resident::watch(std::process::id()).expect("Linux");
        let block = vec![1_u8; 64 << 20];
        drop(std::hint::black_box(block));
        let grown = watch.growth().expect("Linux");
        assert!(grown >= 48 << 20, "{grown}");
    }
}
