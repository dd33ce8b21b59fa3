//! The peak memory of a process on Linux: `VmHWM` of `/proc/PID/status` (proc(5)).

use std::fs;

use anyhow::{Context as _, Result};

/// The memory of a process since the watch began.
pub(super) struct Resident {
    process: u32,
    before: u64,
}

impl Resident {
    /// Resets the process's peak to its current value.
    pub(super) fn watch(process: u32) -> Result<Self> {
        // 5 resets the peak to the current size.
        fs::write(format!("/proc/{process}/clear_refs"), "5")
            .context("the peak of the host's memory cannot be reset")?;
        Ok(Self { process, before: read(process, "VmRSS:")? })
    }

    /// The bytes between the size at the start of the watch and the peak.
    pub(super) fn growth(&self) -> Result<u64> {
        Ok(read(self.process, "VmHWM:")?.saturating_sub(self.before))
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
        let watch = Resident::watch(std::process::id()).expect("Linux");
        let block = vec![1_u8; 64 << 20];
        drop(std::hint::black_box(block));
        let grown = watch.growth().expect("Linux");
        assert!(grown >= 48 << 20, "{grown}");
    }
}
