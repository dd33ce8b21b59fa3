//! Builds, and the paths of their outputs.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::workspace::{GUEST_TARGET, Invocation, root};
use crate::{console, setup, web};

/// Workspaces of components. Each has a target folder of its own, regardless of `CARGO_TARGET_DIR`, because tests and the demo
/// look for the components there.
const GUESTS: [&str; 2] = ["plugins", "tests/illegal"];

/// The commands that build every component.
pub(crate) fn guest_commands() -> impl Iterator<Item = Invocation> {
    GUESTS.into_iter().map(|folder| {
        let line = format!("cargo build --locked --release --target {GUEST_TARGET} --target-dir target");
        Invocation::new(&line).in_folder(folder)
    })
}

/// The plugin of `tests/mcp`, which is no example.
const NO_EXAMPLE: &str = "conformance";

/// Builds the example plugins and returns their components.
pub(crate) fn example_plugins() -> Result<Vec<PathBuf>> {
    setup::guest_target()?;
    for command in guest_commands().take(1) {
        command.run()?;
    }
    let folder = root().join(GUESTS[0]).join("target").join(GUEST_TARGET).join("release");
    let entries = folder.read_dir().with_context(|| format!("could not read {}", folder.display()))?;
    let mut components: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .filter(|path| path.file_stem().is_some_and(|name| name != NO_EXAMPLE))
        .collect();
    components.sort();
    Ok(components)
}

/// Builds the binary that users install, and that the demo runs.
pub(crate) fn release() -> Result<()> {
    web::before_the_binary()?;
    Invocation::new("cargo build --locked --release -p toolgate-cli").run()?;
    console::line("built toolgate in the folder `release` of the target folder");
    Ok(())
}
