//! Plugins in every language: the examples are built, and what is tested natively is tested.
//!
//! What needs a host is tested by the part `tests`, with what is built here.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::console;
use crate::languages;
use crate::workspace::{Invocation, root};

/// The native tests of the SDKs and of the examples: the folder, and the command. None of them fetches anything. Those of npm
/// packages belong to the part `web`.
const NATIVE: [(&str, &str); 7] = [
    // Committed, and those that the interface makes.
    ("sdk/bindings", "cargo run --quiet --locked -- --check"),
    ("sdk/python", "python3 -B -m unittest discover -q -s tests -t ."),
    ("plugins/stats", "python3 -B -m unittest -q"),
    ("sdk/go", "go test ./..."),
    ("plugins/differ", "go test ./..."),
    ("sdk/c/tests", "make test"),
    ("plugins/hasher", "make test"),
];

/// Builds and tests.
pub(super) fn run() -> Result<()> {
    languages::build()?;
    let go = go()?;
    for (folder, line) in NATIVE {
        let mut command = Invocation::new(line).in_folder(folder);
        if line.starts_with("go ") {
            command = command
                .program(&go)
                .variable("GOTOOLCHAIN", "local")
                .variable("GOFLAGS", "-mod=mod")
                .variable("GOWORK", "off");
            command = command.variable("GOPROXY", "off");
            let cache = languages::cache().join("tools/go/build");
            command = command.variable("GOCACHE", cache.display().to_string());
        }
        console::aside(&format!("$ {command}"));
        command.run().with_context(|| format!("the tests in {} failed", root().join(folder).display()))?;
    }
    Ok(())
}

/// The compiler that `toolgate build` installed last, if it has installed any: it does where the machine has none that is new enough.
/// Else that of the machine.
fn go() -> Result<PathBuf> {
    let toolchains = languages::cache().join("toolchains");
    let entries = toolchains.read_dir().with_context(|| format!("could not read {}", toolchains.display()))?;
    let found = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("go-")))
        // Written when the installation ended; one that did not has none.
        .filter_map(|path| Some((path.join("installed.txt").metadata().ok()?.modified().ok()?, path)));
    Ok(found.max().map_or_else(|| "go".into(), |(_, path)| path.join("site/go/bin/go")))
}
