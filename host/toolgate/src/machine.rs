//! The memory that this process may use.

use std::fs;
use std::path::Path;

/// The memory of the machine or of its control group in bytes, whichever is less. `None` where neither can be read.
pub(crate) fn memory() -> Option<u64> {
    memory_of(Path::new("/"))
}

/// As [`memory`], of a machine with this root.
fn memory_of(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok().and_then(|text| total(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|group| limit(root, group)).chain(machine).min()
}

/// The member `MemTotal` of `/proc/meminfo`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The limit of a control group and of those that contain it. A line is `ID:CONTROLLERS:PATH`. Version 2 names no
/// controllers. Inside a container the path may be that of the machine, and then only the root exists.
fn limit(root: &Path, group: &str) -> Option<u64> {
    let (controllers, path) = group.split_once(':')?.1.split_once(':')?;
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let mount = root.join(mount);
    let limits = Path::new(path.trim_start_matches('/')).ancestors().filter_map(|group| {
        // Without a limit, version 2 says `max` and version 1 a number that is larger than the machine.
        fs::read_to_string(mount.join(group).join(file)).ok()?.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with these files.
    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        memory_of(root.path())
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       24000 kB\nMemFree:          100 kB\n");
    const TOTAL: u64 = 24_000 << 10;

    #[test]
    fn the_least_of_machine_and_control_groups_counts() {
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[MEMINFO]), Some(TOTAL));
        let group = ("proc/self/cgroup", "0::/system.slice/toolgate.service\n");
        let max = |path, max| machine(&[MEMINFO, group, (path, max)]);
        assert_eq!(max("sys/fs/cgroup/system.slice/toolgate.service/memory.max", "4096\n"), Some(4096));
        assert_eq!(max("sys/fs/cgroup/system.slice/memory.max", "8192\n"), Some(8192));
        assert_eq!(max("sys/fs/cgroup/memory.max", "1024\n"), Some(1024), "the root of a container");
        assert_eq!(max("sys/fs/cgroup/memory.max", "max\n"), Some(TOTAL));
        assert_eq!(max("sys/fs/cgroup/other/memory.max", "1\n"), Some(TOTAL));
        let older = ("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/1f\n1:name=systemd:/\n0::/\n");
        let max = |path, max| machine(&[MEMINFO, older, (path, max)]);
        assert_eq!(max("sys/fs/cgroup/memory/memory.limit_in_bytes", "2048\n"), Some(2048));
        assert_eq!(max("sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes", "512\n"), Some(512));
        assert_eq!(max("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), Some(TOTAL));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(memory().is_none_or(|bytes| bytes > 1 << 20));
    }
}
