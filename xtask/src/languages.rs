//! The example plugins in languages other than Rust. `toolgate build` builds them, as it does for authors.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::console;
use crate::workspace::{Invocation, root};

/// The files that mark a language, without Rust's: those plugins are a workspace of cargo.
const MARKERS: [&str; 4] = ["pyproject.toml", "package.json", "go.mod", "plugin.c"];

/// The folder of the toolchains. Hashes pin their versions.
pub(crate) fn cache() -> PathBuf {
    root().join("target/toolchains")
}

/// The names of the plugins' folders in `plugins/`.
pub(crate) fn examples() -> Result<Vec<String>> {
    let folder = root().join("plugins");
    let entries = folder.read_dir().with_context(|| format!("could not read {}", folder.display()))?;
    let is_one = |path: &PathBuf| MARKERS.iter().any(|marker| path.join(marker).is_file());
    let found = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_one);
    let mut names: Vec<_> = found.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

/// Builds them with this binary, and returns the paths of their components.
pub(crate) fn build(toolgate: &Path) -> Result<Vec<PathBuf>> {
    let mut components = Vec::new();
    for name in examples()? {
        let command = Invocation::new("toolgate build")
            .program(toolgate)
            .word(&format!("plugins/{name}"))
            .variable("TOOLGATE_CACHE", cache().display().to_string());
        console::aside(&format!("$ {command}"));
        command.run().with_context(|| {
            format!("could not build plugins/{name}; its toolchain comes from a registry, so without a network run this with `--without languages`")
        })?;
        components.push(root().join("plugins").join(&name).join("build").join(format!("{name}.wasm")));
    }
    Ok(components)
}

/// A command that begins with `go`, with the Go compiler that plugins are built with, and without a network.
pub(crate) fn with_go(command: Invocation) -> Invocation {
    let cache = cache().join("tools/go/build").display().to_string();
    command
        .program(&go())
        .variable("GOTOOLCHAIN", "local")
        .variable("GOFLAGS", "-mod=mod")
        .variable("GOWORK", "off")
        .variable("GOPROXY", "off")
        .variable("GOCACHE", cache)
}

/// The Go compiler that `toolgate build` installed last, or the machine's. `toolgate build` installs one only if the machine's is
/// too old.
fn go() -> PathBuf {
    let toolchains = cache().join("toolchains");
    let found = toolchains
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("go-")))
        // An incomplete installation does not have this file.
        .filter_map(|path| Some((path.join("installed.txt").metadata().ok()?.modified().ok()?, path)));
    found.max().map_or_else(|| "go".into(), |(_, path)| path.join("site/go/bin/go"))
}
