//! The vital signs of a host on Linux (proc(5)), and whether they were flat.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use store::StoreSettings;

use super::CACHE_BYTES;

/// A sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vitals {
    /// The number of turns that had ended.
    pub turns: u64,
    /// The resident memory in bytes.
    pub memory: u64,
    /// The number of open descriptors.
    pub descriptors: u64,
    /// The number of threads.
    pub threads: u64,
    /// The space of the data folder in bytes.
    pub disk: u64,
}

impl Vitals {
    /// A sample of a process and its data folder.
    pub(super) fn of(process: u32, data: &Path, turns: u64) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| name.to_owned())?;
            Ok(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok(Self {
            turns,
            memory: field("VmRSS:")? << 10,
            descriptors: fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64,
            threads: field("Threads:")?,
            disk: space(data),
        })
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, descriptors, threads, disk, .. } = *self;
        let (memory, disk) = (mib(memory), mib(disk));
        write!(f, "memory {memory} MiB, {descriptors} descriptors, {threads} threads, disk {disk} MiB")
    }
}

/// The space of a folder. Files may disappear meanwhile.
fn space(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => space(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// How much a vital sign may grow between the second tenth and the last: by a tenth of its value, by a constant, and by what
/// turns leave.
struct Bound {
    name: &'static str,
    of: fn(&Vitals) -> u64,
    constant: u64,
    /// The amount that the turns between these two numbers leave.
    left: fn(u64, u64) -> u64,
    in_mib: bool,
}

/// Nothing grows with the turns except two parts of the database. Retention keeps the ids and the digests of removed turns,
/// about 500 bytes for each turn of the mix. They take up to three times as much in the file, which grows by 8 MiB at a time.
/// The file's cache is in memory. `docs/performance.md` has the measured sizes.
const BOUNDS: [Bound; 4] = [
    Bound { name: "memory", of: |vitals| vitals.memory, constant: 22 << 20, left: database, in_mib: true },
    Bound { name: "descriptors", of: |vitals| vitals.descriptors, constant: 32, left: |_, _| 0, in_mib: false },
    // A thread of a read lives for some seconds after it.
    Bound {
        name: "threads",
        of: |vitals| vitals.threads,
        constant: store::MAX_READ_THREADS as u64 + 16,
        left: |_, _| 0,
        in_mib: false,
    },
    Bound {
        name: "disk",
        of: |vitals| vitals.disk,
        constant: 16 << 20,
        // In a short soak the file still grows to the size that cleaning keeps. Until then only its contents show a leak.
        left: |early, late| (1400 * (late - early)).max(38 << 20),
        in_mib: true,
    },
];

/// The bytes in the database's table of pages for the ids and digests of a removed turn.
const PAGES: u64 = 110;

/// How much the database may grow in memory. Each turn adds 800 to 1400 bytes to its cache until that is full, with the
/// overhead of its entries, and `PAGES` to its table of pages.
fn database(early: u64, late: u64) -> u64 {
    let cached = |bytes: u64, turns: u64| (bytes * turns).min(CACHE_BYTES * 3 / 2);
    cached(1400, late) - cached(800, early) + PAGES * (late - early)
}

/// One vital sign after the first tenth, and at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flatness {
    /// The vital sign.
    pub name: &'static str,
    /// The median of the second tenth; of the store's contents, the size that retention keeps.
    pub early: u64,
    /// The median of the last tenth, or the only sample.
    pub late: u64,
    /// The maximum of all samples.
    pub highest: u64,
    /// The bound of `late`.
    pub bound: u64,
    /// The turns between the two medians.
    turns: u64,
    in_mib: bool,
}

impl Flatness {
    /// Whether the last tenth is within the bound.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.late <= self.bound
    }
}

impl fmt::Display for Flatness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value| if self.in_mib { format!("{} MiB", mib(value)) } else { value.to_string() };
        let [early, late, highest, bound] = [self.early, self.late, self.highest, self.bound].map(shown);
        let verdict = if self.is_flat() { "flat" } else { "GROWS" };
        write!(f, "{:<12} {early:>12} {late:>12} {highest:>12} {bound:>12}  {verdict}", self.name)?;
        let each = self.late.saturating_sub(self.early) / self.turns.max(1);
        if self.in_mib { write!(f, ", {each} bytes a turn") } else { Ok(()) }
    }
}

/// The contents of the store of a killed host after this many turns, of which retention keeps this many bytes. The file of
/// the database can hide a leak: it grows by 8 MiB at a time, and it has obsolete pages that the database uses again. Its entries and the large records cannot.
pub(super) fn contents(data: &Path, kept: u64, turns: u64) -> Result<Flatness> {
    let folder = data.join("store");
    let database = folder.join("sled");
    let large = space(&folder).saturating_sub(space(&database));
    let config = sled::Config::new().path(database).segment_size(StoreSettings::default().segment_bytes);
    let opened = config.flush_every_ms(None).open()?;
    let mut bytes = large;
    for tree in opened.tree_names() {
        for entry in &opened.open_tree(tree)? {
            let (key, value) = entry?;
            bytes += (key.len() + value.len()) as u64;
        }
    }
    Ok(contents_row(bytes, kept, turns))
}

/// Contents have what retention keeps, the turns that ended since its last removal, and about 500 bytes for each removed
/// turn.
fn contents_row(bytes: u64, kept: u64, turns: u64) -> Flatness {
    let bound = 4 * kept + 1_000 * turns;
    Flatness { name: "contents", early: kept, late: bytes, highest: bytes, bound, turns, in_mib: true }
}

/// Compares the second tenth of the samples with the last. Medians ignore single outliers, such as a sample while the
/// store compacts.
#[must_use]
pub fn flatness(samples: &[Vitals]) -> Vec<Flatness> {
    let tenth = |n: usize| &samples[samples.len() * n / 10..samples.len() * (n + 1) / 10];
    let [first, last] = [1, 9].map(|n| median(tenth(n), |vitals| vitals.turns));
    let row = |&Bound { name, of, constant, left, in_mib }: &Bound| {
        let (early, late) = (median(tenth(1), of), median(tenth(9), of));
        let bound = early + early / 10 + constant + left(first, last);
        let highest = samples.iter().map(of).max().unwrap_or_default();
        Flatness { name, early, late, highest, bound, turns: last - first, in_mib }
    };
    BOUNDS.iter().map(row).collect()
}

fn median(samples: &[Vitals], of: fn(&Vitals) -> u64) -> u64 {
    let mut values: Vec<u64> = samples.iter().map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

const fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred samples of a soak with this many turns.
    fn verdicts(turns: u64, of: impl Fn(u64) -> Vitals) -> Vec<(&'static str, bool)> {
        let samples: Vec<_> = (1..=100).map(|n| Vitals { turns: n * turns / 100, ..of(n) }).collect();
        flatness(&samples).iter().map(|row| (row.name, row.is_flat())).collect()
    }

    #[test]
    fn growth_after_the_first_tenth_is_not_flat() {
        let leaks = |n| Vitals { memory: n << 20, descriptors: n, threads: 2 * n, disk: n << 21, turns: 0 };
        let all = [("memory", false), ("descriptors", false), ("threads", false), ("disk", false)];
        assert_eq!(verdicts(10_000, leaks), all);
        let starts = |n: u64| Vitals { memory: n.min(9) << 30, descriptors: n.min(9) * 100, ..Vitals::default() };
        assert!(verdicts(10_000, starts).iter().all(|(_, flat)| *flat));
    }

    #[test]
    fn leak_of_250_bytes_is_found_in_a_long_soak() {
        let million = 1_000_000;
        let host = |each: u64| {
            move |n: u64| {
                let turns = n * million / 100;
                let (memory, disk) = ((200 << 20) + (PAGES + each) * turns, (50 << 20) + (1260 + each) * turns);
                Vitals { memory, disk, ..Vitals::default() }
            }
        };
        let flat = |each| verdicts(million, host(each)).into_iter().filter_map(|(name, flat)| flat.then_some(name));
        assert!(flat(0).eq(["memory", "descriptors", "threads", "disk"]));
        assert!(flat(250).eq(["descriptors", "threads"]));
    }

    #[test]
    fn leak_of_10_kb_is_found_in_a_short_soak() {
        let host =
            |each: u64| move |n: u64| Vitals { memory: (120 << 20) + (1150 + each) * n * 50, ..Vitals::default() };
        let is_flat = |each| verdicts(5_000, host(each)).contains(&("memory", true));
        assert!(is_flat(0) && !is_flat(10_000));
    }

    #[test]
    fn leak_of_10_kb_on_disk_is_found_in_a_short_soak() {
        let (turns, kept) = (5_000, 4 << 20);
        // Retention may be late by as much as it keeps.
        let is_flat = |each: u64| contents_row(2 * kept + (500 + each) * turns, kept, turns).is_flat();
        assert!(is_flat(0) && !is_flat(4_000) && !is_flat(10_000));
    }

    #[test]
    fn contents_are_entries_and_large_records_and_not_the_file() {
        let data = tempfile::tempdir().expect("a folder");
        let folder = data.path().join("store");
        let opened = store::open(&folder, &StoreSettings::default()).expect("a store");
        for number in 0..50_u8 {
            let value = vec![number; 10_000];
            let set = opened.key_value().set("p", "b", b"k", &value, store::NamespaceQuota::UNBOUNDED);
            set.expect("it is stored");
        }
        drop(opened);
        let late = || contents(data.path(), 0, 0).expect("a store").late;
        let small = late();
        assert!((10_000..100_000).contains(&small), "only the last value is there: {small}");
        fs::write(folder.join("blobs/large"), vec![1; 200_000]).expect("a file");
        let grew = late() - small;
        assert!((200_000..300_000).contains(&grew), "{grew}");
    }

    #[test]
    fn row_names_the_bytes_of_a_turn() {
        let samples: Vec<_> =
            (1..=100).map(|n| Vitals { turns: n * 100, disk: n * 7_000, ..Vitals::default() }).collect();
        let rows: Vec<_> = flatness(&samples).iter().map(ToString::to_string).collect();
        assert!(rows[3].ends_with("flat, 70 bytes a turn") && rows[1].ends_with("flat"), "{rows:#?}");
    }

    #[test]
    fn single_outliers_do_not_count() {
        let outliers = |n| Vitals { memory: if n % 4 == 0 { 1 << 40 } else { 100 << 20 }, ..Vitals::default() };
        assert!(verdicts(10_000, outliers).iter().all(|(_, flat)| *flat));
    }

    #[test]
    fn own_process_has_vital_signs() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("inner")).expect("a folder");
        fs::write(folder.path().join("inner/file"), vec![1; 100_000]).expect("a file");
        let vitals = Vitals::of(std::process::id(), folder.path(), 7).expect("Linux");
        assert!(vitals.memory > 1 << 20 && vitals.descriptors > 2 && vitals.threads > 0, "{vitals:?}");
        assert!(vitals.disk >= 100_000, "{vitals:?}");
    }
}
