//! Plugins in every language: builds the examples, and runs the native tests.
//!
//! The part `tests` runs these plugins in a host.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::console;
use crate::languages;
use crate::workspace::{Invocation, binary, root};

/// The native tests of the SDKs and the examples: folder and command. None of them uses the network. The part `web` tests the npm
/// packages.
const NATIVE: [(&str, &str); 6] = [
    ("sdk/python", "python3 -B -m unittest discover -q -s tests -t ."),
    ("plugins/stats", "python3 -B -m unittest -q"),
    ("sdk/go", "go test ./..."),
    ("plugins/differ", "go test ./..."),
    ("sdk/c/tests", "make test"),
    ("plugins/hasher", "make test"),
];

pub(super) fn run() -> Result<()> {
    languages::build(&binary("toolgate")?)?;
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

/// The Go compiler that `toolgate build` installed last, or the machine's. `toolgate build` installs one only if the machine's is
/// too old.
fn go() -> Result<PathBuf> {
    let toolchains = languages::cache().join("toolchains");
    let entries = toolchains.read_dir().with_context(|| format!("could not read {}", toolchains.display()))?;
    let found = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("go-")))
        // An incomplete installation does not have this file.
        .filter_map(|path| Some((path.join("installed.txt").metadata().ok()?.modified().ok()?, path)));
    Ok(found.max().map_or_else(|| "go".into(), |(_, path)| path.join("site/go/bin/go")))
}
