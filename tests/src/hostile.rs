//! The hostile suite. Each file of `tests/hostile/CLASS/` is one attack with its expected outcome. An attack runs
//! beside a neighbour and is measured. `tests/hostile/README.md` describes the files.

mod case;
mod export;
mod field;
mod files;
mod generate;
mod guest;
mod neighbour;
mod resident;
mod run;
mod server;
mod step;
mod steps;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

pub use case::{Attack, Case, Expected};
pub use export::export;
pub use field::Field;
pub use neighbour::{Latency, Work};
pub use run::{Effort, Measured};
pub use table::markdown;

/// A class of attacks.
#[derive(Debug)]
pub struct Class {
    /// The name of the folder.
    pub name: &'static str,
    /// The limit of the host's growth in MiB, for cases without their own.
    pub memory_mib: u64,
    /// The limit of the neighbour's p99, as a multiple of its p99 without an attack, for cases without their own. The tests do
    /// not check it, because it depends on the machine.
    pub p99_ratio: u16,
    /// The attacked part, in the words of the table.
    pub about: &'static str,
}

/// Every class, in the order of the table.
pub const CLASSES: [Class; 11] = [
    Class { name: "cpu", memory_mib: 96, p99_ratio: 60, about: "Time: a guest that never yields the processor" },
    Class {
        name: "memory",
        memory_mib: 320,
        p99_ratio: 25,
        about: "The guest's own memory, tables, instances and stack",
    },
    Class { name: "allocation", memory_mib: 128, p99_ratio: 50, about: "Memory that the host allocates for a guest" },
    Class {
        name: "amplification",
        memory_mib: 192,
        p99_ratio: 50,
        about: "A little work by a guest or a caller that costs the host much",
    },
    Class { name: "network", memory_mib: 96, p99_ratio: 25, about: "Requests to forbidden addresses" },
    Class { name: "text", memory_mib: 96, p99_ratio: 25, about: "Text that deceives its readers" },
    Class {
        name: "contract",
        memory_mib: 128,
        p99_ratio: 25,
        about: "Declarations and results that break the contract",
    },
    Class { name: "gate", memory_mib: 96, p99_ratio: 25, about: "Ways around an approval" },
    Class {
        name: "structural",
        memory_mib: 384,
        p99_ratio: 25,
        about: "Components that attack the loader and the compiler",
    },
    Class {
        name: "principal",
        memory_mib: 192,
        p99_ratio: 25,
        about: "A caller against its neighbours: connections, memory, work",
    },
    Class {
        name: "durable",
        memory_mib: 192,
        p99_ratio: 40,
        about: "Durable calls: journals, waits, replays, calls of other tools, results from outside",
    },
];

/// The folder of the suite.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile")
}

/// Every case of a class, by name.
///
/// # Errors
/// When a file is not a case: it has an unknown kind, no expectation, or an unknown key.
pub fn cases(class: &'static Class) -> Result<Vec<Case>> {
    let folder = folder().join(class.name);
    let mut cases = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("the class {} has no folder", class.name))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = format!("{}/{}", class.name, path.file_name().unwrap_or_default().to_string_lossy());
        cases.push(Case::parse(class, &path, &text).with_context(|| name)?);
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = cases.windows(2).find(|pair| pair[0].name == pair[1].name);
    ensure!(twice.is_none(), "two files are named {}", twice.map_or("", |pair| pair[0].name.as_str()));
    Ok(cases)
}

/// Files of the folder that belong to no class. Such a file would never run.
///
/// # Errors
/// When the folder cannot be read.
pub fn strays() -> Result<Vec<String>> {
    /// The files of the suite that are not cases.
    const PARTS: [&str; 3] = ["README.md", "COVERAGE.md", "wasi.wit"];
    let mut strays = Vec::new();
    for entry in folder().read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !PARTS.contains(&name.as_str()) && !CLASSES.iter().any(|class| class.name == name) {
            strays.push(name);
        }
    }
    Ok(strays)
}
